/**
 * The byte format of an index, little-endian, the same in Node and browsers:
 *
 *   0  "LODESTN\0"     8 bytes
 *   8  version u32     1; 2 when values follow the vectors; 3 and 4 are 1 and 2 of an index whose vectors are in a file
 *   12 dimension u32
 *   16 count u32       vectors
 *   20 idBytes u32     UTF-8 length of all ids together
 *   24 idEnd u32[count]        where each id ends
 *      ids, UTF-8, padded with zeros to 4
 *      vectors f32[count × dimension]
 *      version 3 and 4, in place of the vectors: row u32[count], ascending; u32 number of shards; pieces of the shards'
 *                 images (shard-image.ts), shard after shard, each a byte length u32 and its bytes padded with zeros to 4;
 *                 u32 0
 *      version 2 and 4: texts, each a byte length u32 and UTF-8 padded with zeros to 4: the schema of the columns,
 *                 then the values of ROWS_PER_TEXT rows each
 *      checksum u32    XXH32 (seed 0) of everything before it
 *
 * A change of any single bit changes the checksum: each step of XXH32 is a bijection of the word that it
 * takes in. In versions 1 and 2 codes are not stored. They are recomputed from the vectors, so a snapshot cannot make a
 * search skip a row wrongly. Those of versions 3 and 4 are as good as the checksum; the vectors themselves are checked
 * whenever they are read.
 *
 * Snapshots are written and read in pieces of about PIECE_BYTES, so nobody has to hold the whole or wait for
 * it.
 */
import { MAX_DIMENSION } from "../dimension.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { decodeAt, utf8Encoder } from "./utf8.ts";

const MAGIC = "LODESTN\0";
const HEADER_BYTES = 24;
const CHECKSUM_BYTES = 4;
const PIECE_BYTES = 2 ** 20;
/** Size of a piece of ids, which take longer per byte: some milliseconds. */
const ID_PIECE_BYTES = 2 ** 15;
const ENDS_PER_PIECE = 2 ** 14;
/** Rows per text of values: some milliseconds to write or read. */
const ROWS_PER_TEXT = 1024;
/** Rows are numbered by u32, and a mask has a bit for each. */
const MAX_ROWS = 2 ** 32 - 1;
/** A greater length, of a text or of a piece of an image, can only come from damage. */
const MAX_LENGTH_BYTES = 2 ** 30;

/** Rows of vectors in one piece. */
function rowsPerPiece(dimension: number): number {
  return Math.max(1, Math.floor(PIECE_BYTES / (4 * dimension)));
}

/**
 * What the writer needs next: vectors, f32[rows × dimension], or the numbers of rows, or the next piece of an image, undefined after
 * the last; or values, as text. `totalRows`: number of ids.
 */
export type SnapshotWant =
  | { vectors: [from: number, to: number]; totalRows: number }
  | { rows: [from: number, to: number] }
  | { image: true }
  | { values: [from: number, to: number] };

export type SnapshotGift = Float32Array | Uint32Array | Uint8Array | string | undefined;

/** A greater number of shards can only come from damage. */
const MAX_SHARDS = 1024;
/** Row numbers in one piece. */
const NUMBERS_PER_PIECE = 2 ** 16;

export interface SnapshotContents {
  readonly dimension: number;
  /** All ids in row order, in steps of some milliseconds at most. Called once, before vectors and values. */
  gatherIds(): Iterable<readonly string[]>;
  /** The schema of the columns, if the index has any. */
  readonly schema: string | undefined;
  /** Of an index whose vectors are in a file: its number of shards. */
  readonly imageShards?: number | undefined;
}

/**
 * Yields the pieces of a snapshot in order. Where it needs vectors or values, it yields a SnapshotWant and
 * expects them through `next`. While it gathers ids it yields undefined: it needs nothing, but lets others run.
 */
