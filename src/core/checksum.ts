/** XXH32, seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md): not for secrets, only against damage. */

const P1 = 0x9e3779b1;
const P2 = 0x85ebca77;
const P3 = 0xc2b2ae3d;
const P4 = 0x27d4eb2f;
const P5 = 0x165667b1;

function rotate(x: number, bits: number): number {
  return (x << bits) | (x >>> (32 - bits));
}

function round(accumulator: number, word: number): number {
  return Math.imul(rotate((accumulator + Math.imul(word, P2)) | 0, 13), P1);
}

/** @param bytes  starts at a multiple of 4 in its buffer. */
export function xxh32(bytes: Uint8Array): number {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  let at = 0;
  let hash = P5;
  if (words.length >= 4) {
    let a = (P1 + P2) | 0;
    let b = P2 | 0;
    let c = 0;
    let d = -P1 | 0;
    for (; at + 4 <= words.length; at += 4) {
      a = round(a, words[at]!);
      b = round(b, words[at + 1]!);
      c = round(c, words[at + 2]!);
      d = round(d, words[at + 3]!);
    }
    hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
  }
  hash = (hash + bytes.length) | 0;
  for (; at < words.length; at++) hash = Math.imul(rotate((hash + Math.imul(words[at]!, P3)) | 0, 17), P4);
  for (let i = at << 2; i < bytes.length; i++) hash = Math.imul(rotate((hash + Math.imul(bytes[i]!, P5)) | 0, 11), P1);
  hash = Math.imul(hash ^ (hash >>> 15), P2);
  hash = Math.imul(hash ^ (hash >>> 13), P3);
  return (hash ^ (hash >>> 16)) >>> 0;
}
