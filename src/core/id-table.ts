/**
 * Ids and their rows in typed arrays: the ids as consecutive UTF-8, and an open hash table over them. Nothing
 * in it is a separate object, so a hundred million ids cost the garbage collector nothing. It takes about 22
 * bytes per id besides the id itself (a Map and an array of strings take 100 and more).
 *
 *   #blocks     the ids: a length (LEB128), the bytes, padding to 4
 *   #positions  u32 by row: where its id begins, in units of 4 bytes over all blocks; FREE for none
 *   #slots      u32 pairs (row + 1, hash), 0 for an empty one; linear probing, at most three quarters full,
 *               deleted by shifting back
 *
 * The hash is HalfSipHash-1-3 with a per-process key (Aumasson, Bernstein: SipHash, 2012), because users
 * choose the ids and could otherwise cause collisions.
 */
import { decodeAt, utf8Encoder } from "./utf8.ts";

const BLOCK_SHIFT = 18;
/** In units of 4 bytes: 1 MiB. */
const BLOCK_UNITS = 1 << BLOCK_SHIFT;
const FIRST_BLOCK_UNITS = 64;
const FREE = 0xffff_ffff;
const FIRST_SLOTS = 16;
const FIRST_ROWS = 16;
/** With less garbage than this, compacting is not worthwhile. */
const MIN_GARBAGE_UNITS = 1 << 14;

export class IdTable {
  #blocks: Uint8Array[] = [];
  /** Where the next id goes, in units of 4 bytes. */
  #end = 0;
  #garbageUnits = 0;
  #positions = new Uint32Array(0);
  #capacity = 0;
  #slots = new Uint32Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** All rows that were ever used are below this. */
  get capacity(): number {
    return this.#capacity;
  }