export function* writeSnapshot(
  contents: SnapshotContents,
): Generator<Uint8Array<ArrayBuffer> | SnapshotWant | undefined, void, SnapshotGift> {
  const { dimension, schema, imageShards } = contents;
  const checksum = new Xxh32();
  const summed = (bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => {
    checksum.update(bytes);
    return bytes;
  };
  const encoder = utf8Encoder();
  const steps: (readonly string[])[] = [];
  let count = 0;
  let idBytes = 0;
  for (const ids of contents.gatherIds()) {
    for (const id of ids) idBytes += utf8Length(id);
    count += ids.length;
    if (ids.length > 0) steps.push(ids);
    yield undefined;
  }
  const header = new Uint8Array(HEADER_BYTES);
  header.set(encoder.encode(MAGIC));
  const version = (schema === undefined ? 1 : 2) + (imageShards === undefined ? 0 : 2);
  new Uint32Array(header.buffer, 8).set([version, dimension, count, idBytes]);
  yield summed(header);
  let end = 0;
  for (const ids of steps) yield summed(bytesOf(Uint32Array.from(ids, (id) => (end += utf8Length(id)))));
  for (const ids of steps) yield summed(encoder.encode(ids.join("")));
  yield summed(new Uint8Array(padding(idBytes)));
  const step = rowsPerPiece(dimension);
  for (let from = 0; from < count && imageShards === undefined; from += step) {
    const matrix = (yield { vectors: [from, Math.min(from + step, count)], totalRows: count }) as Float32Array<ArrayBuffer>;
    yield summed(bytesOf(matrix));
  }
  if (imageShards !== undefined) {
    for (let from = 0; from < count; from += NUMBERS_PER_PIECE) {
      yield summed(bytesOf((yield { rows: [from, Math.min(from + NUMBERS_PER_PIECE, count)] }) as Uint32Array<ArrayBuffer>));
    }
    yield summed(bytesOf(Uint32Array.of(imageShards)));
    for (let piece = yield { image: true }; piece !== undefined; piece = yield { image: true }) {
      const { length } = piece as Uint8Array;
      yield summed(bytesOf(Uint32Array.of(length)));
      yield summed(piece as Uint8Array<ArrayBuffer>);
      yield summed(new Uint8Array(padding(length)));
    }
    yield summed(bytesOf(Uint32Array.of(0)));
  }
  if (schema !== undefined) {
    const text = (value: string): Uint8Array<ArrayBuffer> => {
      const encoded = encoder.encode(value);
      const bytes = new Uint8Array(4 + encoded.length + padding(encoded.length));
      new DataView(bytes.buffer).setUint32(0, encoded.length, true);
      bytes.set(encoded, 4);
      return summed(bytes);
    };
    yield text(schema);
    for (let from = 0; from < count; from += ROWS_PER_TEXT) {
      yield text((yield { values: [from, Math.min(from + ROWS_PER_TEXT, count)] }) as string);
    }
  }
  yield bytesOf(Uint32Array.of(checksum.digest()));
}

/**
 * Receives what a reader finds, in this order. It may have stored rows before a damaged byte is found, and
 * must then undo that.
 */
export interface SnapshotVisitor {
  /** Called before any row. `hasValues`: values will follow. `isImage`: images and the numbers of rows, not vectors. */
  start(dimension: number, count: number, hasValues: boolean, isImage: boolean): void;
  /** The elements are not checked. */
  rows(ids: readonly string[], matrix: Float32Array<ArrayBuffer>): void;
  /** The numbers of the next rows, ascending. */
  numbers(ids: readonly string[], rows: Uint32Array): void;
  shards(count: number): void;
  /** The next piece of an image; undefined after the last. */
  image(piece: Uint8Array<ArrayBuffer> | undefined): void;
  schema(schema: string): void;
  /** The values of the next `ids`, in the order of `rows`. */
  values(ids: readonly string[], text: string): void;
}

/**
 * Reads a snapshot: yields the number of bytes that it needs next and expects exactly that many, in a buffer of their own, so that views
 * of them are aligned. @throws {LodestoneError} CORRUPT.
 */
export function* readSnapshot(visitor: SnapshotVisitor): Generator<number, void, Uint8Array<ArrayBuffer>> {
  const checksum = new Xxh32();
  function* take(length: number): ReturnType<Take> {
    const bytes = yield length;
    checksum.update(bytes);
    return bytes;
  }
  const head = yield* take(HEADER_BYTES);
  for (let i = 0; i < MAGIC.length; i++) if (head[i] !== MAGIC.charCodeAt(i)) throw corrupt("it does not begin as one");
  const [version, dimension, count, idBytes] = new Uint32Array(head.buffer, 8) as unknown as [number, number, number, number];
  if (!(version >= 1 && version <= 4)) throw corrupt(`it has version ${version}, this library reads versions 1 to 4`);
  const isImage = version > 2;
  const hasValues = version % 2 === 0;
  if (dimension < 1 || dimension > MAX_DIMENSION) throw corrupt(`it has dimension ${dimension}`);
  const ids = yield* takeIds(take, count, idBytes);
  visitor.start(dimension, count, hasValues, isImage);
  if (isImage) yield* readImages(take, ids, visitor);
  const step = rowsPerPiece(dimension);
  for (let from = 0; from < count && !isImage; from += step) {
    const rows = Math.min(step, count - from);
    const bytes = yield* take(4 * rows * dimension);
    visitor.rows(ids.slice(from, from + rows), new Float32Array(bytes.buffer));
  }
  if (hasValues) {
    const text = function* (): Generator<number, string, Uint8Array<ArrayBuffer>> {
      const length = new DataView((yield* take(4)).buffer).getUint32(0, true);
      if (length > MAX_LENGTH_BYTES) throw corrupt(`it has a text of ${length} bytes`);
      const bytes = yield* take(length + padding(length));
      return decode(bytes, 0, length);
    };
    visitor.schema(yield* text());
    for (let from = 0; from < count; from += ROWS_PER_TEXT) visitor.values(ids.slice(from, from + ROWS_PER_TEXT), yield* text());
  }
  const computed = checksum.digest();
  const stored = new DataView((yield* take(CHECKSUM_BYTES)).buffer).getUint32(0, true);
  if (stored !== computed) throw corrupt("its checksum does not match");
}

type Take = (length: number) => Generator<number, Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>;

/** What versions 3 and 4 have in place of the vectors. */
function* readImages(take: Take, ids: readonly string[], visitor: SnapshotVisitor): Generator<number, void, Uint8Array<ArrayBuffer>> {
  let next = 0;
  for (let from = 0; from < ids.length; from += NUMBERS_PER_PIECE) {
    const numbers = new Uint32Array((yield* take(4 * Math.min(NUMBERS_PER_PIECE, ids.length - from))).buffer);
    for (const row of numbers) {
      if (row < next || row >= MAX_ROWS) throw corrupt("the numbers of its rows do not ascend");
      next = row + 1;
    }
    visitor.numbers(ids.slice(from, from + numbers.length), numbers);
  }
  const word = function* (): Generator<number, number, Uint8Array<ArrayBuffer>> {
    return new DataView((yield* take(4)).buffer).getUint32(0, true);
  };
  const shards = yield* word();
  if (shards < 1 || shards > MAX_SHARDS) throw corrupt(`it has ${shards} shards`);
  visitor.shards(shards);
  for (let length = yield* word(); length > 0; length = yield* word()) {
    if (length > MAX_LENGTH_BYTES) throw corrupt(`it has a piece of ${length} bytes`);
    const bytes = yield* take(length + padding(length));
    visitor.image(bytes.subarray(0, length));
  }
  visitor.image(undefined);
}

/** Also in pieces, so that a damaged count does not allocate more than there is. */
function* takeIds(take: Take, count: number, idBytes: number): Generator<number, string[], Uint8Array<ArrayBuffer>> {
  const ends: Uint32Array[] = [];
  for (let from = 0; from < count; from += ENDS_PER_PIECE) {
    ends.push(new Uint32Array((yield* take(4 * Math.min(ENDS_PER_PIECE, count - from))).buffer));
  }
  const ids: string[] = [];
  let rest = new Uint8Array(0);
  let start = 0;
  let taken = 0;
  for (const piece of ends) {
    for (const end of piece) {
      if (end < start || end > idBytes) throw corrupt("an id ends before it begins");
      while (taken < end) {
        const more = yield* take(Math.min(ID_PIECE_BYTES, idBytes - taken));
        const joined = new Uint8Array(rest.length + more.length);
        joined.set(rest);
        joined.set(more, rest.length);
        rest = joined;
        taken += more.length;
      }
      const length = end - start;
      const at = rest.length - (taken - start);
      ids.push(decode(rest, at, length));
      start = end;
    }
    rest = rest.slice(rest.length - (taken - start));
  }
  if (start !== idBytes) throw corrupt("its ids do not fill their place");
  yield* take(padding(idBytes));
  return ids;
}

export function corrupt(why: string): LodestoneError {
  return new LodestoneError("CORRUPT", `The bytes are not a usable snapshot of an index: ${why}. Build the index again from its vectors.`);
}

/** @param why  what is wrong with the file. */
export function damaged(why: string, cause?: unknown): LodestoneError {
  return new LodestoneError("CORRUPT", `The file of the vectors is damaged: ${why}. Build the index again from its vectors.`, { cause });
}

function decode(bytes: Uint8Array, start: number, length: number): string {
  try {
    return decodeAt(bytes, start, length);
  } catch {
    throw corrupt("a text in it is not UTF-8");
  }
}

function padding(bytes: number): number {
  return (4 - (bytes % 4)) % 4;
}

/** Ids are well-formed, so a surrogate is half of a sequence of four bytes. */
function utf8Length(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) length += unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return length;
}

