/**
 * Keeps the server below its capacity: beyond a number of requests, or of body bytes held by them, a request is answered 429 at once and not processed.
 * A request gives its place back when it has been answered or when its client has gone.
 */
import { LodestoneError } from "../../errors.ts";
import type { HttpLimits } from "../http-limits.ts";

export class Admission {
  readonly #limits: Pick<HttpLimits, "concurrentRequests" | "concurrentBodyBytes" | "bodyBytes">;
  #requests = 0;
  #bodyBytes = 0;

  constructor(limits: Pick<HttpLimits, "concurrentRequests" | "concurrentBodyBytes" | "bodyBytes">) {
    this.#limits = limits;
  }

  get requests(): number {
    return this.#requests;
  }

  /**
   * @param bodyBytes what the body will hold; for a body of unknown length the most it may.
   * @returns gives the place back; more than once does no harm.
   * @throws {LodestoneError} OVERLOADED.
   */
  enter(bodyBytes: number): () => void {
    const bytes = Math.min(bodyBytes, this.#limits.bodyBytes);
    if (this.#requests >= this.#limits.concurrentRequests || this.#bodyBytes + bytes > this.#limits.concurrentBodyBytes) {
      throw new LodestoneError("OVERLOADED", "The server is at its capacity; the request was not processed. Try again later.", {
        retryAfterSeconds: 1,
      });
    }
    this.#requests++;
    this.#bodyBytes += bytes;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#requests--;
      this.#bodyBytes -= bytes;
    };
  }
}