  get memoryBytes(): number {
    let bytes = this.#positions.byteLength + this.#slots.byteLength;
    for (const block of this.#blocks) bytes += block.byteLength;
    return bytes;
  }

  /** undefined also for anything that cannot be an id: a non-string, or a string with a lone surrogate. */
  rowOf(id: string): number | undefined {
    const slot = this.#find(id);
    return slot < 0 ? undefined : this.#slots[slot]! - 1;
  }

  idOf(row: number): string | undefined {
    const position = row < this.#capacity ? this.#positions[row]! : FREE;
    if (position === FREE) return undefined;
    const block = this.#blocks[position >>> BLOCK_SHIFT]!;
    const [start, length] = entryAt(block, (position & (BLOCK_UNITS - 1)) * 4);
    return decodeAt(block, start, length);
  }

  /** Makes room in the hash table, in one step. @param ids  how many there will be. */
  reserve(ids: number): void {
    let length = Math.max(2 * FIRST_SLOTS, this.#slots.length);
    while (4 * ids > 3 * (length / 2)) length *= 2;
    if (length > this.#slots.length) this.#growSlots(length);
  }

  /** Requires that `id` is well-formed and not in the table, and that `row` has no id. */
  set(row: number, id: string): void {
    const length = encode(id);
    const hash = hashOf(length);
    // Steps that may run out of memory come first.
    if (4 * (this.#size + 1) > 3 * (this.#slots.length / 2)) this.reserve(this.#size + 1);
    if (row >= this.#positions.length) this.#growRows(row);
    const position = this.#store(length);
    this.#positions[row] = position;
    this.#capacity = Math.max(this.#capacity, row + 1);
    place(this.#slots, row + 1, hash);
    this.#size++;
  }

  /** @returns the row that the id had; undefined when the id was not in the table. */
  delete(id: string): number | undefined {
    const slot = this.#find(id);
    if (slot < 0) return undefined;
    const row = this.#slots[slot]! - 1;
    this.#garbageUnits += this.#unitsAt(this.#positions[row]!);
    this.#positions[row] = FREE;
    this.#size--;
    this.#empty(slot);
    if (this.#garbageUnits > MIN_GARBAGE_UNITS && 2 * this.#garbageUnits > this.#end) this.#tidy();
    return row;
  }

  /**
   * Whether the id of `rowA` sorts before that of `rowB` in byte order, which equals code point order. A row
   * without an id comes first.
   */
  isBefore(rowA: number, rowB: number): boolean {
    const a = rowA < this.#capacity ? this.#positions[rowA]! : FREE;
    const b = rowB < this.#capacity ? this.#positions[rowB]! : FREE;
    if (a === FREE || b === FREE) return a === FREE && b !== FREE;
    const blockA = this.#blocks[a >>> BLOCK_SHIFT]!;
    const blockB = this.#blocks[b >>> BLOCK_SHIFT]!;
    const [startA, lengthA] = entryAt(blockA, (a & (BLOCK_UNITS - 1)) * 4);
    const [startB, lengthB] = entryAt(blockB, (b & (BLOCK_UNITS - 1)) * 4);
    const length = Math.min(lengthA, lengthB);
    for (let i = 0; i < length; i++) {
      const difference = blockA[startA + i]! - blockB[startB + i]!;
      if (difference !== 0) return difference < 0;
    }
    return lengthA < lengthB;
  }

  /** The slot (index of its pair's first word) of an id, or −1. */
  #find(id: string): number {
    if (this.#size === 0 || typeof id !== "string") return -1;
    const length = encode(id);
    if (length < 0) return -1;
    const hash = hashOf(length);
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = (hash << 1) & mask; slots[slot] !== 0; slot = (slot + 2) & mask) {
      if (slots[slot + 1] === hash && this.#isAt(this.#positions[slots[slot]! - 1]!, length)) return slot;
    }
    return -1;
  }

  /** Whether the id at `position` equals the encoded one. */
  #isAt(position: number, length: number): boolean {
    const block = this.#blocks[position >>> BLOCK_SHIFT]!;
    const [start, found] = entryAt(block, (position & (BLOCK_UNITS - 1)) * 4);
    if (found !== length) return false;
    for (let i = 0; i < length; i++) if (block[start + i] !== scratch[i]) return false;
    return true;
  }

  #unitsAt(position: number): number {
    const [start, length] = entryAt(this.#blocks[position >>> BLOCK_SHIFT]!, (position & (BLOCK_UNITS - 1)) * 4);
    return Math.ceil((start + length) / 4) - (position & (BLOCK_UNITS - 1));
  }

  /** Appends the encoded id. @returns its position. */
  #store(length: number): number {
    const units = Math.ceil((lengthBytes(length) + length) / 4);
    const position = this.#reserve(units);
    const block = this.#blocks[position >>> BLOCK_SHIFT]!;
    let at = (position & (BLOCK_UNITS - 1)) * 4;
    let rest = length;
    for (; rest > 0x7f; rest >>>= 7) block[at++] = (rest & 0x7f) | 0x80;
    block[at++] = rest;
    if (length <= 64) for (let i = 0; i < length; i++) block[at + i] = scratch[i]!;
    else block.set(scratch.subarray(0, length), at);
    return position;
  }

  /**
   * Reserves room for an entry. An entry is never split between blocks. The first block grows, so that a
   * small table stays small. An entry longer than a block gets a block of its own.
   */
  #reserve(units: number): number {
    const used = this.#end & (BLOCK_UNITS - 1);
    if (this.#blocks.length <= 1 && this.#end + units <= BLOCK_UNITS) {
      const first = this.#blocks[0];
      if (first === undefined || 4 * (this.#end + units) > first.length) {
        const grown = new Uint8Array(4 * Math.min(BLOCK_UNITS, Math.max(FIRST_BLOCK_UNITS, 2 * (this.#end + units))));
        if (first !== undefined) grown.set(first);
        this.#blocks[0] = grown;
      }
    } else if (used === 0 || used + units > BLOCK_UNITS) {
      const start = this.#blocks.length * BLOCK_UNITS;
      const span = Math.ceil(units / BLOCK_UNITS);
      if (start + span * BLOCK_UNITS > FREE)
        throw new RangeError("The ids together are longer than 16 GiB, which is all that one table of ids holds.");
      const block = new Uint8Array(4 * Math.max(units, BLOCK_UNITS));
      for (let i = 0; i < span; i++) this.#blocks.push(block);
      this.#end = start;
    }
    const position = this.#end;
    this.#end += units;
    // After an entry that takes several block lengths, the next entry starts a new block.
    if (units > BLOCK_UNITS) this.#end = this.#blocks.length * BLOCK_UNITS;
    return position;
  }

  #growRows(row: number): void {
    const grown = new Uint32Array(Math.max(FIRST_ROWS, row + 1, Math.ceil(1.5 * this.#positions.length))).fill(
      FREE,
      this.#positions.length,
    );
    grown.set(this.#positions);
    this.#positions = grown;
  }

  #growSlots(length: number): void {
    const before = this.#slots;
    const slots = new Uint32Array(length);
    for (let slot = 0; slot < before.length; slot += 2) if (before[slot] !== 0) place(slots, before[slot]!, before[slot + 1]!);
    this.#slots = slots;
  }

  /**
   * Empties a slot. Later entries that could then no longer be found move up (Knuth, The Art of Computer
   * Programming 3, 6.4, algorithm R).
   */
  #empty(emptied: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let hole = emptied;
    for (let slot = (hole + 2) & mask; slots[slot] !== 0; slot = (slot + 2) & mask) {
      const home = (slots[slot + 1]! << 1) & mask;
      // The entry can stay: the probe from its home slot does not pass the hole.
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
      slots[hole] = slots[slot]!;
      slots[hole + 1] = slots[slot + 1]!;
      hole = slot;
    }
    slots[hole] = 0;
    slots[hole + 1] = 0;
  }

  /**
   * Rewrites the ids without the garbage of deleted ones. O(size), and only after at least half as many bytes
   * were deleted.
   */
  #tidy(): void {
    const before = this.#blocks;
    this.#blocks = [];
    this.#end = 0;
    this.#garbageUnits = 0;
    for (let row = 0; row < this.#capacity; row++) {
      const position = this.#positions[row]!;
      if (position === FREE) continue;
      const block = before[position >>> BLOCK_SHIFT]!;
      const [start, length] = entryAt(block, (position & (BLOCK_UNITS - 1)) * 4);
      if (scratch.length < length) scratch = new Uint8Array(length);
      scratch.set(block.subarray(start, start + length));
      scratchId = undefined;
      this.#positions[row] = this.#store(length);
    }
  }
}

function place(slots: Uint32Array, entry: number, hash: number): void {
  const mask = slots.length - 1;
  let slot = (hash << 1) & mask;
  while (slots[slot] !== 0) slot = (slot + 2) & mask;
  slots[slot] = entry;
  slots[slot + 1] = hash;
}

/** Start and length of the bytes of the entry at `at`. */
function entryAt(block: Uint8Array, at: number): readonly [start: number, length: number] {
  let length = block[at]!;
  if (length < 0x80) return [at + 1, length];
  length &= 0x7f;
  for (let shift = 7, next = at + 1; ; shift += 7, next++) {
    const byte = block[next]!;
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) return [next + 1, length];
  }
}

function lengthBytes(length: number): number {
  let bytes = 1;
  for (let rest = length; rest > 0x7f; rest >>>= 7) bytes++;
  return bytes;
}

/** The id being looked up or stored, as UTF-8, and its hash if it has been made: most ids are looked for first and stored then. */
let scratch = new Uint8Array(1024);
let scratchId: string | undefined;
let scratchLength = 0;
let scratchHash: number | undefined;

export const LONE_SURROGATE = /\p{Surrogate}/u;

/** Writes `id` to `scratch` as UTF-8. @returns its length in bytes; −1 when it has a lone surrogate. */
function encode(id: string): number {
  if (id === scratchId) return scratchLength;
  scratchId = undefined;
  scratchHash = undefined;
  scratchLength = encodeAnew(id);
  scratchId = id;
  return scratchLength;
}

function encodeAnew(id: string): number {
  const { length } = id;
  if (3 * length > scratch.length) scratch = new Uint8Array(3 * length);
  for (let i = 0; i < length; i++) {
    const unit = id.charCodeAt(i);
    if (unit > 0x7f) return LONE_SURROGATE.test(id) ? -1 : utf8Encoder().encodeInto(id, scratch).written;
    scratch[i] = unit;
  }
  return length;
}

/**
 * Generated with the first hash, not at import, when workerd does not allow random numbers. Where `crypto` is
 * hidden (old versions of Jest's jsdom) Math.random is used; users of a page cannot see its numbers either.
 */
let keys: readonly [number, number] | undefined;

function drawKeys(): readonly [number, number] {
  if (typeof crypto === "undefined") return [Math.random() * 2 ** 32, Math.random() * 2 ** 32];
  return crypto.getRandomValues(new Uint32Array(2)) as unknown as readonly [number, number];
}

/** The hash of the id that was encoded last: u32. */
function hashOf(length: number): number {
  scratchHash ??= sipHash(length);
  return scratchHash;
}

/** HalfSipHash-1-3 of the first `length` bytes of `scratch`: u32. */
function sipHash(length: number): number {
  keys ??= drawKeys();
  const [key0, key1] = keys;
  let v0 = key0 | 0;
  let v1 = key1 | 0;
  let v2 = 0x6c796765 ^ key0;
  let v3 = 0x74656462 ^ key1;
  const words = length >>> 2;
  // The words (the last one has the length in its highest byte), then three rounds to finish.
  for (let i = 0; i < words + 4; i++) {
    let word = 0;
    if (i < words) word = scratch[4 * i]! | (scratch[4 * i + 1]! << 8) | (scratch[4 * i + 2]! << 16) | (scratch[4 * i + 3]! << 24);
    else if (i === words) {
      word = length << 24;
      for (let k = 4 * words; k < length; k++) word |= scratch[k]! << (8 * (k & 3));
    } else if (i === words + 1) v2 ^= 0xff;
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  return (v1 ^ v3) >>> 0;
}
