/**
 * A semaphore that is fair between callers: one caller gets three quarters of the places at most (FairShares),
 * and the next free place goes to the waiting caller whose work has had the least time (FairQueue). Below every
 * layer.
 */
import { LodestoneError } from "../errors.ts";
import { FairQueue } from "./fair-queue.ts";
import { FairShares } from "./fair-shares.ts";

/** Charged when work begins, until its real duration is known. */
const EXPECTED_MS = 10;

interface Waiting {
  readonly begin: () => void;
}

export class FairTurns {
  readonly #places: FairShares;
  readonly #queue = new FairQueue<Waiting>();
  readonly #waitMs: number;
  readonly #busy: string;

  /**
   * @param waitMs  nobody waits longer than this for a place.
   * @param busy  what the OVERLOADED error says then.
   */
  constructor(places: number, waitMs: number, busy: string) {
    this.#places = new FairShares(places);
    this.#waitMs = waitMs;
    this.#busy = busy;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /**
   * @param work  gets a function that keeps the place, after the work, until something is over that the work has
   *   left running.
   * @throws {LodestoneError} OVERLOADED; the signal's reason when it aborts before `work` begins; what `work` throws.
   */
  async run<Result>(
    caller: string,
    signal: AbortSignal | undefined,
    work: (keepUntil: (isOver: Promise<void>) => void) => Promise<Result>,
  ): Promise<Result> {
    signal?.throwIfAborted();
    if (this.#queue.sizeOf(caller) > 0 || !this.#places.take(caller)) await this.#wait(caller, signal);
    else this.#queue.charge(caller, EXPECTED_MS);
    const startedAt = performance.now();
    const isOver: Promise<void>[] = [];
    const leave = (): void => {
      this.#places.give(caller);
      this.#queue.charge(caller, performance.now() - startedAt - EXPECTED_MS);
      this.#fill();
    };
    try {
      return await work((promise) => void isOver.push(promise));
    } finally {
      if (isOver.length === 0) leave();
      else void Promise.allSettled(isOver).then(leave);
    }
  }

  #wait(caller: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = (reason: unknown): void => {
        stop();
        this.#queue.delete(caller, entry);
        reject(reason);
      };
      const onAbort = (): void => giveUp(signal!.reason);
      const timer = setTimeout(() => giveUp(new LodestoneError("OVERLOADED", this.#busy, { retryAfterSeconds: 1 })), this.#waitMs);
      const stop = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      };
      const entry: Waiting = {
        begin: () => {
          stop();
          resolve();
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#queue.push(caller, entry);
    });
  }

  #fill(): void {
    for (;;) {
      const next = this.#queue.shift(EXPECTED_MS, (caller) => this.#places.hasRoom(caller));
      if (next === undefined) return;
      this.#places.take(next.caller);
      next.item.begin();
    }
  }
}
