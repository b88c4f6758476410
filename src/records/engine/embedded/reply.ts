/**
 * PostgreSQL's reply to one unit, on its way to the main thread. It is posted in pieces of about a MiB, as
 * fast as the main thread takes them, and without rows beyond the statement's allowance (engine/reading.ts).
 * Such a row is recognised by the first bytes of its message and never copied.
 */
import { joinedBytes } from "./worker-messages.ts";

const REPLY_CHUNK_BYTES = 1 << 20;
/** The type byte and the length, which counts itself and what follows. */
const HEADER_BYTES = 5;
const DATA_ROW = 0x44;

export interface ReplyPort {
  /** Bytes that the statement may still send. */
  allowance(): number;
  /** Takes ownership of the bytes. */
  post(bytes: Uint8Array<ArrayBuffer>): void;
  /** A row exceeded the allowance. With it the statement would have sent this many bytes. */
  refused(bytes: number): void;
}

export class Reply {
  readonly #port: ReplyPort;
  #parts: Uint8Array[] = [];
  #length = 0;
  /** Bytes of the unit sent so far. */
  #sent = 0;
  /** Bytes left of the current message. */
  #left = 0;
  #isDropping = false;
  #hasRefused = false;
  /** The beginning of an incomplete header. */
  #carried: Uint8Array = new Uint8Array(0);

  constructor(port: ReplyPort) {
    this.#port = port;
  }

  /** @param bytes  PostgreSQL's own memory; what is kept is copied. */
  append(bytes: Uint8Array): void {
    const all = this.#carried.length === 0 ? bytes : Buffer.concat([this.#carried, bytes]);
    this.#carried = new Uint8Array(0);
    let keptFrom = 0;
    let at = 0;
    while (at < all.length) {
      if (this.#left === 0) {
        if (all.length - at < HEADER_BYTES) {
          this.#carried = all.slice(at);
          break;
        }
        this.#left = 1 + (all[at + 1]! * 2 ** 24 + ((all[at + 2]! << 16) | (all[at + 3]! << 8) | all[at + 4]!));
        this.#isDropping = all[at] === DATA_ROW && this.#isBeyond(this.#left);
        if (this.#isDropping) this.#keep(all, keptFrom, at);
      }
      const step = Math.min(this.#left, all.length - at);
      at += step;
      this.#left -= step;
      if (this.#isDropping) keptFrom = at;
    }
    this.#keep(all, keptFrom, at);
  }

  /** Posts what has been collected. */
  send(): void {
    if (this.#length === 0) return;
    const out = joinedBytes(this.#parts);
    this.#parts = [];
    this.#length = 0;
    this.#port.post(out);
  }

  #isBeyond(messageBytes: number): boolean {
    if (!this.#hasRefused && this.#sent + messageBytes > this.#port.allowance()) {
      this.#hasRefused = true;
      this.#port.refused(this.#sent + messageBytes);
    }
    return this.#hasRefused;
  }

  #keep(bytes: Uint8Array, start: number, end: number): void {
    if (start === end) return;
    this.#parts.push(bytes.slice(start, end));
    this.#length += end - start;
    this.#sent += end - start;
    if (this.#length >= REPLY_CHUNK_BYTES) this.send();
  }
}
