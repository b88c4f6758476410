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
  /** Of a buffer that only this frame has: it can be transferred to another thread. */
  readonly vectors: Float32Array<ArrayBuffer>;
  /** Of the frame as it came. */
  readonly bytes: number;
}

/**
 * Cuts pieces of bytes, as they arrive, into frames. Each byte is copied once, out of its piece into the buffer of its frame.
 * @throws {RangeError} for bytes that are none; the connection or the file is of no use then.
 */
export class FrameReader {
  readonly #prefix = new Uint8Array(PREFIX_BYTES);
  /** Head and body of the frame that has not come whole; undefined: its beginning has not. */
  #rest: Uint8Array<ArrayBuffer> | undefined;
  /** Of the prefix, or of the rest. */
  #filled = 0;

  /** Bytes of a frame that has not come whole. */
  get pendingBytes(): number {
    return this.#filled + (this.#rest === undefined ? 0 : PREFIX_BYTES);
  }

  *read(piece: Uint8Array): Generator<ReadFrame, void, undefined> {
    for (let at = 0; ; ) {
      const into = this.#rest ?? this.#prefix;
      const taken = piece.subarray(at, at + into.length - this.#filled);
      into.set(taken, this.#filled);
      this.#filled += taken.length;
      at += taken.length;
      if (this.#filled < into.length) return;
      this.#filled = 0;
      const [headBytes, bodyBytes] = lengthsOf(this.#prefix);
      if (this.#rest === undefined) this.#rest = new Uint8Array(headBytes + bodyBytes);
      else {
        const whole = this.#rest;
        this.#rest = undefined;
        yield decodeFrame(whole, headBytes);
      }
    }
  }
}

/** Of the head and the body. */
function lengthsOf(prefix: Uint8Array<ArrayBuffer>): [number, number] {
  const view = new DataView(prefix.buffer);
  const [headBytes, bodyBytes] = [view.getUint32(0, true), view.getUint32(4, true)];
  const length = PREFIX_BYTES + headBytes + bodyBytes;
  // Elements have to be aligned.
  if (length > MOST_FRAME_BYTES || headBytes % 4 !== 0 || bodyBytes % 4 !== 0) throw new RangeError(`A frame of ${length} bytes is none.`);
  return [headBytes, bodyBytes];
}

function decodeFrame(bytes: Uint8Array<ArrayBuffer>, headBytes: number): ReadFrame {
  decoder ??= new TextDecoder("utf-8", { fatal: true });
  const frame = JSON.parse(decoder.decode(bytes.subarray(0, headBytes))) as Frame;
  const vectors = new Float32Array(bytes.buffer, headBytes);
  if (!isLittleEndian()) {
    const swapped = new DataView(bytes.buffer, headBytes);
    for (let i = 0; i < vectors.length; i++) vectors[i] = swapped.getFloat32(4 * i, true);
  }
  return { frame, vectors, bytes: PREFIX_BYTES + bytes.length };
}
