/**
 * The image of a shard whose vectors are in a file, that is, its checkpoint: its linear memory's part (assembly/sketch/image.ts), as pieces.
 *
 *   first    u32[8]: format, dimension, segments, bytes of a segment, dimensions of the basis or 0, zeros; f64: ε of the basis
 *   basis    if there is one
 *   segment  for each: u32[4]: bytes of the segment, of its centre, of its sketches, 0; then these, one after the other
 *
 * It is valid for the build and format that wrote it and for no other; the snapshot around it has the checksum. If rows
 * change while it is written, each is in it as it was at some moment, or not at all.
 */

import { BitSet } from "./bit-set.ts";
import { corrupt, damaged } from "./snapshot.ts";

/** 2: segments have checksums of their rows. Of 1, which had none, the index is built anew. */
const FORMAT = 2;
const HEADER_WORDS = 8;
const HEADER_BYTES = 4 * HEADER_WORDS + 8;
const SEGMENT_HEADER_BYTES = 16;
const NO_PLACE = 0xffff_ffff;

/** The exports of assembly/ that images need. Without the types of WebAssembly, which only `lib: dom` declares. */
export interface ImageExports {
  memory: { readonly buffer: ArrayBuffer };
  reserve(rows: number): number;
  segmentCount: { readonly value: unknown };
  segmentRows: { readonly value: unknown };
  segmentPtr(s: number): number;
  segmentSize(): bigint;
  placesOf(s: number): number;
  saveSegment(s: number): number;
  loadSegment(s: number, hasCentre: number, isSketched: number): number;
  adoptSegment(s: number): number;
  beginImage(): number;
  savedSkewness(): number;
  savedBasis(): number;
  savedBasisBytes(): number;
  loadBasis(dimensions: number): number;
  loadedBasisBytes(dimensions: number): number;
  adoptBasis(dimensions: number, epsilon: number): void;
}

export function* saveImage(core: ImageExports, dimension: number): Generator<Uint8Array<ArrayBuffer>, void, void> {
  const segments = core.segmentCount.value as number;
  const first = new Uint8Array(HEADER_BYTES);
  const basis = core.beginImage();
  new Uint32Array(first.buffer, 0, HEADER_WORDS).set([FORMAT, dimension, segments, Number(core.segmentSize()), basis]);
  new DataView(first.buffer).setFloat64(4 * HEADER_WORDS, core.savedSkewness(), true);
  const basisBytes = basis > 0 ? new Uint8Array(core.memory.buffer, core.savedBasis() >>> 0, core.savedBasisBytes()).slice() : undefined;
  yield first;
  if (basisBytes !== undefined) yield basisBytes;
  for (let s = 0; s < segments; s++) {
    const parts = partsAt(core, core.saveSegment(s));
    const piece = new Uint8Array(SEGMENT_HEADER_BYTES + parts.reduce((sum, { bytes }) => sum + bytes, 0));
    new Uint32Array(piece.buffer, 0, 3).set(parts.map(({ bytes }) => bytes));
    let at = SEGMENT_HEADER_BYTES;
    for (const { ptr, bytes } of parts) {
      piece.set(new Uint8Array(core.memory.buffer, ptr, bytes), at);
      at += bytes;
    }
    yield piece;
  }
}

/** How many pieces an image has, the first one included. @param first  if it is none, the shard says so. */
export function piecesOf(first: Uint8Array): number {
  if (first.length !== HEADER_BYTES) return 1;
  const header = viewOf(first);
  return 1 + (header.getUint32(16, true) > 0 ? 1 : 0) + header.getUint32(8, true);
}

/**
 * Takes the pieces in order, into an empty shard.
 * @param rowsThere  how many rows the file has.
 * @returns the places in use.
 * @throws {LodestoneError} CORRUPT when it is none of this shard; `noRoom` at the memory limit.
 */
