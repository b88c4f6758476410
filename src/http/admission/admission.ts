/**
 * Keeps the server below its capacity: beyond a number of requests, or of body bytes held by them, a request is
 * answered 429 at once and not processed. Both are shared between callers (FairShares), so that one of them
 * cannot take everything. A body counts as much as has arrived of it: a connection that announces much and
 * sends nothing holds nothing. A request gives its place back when it has been answered or when its client has
 * gone.
 */
import { LodestoneError } from "../../errors.ts";
import { FairShares } from "../../fairness/fair-shares.ts";
import type { HttpLimits } from "../http-limits.ts";

/** What one request holds. */
export interface Place {
  /**
   * That many more bytes of its body have arrived.
   * @throws {LodestoneError} OVERLOADED.
   */
  readonly arrived: (bytes: number) => void;
  /** Gives everything back. Safe to call more than once. */
  readonly leave: () => void;
}

export class Admission {
  readonly #requests: FairShares;
  readonly #bodies: FairShares;

  constructor(limits: Pick<HttpLimits, "concurrentRequests" | "concurrentBodyBytes">) {
    this.#requests = new FairShares(limits.concurrentRequests);
    this.#bodies = new FairShares(limits.concurrentBodyBytes);
  }

  get requests(): number {
    return this.#requests.total;
  }

  get bodyBytes(): number {
    return this.#bodies.total;
  }

  /**
   * @param caller  whose share it takes from: a key, or an address where there are no keys.
   * @param announcedBytes  of its body, when its headers say so: one that will not fit is refused before it is read.
   * @throws {LodestoneError} OVERLOADED.
   */
  enter(caller: string, announcedBytes: number): Place {
    if (!this.#bodies.hasRoom(caller, announcedBytes) || !this.#requests.take(caller)) throw overloaded();
    let held = 0;
    let left = false;
    return {
      arrived: (bytes) => {
        if (!this.#bodies.take(caller, bytes)) throw overloaded();
        held += bytes;
      },
      leave: () => {
        if (left) return;
        left = true;
        this.#requests.give(caller);
        this.#bodies.give(caller, held);
      },
    };
  }
}

const overloaded = (): LodestoneError =>
  new LodestoneError(
    "OVERLOADED",
    "The server is at its capacity, or you hold your share of it; the request was not processed. Try again later.",
    {
      retryAfterSeconds: 1,
    },
  );
