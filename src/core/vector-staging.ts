/**
 * Buffers for vectors on their way to the workers. A worker that gets a buffer of its own with each message has
 * it accounted to its heap, and V8 collects that whole heap every few messages: a third of the time of loading
 * a million vectors. Memory shared between threads is used again and again instead. A page that is not
 * cross-origin isolated has none; its vectors are transferred.
 */
const MAX_BUFFERS = 8;
const MIN_BYTES = 1 << 16;
/** Longer messages are seldom, and their buffers are not kept. */
const MAX_BYTES = 1 << 21;

export class VectorStaging {
  readonly #free: SharedArrayBuffer[] = [];
  #count = 0;

  /** Room for so many elements. `give` it back when the worker has answered. */
  take(elements: number): Float32Array {
    const bytes = 4 * elements;
    if (typeof SharedArrayBuffer === "undefined" || bytes > MAX_BYTES) return new Float32Array(elements);
    const fitting = this.#free.findIndex(({ byteLength }) => byteLength >= bytes);
    if (fitting !== -1) return new Float32Array(this.#free.splice(fitting, 1)[0]!, 0, elements);
    if (this.#free.pop() !== undefined) this.#count--;
    if (this.#count === MAX_BUFFERS) return new Float32Array(elements);
    this.#count++;
    return new Float32Array(new SharedArrayBuffer(Math.max(bytes, MIN_BYTES)), 0, elements);
  }

  give({ buffer }: Float32Array): void {
    if (typeof SharedArrayBuffer !== "undefined" && buffer instanceof SharedArrayBuffer) this.#free.push(buffer);
  }
}