export function* loadImage(
  core: ImageExports,
  { dimension, rowsThere, noRoom }: { dimension: number; rowsThere: number; noRoom: (rows: number) => Error },
): Generator<undefined, BitSet, Uint8Array> {
  const first = yield;
  if (first.length !== HEADER_BYTES) throw corrupt("an image of a shard does not begin as one");
  const header = viewOf(first);
  const [format, ofDimension, segments, segmentBytes, basis] = [0, 4, 8, 12, 16].map((at) => header.getUint32(at, true)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const size = Number(core.segmentSize());
  if (format !== FORMAT || ofDimension !== dimension || segmentBytes !== size) throw corrupt("an image of a shard is of another format");
  const segmentRows = core.segmentRows.value as number;
  const rows = segments * segmentRows;
  if (rows > 0 && core.reserve(rows) === 0) throw noRoom(rows);
  if (basis > 0) yield* loadBasis(core, basis, header.getFloat64(4 * HEADER_WORDS, true));
  const used = new BitSet();
  for (let s = 0; s < segments; s++) {
    yield* loadSegment(core, s, size, () => noRoom(rows));
    const places = new Uint32Array(core.memory.buffer, core.placesOf(s) >>> 0, segmentRows);
    for (const place of places) {
      if (place === NO_PLACE) continue;
      if (place >= rowsThere) throw damaged("it is shorter than it was");
      if (used.has(place)) throw corrupt("two rows have one place");
      used.add(place);
    }
  }
  return used;
}

function* loadBasis(core: ImageExports, dimensions: number, epsilon: number): Generator<undefined, void, Uint8Array> {
  const bytes = yield;
  const ptr = core.loadBasis(dimensions) >>> 0;
  if (ptr === 0 || bytes.length !== core.loadedBasisBytes(dimensions) || !(epsilon >= 0 && epsilon < 1))
    throw corrupt("a basis is of another size");
  new Uint8Array(core.memory.buffer).set(bytes, ptr);
  core.adoptBasis(dimensions, epsilon);
}

function* loadSegment(core: ImageExports, s: number, size: number, noRoom: () => Error): Generator<undefined, void, Uint8Array> {
  const piece = yield;
  if (piece.length < SEGMENT_HEADER_BYTES + size) throw corrupt("a segment is too short");
  const header = viewOf(piece);
  const [own, centre, sketches] = [0, 4, 8].map((at) => header.getUint32(at, true)) as [number, number, number];
  if (own !== size || piece.length !== SEGMENT_HEADER_BYTES + own + centre + sketches) throw corrupt("a segment is of another size");
  new Uint8Array(core.memory.buffer).set(piece.subarray(SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + own), core.segmentPtr(s) >>> 0);
  const at = core.loadSegment(s, centre > 0 ? 1 : 0, sketches > 0 ? 1 : 0);
  if (at === 0) throw noRoom();
  const parts = partsAt(core, at);
  let from = SEGMENT_HEADER_BYTES + own;
  for (const [i, bytes] of [centre, sketches].entries()) {
    const part = parts[i + 1]!;
    if (part.bytes !== bytes) throw corrupt("a part of a segment is of another size");
    new Uint8Array(core.memory.buffer).set(piece.subarray(from, from + bytes), part.ptr);
    from += bytes;
  }
  if (core.adoptSegment(s) === 0) throw noRoom();
}

/** The address and size of the segment, its centre and its sketches. */
function partsAt(core: ImageExports, at: number): { ptr: number; bytes: number }[] {
  const words = new Uint32Array(core.memory.buffer, at >>> 0, 6);
  return [0, 2, 4].map((i) => ({ ptr: words[i]!, bytes: words[i + 1]! }));
}

/** Of a piece that begins anywhere in its buffer. */
function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Begins a loader. @returns what takes its pieces; undefined after the last. It throws CORRUPT when there are too few or too many. */
export function startLoader(loader: Generator<undefined, void, Uint8Array>): (piece: Uint8Array | undefined) => void {
  let isDone = loader.next().done;
  return (piece) => {
    if ((piece === undefined) !== isDone) throw corrupt("an image of a shard has another number of pieces");
    if (piece !== undefined) isDone = loader.next(piece).done;
  };
}
