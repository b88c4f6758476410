/**
 * The kernel of many-dots.ts for short codes in relaxed SIMD: one window, and nothing to add to. Without the loop
 * over windows it takes a tenth less time at 128 dimensions.
 */
import { addI16OfFour } from "../lanes";

/**
 * Sums of tiles of `size` bytes for a pair of queries, over all dimensions: i32[4] per tile, those of query a at
 * `sums`, of b at `sumsOfB`.
 */
export function shortTiles(tile: usize, tiles: u32, size: usize, queries: usize, sums: usize, sumsOfB: usize): void {
  for (let n: u32 = 0; n < tiles; n++) {
    let rows = tile;
    let codes = queries;
    const stop = tile + size;
    const stop1 = stop - 64;
    const stop2 = stop - 128;
    const stop3 = stop - 192;
    let a0 = v128.load(codes);
    let b0 = v128.load(codes, 16);
    let a1 = a0;
    let a2 = a0;
    let a3 = a0;
    let b1 = b0;
    let b2 = b0;
    let b3 = b0;
    codes += 32;
    do {
      let a = v128.load(codes);
      let b = v128.load(codes, 16);
      let x = v128.load(rows);
      a0 = i16x8.add(a0, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b0 = i16x8.add(b0, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 16);
      a1 = i16x8.add(a1, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b1 = i16x8.add(b1, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 32);
      a2 = i16x8.add(a2, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b2 = i16x8.add(b2, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 48);
      a3 = i16x8.add(a3, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b3 = i16x8.add(b3, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      if (rows === stop1) break;
      a = v128.load(codes, 32);
      b = v128.load(codes, 48);
      x = v128.load(rows, 64);
      a0 = i16x8.add(a0, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b0 = i16x8.add(b0, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 80);
      a1 = i16x8.add(a1, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b1 = i16x8.add(b1, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 96);
      a2 = i16x8.add(a2, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b2 = i16x8.add(b2, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 112);
      a3 = i16x8.add(a3, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b3 = i16x8.add(b3, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      if (rows === stop2) break;
      a = v128.load(codes, 64);
      b = v128.load(codes, 80);
      x = v128.load(rows, 128);
      a0 = i16x8.add(a0, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b0 = i16x8.add(b0, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 144);
      a1 = i16x8.add(a1, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b1 = i16x8.add(b1, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 160);
      a2 = i16x8.add(a2, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b2 = i16x8.add(b2, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 176);
      a3 = i16x8.add(a3, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b3 = i16x8.add(b3, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      if (rows === stop3) break;
      a = v128.load(codes, 96);
      b = v128.load(codes, 112);
      x = v128.load(rows, 192);
      a0 = i16x8.add(a0, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b0 = i16x8.add(b0, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 208);
      a1 = i16x8.add(a1, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b1 = i16x8.add(b1, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 224);
      a2 = i16x8.add(a2, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b2 = i16x8.add(b2, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      x = v128.load(rows, 240);
      a3 = i16x8.add(a3, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
      b3 = i16x8.add(b3, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
      rows += 256;
      codes += 128;
    } while (rows < stop);
    v128.store(sums, addI16OfFour(a0, a1, a2, a3));
    v128.store(sumsOfB, addI16OfFour(b0, b1, b2, b3));
    tile += size;
    sums += 16;
    sumsOfB += 16;
  }
}
