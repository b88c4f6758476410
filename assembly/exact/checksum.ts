/**
 * A checksum of a row's float32, by which a row that was read from outside is known to be the one that was written.
 *
 * It is the round of XXH32 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), v ← rotl(v + word × P2, 13) × P1,
 * over sixteen lanes instead of four, so that four vectors of words are under way at a time. The lanes are joined by the same
 * round, instead of XXH32's own end.
 *
 * Proof that a change within one word is always noticed. For a given word the round is a bijection of v, and for a given v one of
 * the word: sums and products with odd numbers modulo 2^32 and rotations are. A word goes into one lane. If it alone changes,
 * its lane differs after this round and after all that follow, and so does what that lane is joined to. A row that differs in
 * more words, or another row, is expected to pass once in 2^32.
 *
 * Σx² is no such check: it does not notice a sign, and beside a coordinate of 1e9, whose square has an ulp of 128, it does not
 * notice a coordinate below 8 at all.
 */

const P1: i32 = 0x9e3779b1;
const P2: i32 = 0x85ebca77;

function round(v: v128, words: v128): v128 {
  const sum = i32x4.add(v, i32x4.mul(words, i32x4.splat(P2)));
  return i32x4.mul(v128.or(i32x4.shl(sum, 13), i32x4.shr_u(sum, 19)), i32x4.splat(P1));
}

/** Of f32[stride] at `x`; stride is a multiple of 4. */
export function checksumOf(x: usize, stride: i32): u32 {
  let a = i32x4.splat(P1);
  let b = a;
  let c = a;
  let d = a;
  const end = x + ((<usize>stride) << 2);
  while (x + 64 <= end) {
    a = round(a, v128.load(x));
    b = round(b, v128.load(x, 16));
    c = round(c, v128.load(x, 32));
    d = round(d, v128.load(x, 48));
    x += 64;
  }
  for (; x < end; x += 16) a = round(a, v128.load(x));
  a = round(round(round(a, b), c), d);
  // The upper half into the lower, then its upper lane into the lower.
  a = round(a, i64x2.shuffle(a, a, 1, 0));
  a = round(a, i32x4.shuffle(a, a, 1, 0, 3, 2));
  return i32x4.extract_lane(a, 0);
}
