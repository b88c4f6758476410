/**
 * What a replica is sent, and keeps: frames, each a JSON head and float32 vectors. Little-endian:
 *
 *     uint32 bytes of the head | uint32 bytes of the body | the head, padded with spaces to a multiple of 4 | float32 …
 *
 * `open` says what follows is of. `records` have values of records, or ids of those that are gone. A frame with `at` ends a group:
 * everything up to it is the table's state at that position, and nothing before it is. `restart` means that what the replica has
 * cannot be brought up to date. `alive` is sent when nothing else is.
 */

/** As in a schema of the API. */
export interface FrameColumn {
  readonly name: string;
  readonly type: string;
  readonly dimension?: number;
}

/** Of this format. */
export const FRAMES_VERSION = 3;

export interface OpenFrame {
  readonly type: "open";
  readonly version: number;
  readonly columns: readonly FrameColumn[];
  /** Of the branch: positions of another life say nothing about this one. */
  readonly life: string;
  /** Who counts the reads of the changes: numbers of another one say nothing about these. */
  readonly reading: string;
}

export interface RecordsFrame {
  readonly type: "records";
  readonly ids: readonly string[];
  /** By the number of the column: its values, as JSON can hold them; int and datetime (microseconds since 1970) as text, json as text. */
  readonly values: readonly (readonly unknown[] | null)[];
  /**
   * By the number of a vector column: which of the records have one, if not all. Absent: all have all of them. The body has them, column
   * by column.
   */
  readonly present?: readonly (readonly number[] | "all" | null)[];
  readonly deleted?: readonly string[];
  readonly at?: string;
}

export type Frame =
  | OpenFrame
  | RecordsFrame
  | { readonly type: "position"; readonly at: string }
  | { readonly type: "alive" }
  | { readonly type: "restart"; readonly reason: string };

const PREFIX_BYTES = 8;
/** No frame is larger; its sender makes smaller ones. */
const MOST_FRAME_BYTES = 64 * 2 ** 20;

// Made when first used: importing the library needs neither.
let encoder: TextEncoder | undefined;
let decoder: TextDecoder | undefined;
const isLittleEndian = (): boolean => new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** @param vectors  of the columns that have some, in their order. */
export function encodeFrame(frame: Frame, vectors: readonly Float32Array[] = []): Uint8Array<ArrayBuffer> {
  encoder ??= new TextEncoder();
  const text = encoder.encode(JSON.stringify(frame));
  const headBytes = Math.ceil(text.length / 4) * 4;
  const floats = vectors.reduce((sum, own) => sum + own.length, 0);
  const bytes = new Uint8Array(PREFIX_BYTES + headBytes + 4 * floats);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, headBytes, true);
  view.setUint32(4, 4 * floats, true);
  bytes.set(text, PREFIX_BYTES);
  bytes.fill(0x20, PREFIX_BYTES + text.length, PREFIX_BYTES + headBytes);
  let at = PREFIX_BYTES + headBytes;
  for (const own of vectors) {
    if (isLittleEndian()) bytes.set(new Uint8Array(own.buffer, own.byteOffset, own.byteLength), at);
    else for (let i = 0; i < own.length; i++) view.setFloat32(at + 4 * i, own[i]!, true);
    at += own.byteLength;
  }
  return bytes;
}

export interface ReadFrame {
  readonly frame: Frame;
  readonly vectors: Float32Array<ArrayBuffer>;
  /** Of the frame as it came. */
  readonly bytes: number;
}

/**
 * Cuts pieces of bytes, as they arrive, into frames.
 * @throws {RangeError} for bytes that are none; the connection or the file is of no use then.
 */
export class FrameReader {
  /** Of a frame that has not come whole. Joined once, when it has: each byte of a long frame is copied once. */
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  /** Of that frame, as soon as its beginning is there. */
  #wantedBytes = PREFIX_BYTES;

  /** Bytes of a frame that has not come whole. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  *read(piece: Uint8Array): Generator<ReadFrame, void, undefined> {
    this.#pending.push(piece);
    this.#pendingBytes += piece.length;
    if (this.#pendingBytes < this.#wantedBytes) return;
    let bytes = this.#pending.length === 1 ? piece : joined(this.#pending, this.#pendingBytes);
    for (;;) {
      const length = frameLength(bytes);
      this.#wantedBytes = length ?? PREFIX_BYTES;
      if (length === undefined || bytes.length < length) break;
      yield decodeFrame(bytes.subarray(0, length));
      bytes = bytes.subarray(length);
    }
    this.#pending = bytes.length === 0 ? [] : [bytes];
    this.#pendingBytes = bytes.length;
  }
}

/** undefined: its beginning is not there yet. */
function frameLength(bytes: Uint8Array): number | undefined {
  if (bytes.length < PREFIX_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = PREFIX_BYTES + view.getUint32(0, true) + view.getUint32(4, true);
  if (length > MOST_FRAME_BYTES) throw new RangeError(`A frame of ${length} bytes is none.`);
  return length;
}

function decodeFrame(bytes: Uint8Array): ReadFrame {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headBytes = view.getUint32(0, true);
  decoder ??= new TextDecoder("utf-8", { fatal: true });
  const frame = JSON.parse(decoder.decode(bytes.subarray(PREFIX_BYTES, PREFIX_BYTES + headBytes))) as Frame;
  // A copy, whose elements are aligned; `slice` of a Buffer would not be one.
  const body = new Uint8Array(bytes.subarray(PREFIX_BYTES + headBytes));
  const vectors = new Float32Array(body.buffer);
  if (!isLittleEndian()) {
    const swapped = new DataView(body.buffer);
    for (let i = 0; i < vectors.length; i++) vectors[i] = swapped.getFloat32(4 * i, true);
  }
  return { frame, vectors, bytes: bytes.length };
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
