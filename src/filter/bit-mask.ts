/** Row masks: row r is bit r & 31 of word r >> 5. */

export function maskWords(rows: number): number {
  return (rows + 31) >>> 5;
}

export function hasBit(mask: Uint32Array, row: number): boolean {
  return ((mask[row >>> 5]! >>> (row & 31)) & 1) === 1;
}

export function setBit(mask: Uint32Array, row: number): void {
  mask[row >>> 5]! |= 1 << (row & 31);
}

export function clearBit(mask: Uint32Array, row: number): void {
  mask[row >>> 5]! &= ~(1 << (row & 31));
}

/** In place: mask AND other. Both have at least the words of the mask. */
export function intersect(mask: Uint32Array, other: Uint32Array): Uint32Array {
  for (let word = 0; word < mask.length; word++) mask[word]! &= other[word]!;
  return mask;
}

/** In place: mask OR other. */
export function unite(mask: Uint32Array, other: Uint32Array): Uint32Array {
  for (let word = 0; word < mask.length; word++) mask[word]! |= other[word]!;
  return mask;
}

/** In place: those of `all` that are not in the mask. */
export function complement(mask: Uint32Array, all: Uint32Array): Uint32Array {
  for (let word = 0; word < mask.length; word++) mask[word] = all[word]! & ~mask[word]!;
  return mask;
}

export function isEmpty(mask: Uint32Array): boolean {
  for (let word = 0; word < mask.length; word++) if (mask[word] !== 0) return false;
  return true;
}

export function countBits(mask: Uint32Array): number {
  let count = 0;
  for (let i = 0; i < mask.length; i++) {
    // The bits of pairs, of fours, of bytes, and of all bytes are added up.
    let word = mask[i]! | 0;
    word -= (word >>> 1) & 0x55555555;
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
    count += Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }
  return count;
}
