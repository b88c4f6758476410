/**
 * Posting lists that grow: for each list, ascending document numbers with a frequency each. All lists share
 * blocks of bytes. A list is a chain of slices, each twice as long as the one before, so that a word that occurs
 * once takes few bytes and a common one few jumps (Lucene's ByteBlockPool has this form).
 *
 *   slice     postings …, then 4 bytes: the address of the next slice
 *   posting   varint of (difference to the document before) · 2 + (1 if the frequency is 1), then its varint if not
 */
import { LodestoneError } from "../errors/lodestone-error.ts";

const BLOCK_BITS = 16;
const BLOCK_BYTES = 1 << BLOCK_BITS;
const BLOCK_MASK = BLOCK_BYTES - 1;
const LINK_BYTES = 4;
const FIRST_SLICE_BYTES = 8;
const LAST_SLICE_BYTES = 1 << 14;
const NONE = 0xffffffff;

/** Of a list: where its first slice and its next byte are, where the link of its last slice is, its last document, and its length. */
const HEAD = 0;
const TAIL = 1;
const LINK = 2;
const LAST = 3;
const COUNT = 4;
const FIELDS = 5;

/** Of one list; valid until the next `read`. */
export interface Postings {
  readonly count: number;
  readonly documents: Uint32Array;
  readonly frequencies: Uint32Array;
}

export class PostingLists {
  readonly #blocks: Uint8Array[] = [];
  /** Where the next slice begins. */
  #end = 0;
  #lists = 0;
  /** FIELDS numbers of each list. */
  #fields = new Uint32Array(0);
  #documents = new Uint32Array(1024);
  #frequencies = new Uint32Array(1024);

  get memoryBytes(): number {
    return this.#blocks.length * BLOCK_BYTES + this.#fields.byteLength + 8 * this.#documents.length;
  }

  /** An empty list. @returns its number. */
  create(): number {
    const list = this.#lists++;
    if (FIELDS * list >= this.#fields.length) {
      this.#fields = grown(this.#fields, Math.max(1024 * FIELDS, 2 * this.#fields.length));
    }
    this.#fields[FIELDS * list + HEAD] = NONE;
    return list;
  }

  /** Postings of the list, those of removed documents included. */
  count(list: number): number {
    return this.#fields[FIELDS * list + COUNT]!;
  }

  /** @param document  above the last one of the list. @param frequency  1 or more. */
  append(list: number, document: number, frequency: number): void {
    const isFirst = this.#fields[FIELDS * list + HEAD] === NONE;
    if (isFirst) {
      const address = this.#slice(FIRST_SLICE_BYTES);
      this.#fields[FIELDS * list + HEAD] = address;
      this.#fields[FIELDS * list + TAIL] = address;
      this.#fields[FIELDS * list + LINK] = address + FIRST_SLICE_BYTES - LINK_BYTES;
    }
    const difference = isFirst ? document : document - this.#fields[FIELDS * list + LAST]!;
    // Beyond 2³¹ a shift would lose a bit.
    this.#varint(list, 2 * difference + (frequency === 1 ? 1 : 0));
    if (frequency !== 1) this.#varint(list, frequency);
    this.#fields[FIELDS * list + LAST] = document;
    this.#fields[FIELDS * list + COUNT]!++;
  }

