/**
 * The byte format of an index, little-endian, the same in Node and browsers:
 *
 *   0  "LODESTN\0"     8 bytes
 *   8  version u32     1
 *   12 dimension u32
 *   16 count u32       vectors
 *   20 idBytes u32     UTF-8 length of all ids together
 *   24 idEnd u32[count]        where each id ends
 *      ids, UTF-8, padded with zeros to 4
 *      vectors f32[count × dimension]
 *      checksum u32    XXH32 (seed 0) of everything before it
 *
 * A change of any single bit changes the checksum: each step of XXH32 is a bijection of the word that it takes in.
 * Codes are not stored: they are made again from the vectors, so a snapshot cannot make a search skip what it must not.
 */
import { LodestoneError } from "../errors.ts";
import { xxh32 } from "./checksum.ts";
import { createDecoder, createEncoder } from "./utf8.ts";
import { MAX_DIMENSION } from "./vector-input.ts";

const MAGIC = "LODESTN\0";
const VERSION = 1;
const HEADER_BYTES = 24;

export interface Snapshot {
  dimension: number;
  ids: string[];
  /** f32[ids.length × dimension]. */
  matrix: Float32Array;
}

export function encodeSnapshot(dimension: number, ids: readonly string[], vectorAt: (i: number) => Float32Array): Uint8Array<ArrayBuffer> {
  const encoder = createEncoder();
  const encoded = ids.map((id) => encoder.encode(id));
  const idBytes = encoded.reduce((sum, id) => sum + id.length, 0);
  const idsStart = HEADER_BYTES + 4 * ids.length;
  const vectorsStart = idsStart + Math.ceil(idBytes / 4) * 4;
  const checksumStart = vectorsStart + 4 * ids.length * dimension;
  const bytes = new Uint8Array(checksumStart + 4);
  const view = new DataView(bytes.buffer);
  bytes.set(encoder.encode(MAGIC));
  view.setUint32(8, VERSION, true);
  view.setUint32(12, dimension, true);
  view.setUint32(16, ids.length, true);
  view.setUint32(20, idBytes, true);
  let end = 0;
  encoded.forEach((id, i) => {
    bytes.set(id, idsStart + end);
    end += id.length;
    view.setUint32(HEADER_BYTES + 4 * i, end, true);
  });
  const vectors = new Float32Array(bytes.buffer, vectorsStart, ids.length * dimension);
  for (let i = 0; i < ids.length; i++) vectors.set(vectorAt(i), i * dimension);
  view.setUint32(checksumStart, xxh32(bytes.subarray(0, checksumStart)), true);
  return bytes;
}

/** @throws {LodestoneError} CORRUPT. */
export function decodeSnapshot(bytes: Uint8Array): Snapshot {
  if (!ArrayBuffer.isView(bytes) || bytes[Symbol.toStringTag] !== "Uint8Array")
    throw new TypeError("bytes is not a Uint8Array; expected what toBytes gave.");
  if (bytes.length < HEADER_BYTES + 4) throw corrupt(`it has ${bytes.length} bytes, less than its header`);
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  const view = new DataView(aligned.buffer, aligned.byteOffset, aligned.byteLength);
  const decoder = createDecoder();
  for (let i = 0; i < MAGIC.length; i++) if (aligned[i] !== MAGIC.charCodeAt(i)) throw corrupt("it does not begin as one");
  const version = view.getUint32(8, true);
  if (version !== VERSION) throw corrupt(`it has version ${version}, this library reads version ${VERSION}`);
  const dimension = view.getUint32(12, true);
  const count = view.getUint32(16, true);
  const idBytes = view.getUint32(20, true);
  const idsStart = HEADER_BYTES + 4 * count;
  const vectorsStart = idsStart + Math.ceil(idBytes / 4) * 4;
  const checksumStart = vectorsStart + 4 * count * dimension;
  if (dimension < 1 || dimension > MAX_DIMENSION || checksumStart + 4 !== aligned.length) {
    throw corrupt(`it has ${aligned.length} bytes where its header asks for ${checksumStart + 4}`);
  }
  if (view.getUint32(checksumStart, true) !== xxh32(aligned.subarray(0, checksumStart))) throw corrupt("its checksum does not match");
  const ids: string[] = [];
  let start = 0;
  for (let i = 0; i < count; i++) {
    const end = view.getUint32(HEADER_BYTES + 4 * i, true);
    ids.push(decoder.decode(aligned.subarray(idsStart + start, idsStart + end)));
    start = end;
  }
  return { dimension, ids, matrix: new Float32Array(aligned.buffer, aligned.byteOffset + vectorsStart, count * dimension) };
}

function corrupt(why: string): LodestoneError {
  return new LodestoneError("CORRUPT", `The bytes are not a usable snapshot of an index: ${why}. Build the index again from its vectors.`);
}
