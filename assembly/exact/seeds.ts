/**
 * The rows with the lowest bounds of a batch. They are scored first and give a k-th best score that is nearly
 * final, so that far fewer of the other rows survive. Each query has a heap whose root has the highest bound.
 * Which of equal bounds stay does not matter.
 *
 *   entry, 8 bytes: | bound f32 | row u32 |
 */
import { rowsBelow } from "../lanes";

@unmanaged
export class Seeds {
  ptr: usize;
  capacity: i32;
  count: i32;
}

export function seedRow(seeds: Seeds, i: i32): u32 {
  return load<u32>(seeds.ptr + ((<usize>i) << 3), 4);
}

function boundAt(seeds: Seeds, i: i32): f32 {
  return load<f32>(seeds.ptr + ((<usize>i) << 3));
}

function put(seeds: Seeds, i: i32, bound: f32, row: u32): void {
  store<f32>(seeds.ptr + ((<usize>i) << 3), bound);
  store<u32>(seeds.ptr + ((<usize>i) << 3), row, 4);
}

/** Only a row whose bound is below this is added. */
export function seedLimit(seeds: Seeds): f32 {
  return seeds.count < seeds.capacity ? Infinity : boundAt(seeds, 0);
}

/** Adds a row whose bound is below seedLimit. When full, drops the row with the highest bound. */
export function addSeed(seeds: Seeds, bound: f32, row: u32): void {
  let i = 0;
  if (seeds.count < seeds.capacity) {
    i = seeds.count++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!(bound > boundAt(seeds, parent))) break;
      put(seeds, i, boundAt(seeds, parent), seedRow(seeds, parent));
      i = parent;
    }
  } else {
    while (true) {
      let child = 2 * i + 1;
      if (child >= seeds.count) break;
      if (child + 1 < seeds.count && boundAt(seeds, child + 1) > boundAt(seeds, child)) child++;
      if (!(boundAt(seeds, child) > bound)) break;
      put(seeds, i, boundAt(seeds, child), seedRow(seeds, child));
      i = child;
    }
  }
  put(seeds, i, bound, row);
}

/** Adds those of the rows row..row+31 whose bits are set and whose bounds, f32[32], are low enough. */
export function addSeeds(seeds: Seeds, bounds: usize, bits: u32, row: u32): void {
  let best = rowsBelow(bounds, seedLimit(seeds)) & bits;
  while (best !== 0) {
    const i = <u32>ctz(best);
    best &= best - 1;
    const bound = load<f32>(bounds + ((<usize>i) << 2));
    if (bound < seedLimit(seeds)) addSeed(seeds, bound, row + i);
  }
}