  /** Those of its documents that are below `end`. */
  read(list: number, end: number): Postings {
    const most = this.#fields[FIELDS * list + COUNT]!;
    if (most > this.#documents.length) {
      this.#documents = new Uint32Array(2 * most);
      this.#frequencies = new Uint32Array(2 * most);
    }
    const documents = this.#documents;
    const frequencies = this.#frequencies;
    if (most === 0) return { count: 0, documents, frequencies };
    const tail = this.#fields[FIELDS * list + TAIL]!;
    let address = this.#fields[FIELDS * list + HEAD]!;
    let size = FIRST_SLICE_BYTES;
    let block = this.#blocks[address >>> BLOCK_BITS]!;
    let at = address & BLOCK_MASK;
    let limit = at + size - LINK_BYTES;
    let document = 0;
    let count = 0;
    let value = 0;
    let factor = 1;
    let isFrequency = false;
    let stop = address >>> BLOCK_BITS === tail >>> BLOCK_BITS ? tail & BLOCK_MASK : NONE;
    for (;;) {
      if (at === limit) {
        if (at === stop) break;
        address = readLink(block, at);
        size = Math.min(2 * size, LAST_SLICE_BYTES);
        block = this.#blocks[address >>> BLOCK_BITS]!;
        at = address & BLOCK_MASK;
        limit = at + size - LINK_BYTES;
        stop = address >>> BLOCK_BITS === tail >>> BLOCK_BITS ? tail & BLOCK_MASK : NONE;
      }
      if (at === stop && factor === 1 && !isFrequency) break;
      const byte = block[at++]!;
      if (byte >= 128) {
        value += (byte - 128) * factor;
        factor *= 128;
        continue;
      }
      value += byte * factor;
      if (isFrequency) {
        frequencies[count++] = value;
        isFrequency = false;
      } else {
        document += value >= 2 ** 31 ? Math.floor(value / 2) : value >>> 1;
        if (document >= end) break;
        documents[count] = document;
        if (value % 2 === 1) frequencies[count++] = 1;
        else isFrequency = true;
      }
      value = 0;
      factor = 1;
    }
    return { count, documents, frequencies };
  }

  #varint(list: number, value: number): void {
    let left = value;
    while (left >= 128) {
      this.#byte(list, 128 + (left % 128));
      left = Math.floor(left / 128);
    }
    this.#byte(list, left);
  }

  #byte(list: number, byte: number): void {
    let tail = this.#fields[FIELDS * list + TAIL]!;
    if (tail === this.#fields[FIELDS * list + LINK]) tail = this.#extend(list, tail);
    this.#blocks[tail >>> BLOCK_BITS]![tail & BLOCK_MASK] = byte;
    this.#fields[FIELDS * list + TAIL] = tail + 1;
  }

  /** @returns where the next slice begins. */
  #extend(list: number, link: number): number {
    const block = this.#blocks[link >>> BLOCK_BITS]!;
    const at = link & BLOCK_MASK;
    const size = Math.min(2 * readLink(block, at), LAST_SLICE_BYTES);
    const address = this.#slice(size);
    for (let i = 0; i < LINK_BYTES; i++) block[at + i] = address >>> (8 * i);
    this.#fields[FIELDS * list + LINK] = address + size - LINK_BYTES;
    return address;
  }

  /** Until a slice has a next one, the place of its link says how long it is. */
  #slice(size: number): number {
    let address = this.#end;
    if ((address & BLOCK_MASK) + size > BLOCK_BYTES || this.#blocks[address >>> BLOCK_BITS] === undefined) {
      address = this.#blocks.length * BLOCK_BYTES;
      if (address >= 2 ** 32 - BLOCK_BYTES) throw new LodestoneError("OUT_OF_MEMORY", "The words of one table take more than 4 GB.");
      this.#blocks.push(new Uint8Array(BLOCK_BYTES));
    }
    this.#end = address + size;
    const block = this.#blocks[address >>> BLOCK_BITS]!;
    const link = (address & BLOCK_MASK) + size - LINK_BYTES;
    for (let i = 0; i < LINK_BYTES; i++) block[link + i] = size >>> (8 * i);
    return address;
  }
}

function readLink(block: Uint8Array, at: number): number {
  return (block[at]! | (block[at + 1]! << 8) | (block[at + 2]! << 16) | (block[at + 3]! << 24)) >>> 0;
}

/** A longer copy; the rest is 0. */
export function grown(array: Uint32Array, length: number): Uint32Array<ArrayBuffer> {
  const next = new Uint32Array(length);
  next.set(array);
  return next;
}