/** Typed arrays are little-endian on every machine that this runs on (WebAssembly is), like the file. */
function bytesOf(words: Uint32Array<ArrayBuffer> | Float32Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/**
 * XXH32, seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). It detects damage; it is
 * not cryptographic.
 */
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

const BLOCK_BYTES = 16;

/** Computes the checksum of bytes that arrive in pieces. */
export class Xxh32 {
  #a = (P1 + P2) | 0;
  #b = P2 | 0;
  #c = 0;
  #d = -P1 | 0;
  #length = 0;
  /** The bytes of an incomplete block. */
  readonly #rest = new Uint8Array(BLOCK_BYTES);
  #restLength = 0;

  update(bytes: Uint8Array): void {
    this.#length += bytes.length;
    let from = 0;
    if (this.#restLength > 0) {
      from = Math.min(BLOCK_BYTES - this.#restLength, bytes.length);
      this.#rest.set(bytes.subarray(0, from), this.#restLength);
      this.#restLength += from;
      if (this.#restLength < BLOCK_BYTES) return;
      this.#blocks(this.#rest);
      this.#restLength = 0;
    }
    const whole = from + Math.floor((bytes.length - from) / BLOCK_BYTES) * BLOCK_BYTES;
    const blocks = bytes.subarray(from, whole);
    this.#blocks(blocks.byteOffset % 4 === 0 ? blocks : blocks.slice());
    this.#rest.set(bytes.subarray(whole));
    this.#restLength = bytes.length - whole;
  }

  #blocks(bytes: Uint8Array): void {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    let a = this.#a;
    let b = this.#b;
    let c = this.#c;
    let d = this.#d;
    for (let at = 0; at < words.length; at += 4) {
      a = round(a, words[at]!);
      b = round(b, words[at + 1]!);
      c = round(c, words[at + 2]!);
      d = round(d, words[at + 3]!);
    }
    this.#a = a;
    this.#b = b;
    this.#c = c;
    this.#d = d;
  }

  digest(): number {
    let hash = this.#length < BLOCK_BYTES ? P5 : rotate(this.#a, 1) + rotate(this.#b, 7) + rotate(this.#c, 12) + rotate(this.#d, 18);
    hash = (hash + this.#length) | 0;
    const words = new Int32Array(this.#rest.buffer, 0, this.#restLength >> 2);
    for (const word of words) hash = Math.imul(rotate((hash + Math.imul(word, P3)) | 0, 17), P4);
    for (let i = words.length << 2; i < this.#restLength; i++) {
      hash = Math.imul(rotate((hash + Math.imul(this.#rest[i]!, P5)) | 0, 11), P1);
    }
    hash = Math.imul(hash ^ (hash >>> 15), P2);
    hash = Math.imul(hash ^ (hash >>> 13), P3);
    return (hash ^ (hash >>> 16)) >>> 0;
  }
}
