/** Reads bytes in pieces from any source that a platform offers. */
import { type AbortSignalLike, throwIfAborted } from "./abort-signal.ts";

/** A `ReadableStream` of bytes, declared so that these types do not need `lib: dom`. */
export type ByteStream = typeof globalThis extends { Response: { prototype: { body: infer Stream } } }
  ? NonNullable<Stream>
  : { getReader(): unknown };

interface Reader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(reason?: unknown): Promise<void>;
}

/** A stream, a Blob or File, all bytes at once, or pieces of them. */
export type ByteSource =
  | { getReader(): unknown }
  | { stream(): { getReader(): unknown } }
  | AsyncIterable<Uint8Array>
  | Iterable<Uint8Array>
  | Uint8Array;

/** Reads exact lengths from a source. */
export class ByteReader {
  readonly #reader: Reader;
  readonly #signal: AbortSignalLike | undefined;
  readonly #onAbort = () => void this.#reader.cancel(this.#signal?.reason).catch(() => {});
  #piece: Uint8Array = new Uint8Array(0);

  /** @throws {TypeError} if it is not a source of bytes. */
  constructor(source: ByteSource, signal: AbortSignalLike | undefined) {
    this.#reader = readerOf(source);
    this.#signal = signal;
    signal?.addEventListener("abort", this.#onAbort);
  }

  /** The next `length` bytes, or fewer at the end, in a buffer of their own. @throws the signal's reason. */
  async take(length: number): Promise<Uint8Array<ArrayBuffer>> {
    throwIfAborted(this.#signal);
    const whole = new Uint8Array(length);
    let filled = 0;
    while (filled < length) {
      if (this.#piece.length === 0) {
        const { done, value } = await this.#reader.read();
        throwIfAborted(this.#signal);
        if (done) break;
        if (!ArrayBuffer.isView(value)) throw new TypeError("The source gives something else than Uint8Arrays.");
        this.#piece = value;
        continue;
      }
      const part = this.#cut(Math.min(length - filled, this.#piece.length));
      whole.set(part, filled);
      filled += part.length;
    }
    return filled === length ? whole : whole.subarray(0, filled);
  }

  /** Whether nothing is left. */
  async isAtEnd(): Promise<boolean> {
    return (await this.take(1)).length === 0;
  }

  /** Stops reading from the source. */
  async close(reason?: unknown): Promise<void> {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    await this.#reader.cancel(reason).catch(() => {});
  }

  #cut(length: number): Uint8Array {
    const part = this.#piece.subarray(0, length);
    this.#piece = this.#piece.subarray(length);
    return part;
  }
}

function readerOf(source: ByteSource): Reader {
  if (source !== null && typeof source === "object") {
    if (ArrayBuffer.isView(source)) return iteratorReader([source as Uint8Array][Symbol.iterator]());
    if ("stream" in source) return source.stream().getReader() as Reader;
    if ("getReader" in source) return source.getReader() as Reader;
    if (Symbol.asyncIterator in source) return iteratorReader(source[Symbol.asyncIterator]());
    if (Symbol.iterator in source) return iteratorReader(source[Symbol.iterator]());
  }
  throw new TypeError("The source is not a ReadableStream, Blob, Uint8Array or iterable of Uint8Arrays.");
}

function iteratorReader(iterator: AsyncIterator<Uint8Array> | Iterator<Uint8Array>): Reader {
  return {
    read: async () => {
      const { done, value } = await iterator.next();
      return { done: done === true, value };
    },
    cancel: async () => void (await iterator.return?.()),
  };
}
