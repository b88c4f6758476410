/**
 * Admission control: beyond a number of requests, or of body bytes held by them, a request is answered 429 at once
 * and not processed. Both are shared between callers (FairShares), so that one of them
 * cannot take everything.
 *
 * Only the part of a body that has arrived is counted: a connection that announces much and sends nothing holds
 * nothing. Each byte stands for MEMORY_PER_BODY_BYTE of memory. A body whose values take more than that (many small
 * lists, many keys) counts as more bytes once its content is known.
 *
 * A request gives its place back when it has been answered or when its client has gone.
 */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { MEMORY_PER_BODY_BYTE } from "../../budget/process-limits.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { FairShares } from "../../fairness/fair-shares.ts";
import type { HttpLimits } from "../http-limits.ts";

/** What one request holds. */
export interface Place {
  /**
   * That many more bytes of its body have arrived.
   * @throws {LodestoneError} OVERLOADED.
   */
  readonly arrived: (bytes: number) => void;
  /**
   * Its body has arrived, and takes that many bytes of memory with its values.
   * @throws {LodestoneError} TOO_LARGE when that never fits; OVERLOADED.
   */
  readonly holds: (memoryBytes: number) => void;
  /** Gives everything back. Safe to call more than once. */
  readonly leave: () => void;
}

export class Admission {
  readonly #requests: FairShares;
  readonly #bodies: FairShares;
  readonly #released: ReleasedBodies;

  constructor(limits: Pick<HttpLimits, "concurrentRequests" | "concurrentBodyBytes">) {
    this.#requests = new FairShares(limits.concurrentRequests);
    this.#bodies = new FairShares(limits.concurrentBodyBytes);
    this.#released = new ReleasedBodies(limits.concurrentBodyBytes * MEMORY_PER_BODY_BYTE);
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
   * @param connection  is told how many of its requests have a place.
   * @throws {LodestoneError} OVERLOADED.
   */
  enter(caller: string, announcedBytes: number, connection = { admitted: 0 }): Place {
    if (!this.#bodies.hasRoom(caller, announcedBytes) || !this.#requests.take(caller)) throw overloaded();
    connection.admitted++;
    let held = 0;
    let left = false;
    const arrived = (bytes: number): void => {
      if (!this.#bodies.take(caller, bytes)) throw overloaded();
      held += bytes;
    };
    return {
      arrived,
      holds: (memoryBytes) => {
        const bytes = Math.ceil(memoryBytes / MEMORY_PER_BODY_BYTE);
        if (bytes > this.#bodies.mostAlone) throw tooHeavy(memoryBytes, this.#bodies.mostAlone * MEMORY_PER_BODY_BYTE);
        if (bytes > held) arrived(bytes - held);
      },
      leave: () => {
        if (left) return;
        left = true;
        connection.admitted--;
        this.#requests.give(caller);
        this.#bodies.give(caller, held);
        this.#released.add(held * MEMORY_PER_BODY_BYTE);
      },
    };
  }
}

const overloaded = (): LodestoneError =>
  new LodestoneError(
    "OVERLOADED",
    "The server is at its capacity, or you already hold your share of it. The request was not processed. Try again later.",
    {
      retryAfterSeconds: 1,
    },
  );

function tooHeavy(memoryBytes: number, limitBytes: number): LodestoneError {
  const [got, most] = [memoryBytes, limitBytes].map((bytes) => Math.ceil(bytes / 2 ** 20));
  return new LodestoneError(
    "TOO_LARGE",
    `The values of the body would take about ${got} MiB of memory; one request may take at most ${most} MiB. Send several smaller requests.`,
  );
}

// Frees what large bodies leave behind. V8 lets its heap grow before it looks for garbage, by far more than all bodies
// may take at once where memory is short. So the heap is collected each time when bodies of half their budget have been
// released. Cost: some 50 ms, after bodies that took about a second to read and parse.

/** The values of smaller bodies are mostly gone with the next quick collection of young values. */
const LEAST_BYTES = 2 ** 20;

export class ReleasedBodies {
  readonly #most: number;
  readonly #collect: () => void;
  #bytes = 0;

  /** @param budgetBytes  of memory, for all bodies together with their values. */
  constructor(budgetBytes: number, collect: () => void = collectGarbage) {
    this.#most = budgetBytes / 2;
    this.#collect = collect;
  }

  /** A request has ended whose body took that much memory. */
  add(bytes: number): void {
    if (bytes < LEAST_BYTES) return;
    this.#bytes += bytes;
    if (this.#bytes < this.#most) return;
    this.#bytes = 0;
    // By then nobody refers to the last one any more.
    setImmediate(this.#collect);
  }
}

let collector: (() => void) | undefined;

export function collectGarbage(): void {
  if (collector === undefined) {
    // Contexts that are made from then on have the function.
    setFlagsFromString("--expose-gc");
    collector = runInNewContext("gc") as () => void;
    setFlagsFromString("--no-expose-gc");
  }
  collector();
}
