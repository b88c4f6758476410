/**
 * A semaphore that is fair between callers: one caller gets three quarters of the places at most (FairShares),
 * and the next free place goes to the waiting caller whose work has had the least time (FairQueue). Below every
 * layer.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { FairQueue } from "./fair-queue.ts";
import { FairShares } from "./fair-shares.ts";

/** Charged when work begins, until its real duration is known. */
const EXPECTED_MS = 10;

interface Waiting {
  readonly group: string | undefined;
  readonly begin: () => void;
}

export interface FairTurnsOptions {
  readonly places: number;
  /** Of the places those that one group of works may have. */
  readonly placesPerGroup?: number;
  /** Nobody waits longer than this for a place. */
  readonly waitMs: number;
  /** What the OVERLOADED error says then. */
  readonly busy: string;
}

export class FairTurns {
  readonly #options: FairTurnsOptions;
  readonly #places: FairShares;
  /** Of the groups that hold places. */
  readonly #groups = new Map<string, FairShares>();
  readonly #queue = new FairQueue<Waiting>();

  constructor(options: FairTurnsOptions) {
    this.#options = options;
    this.#places = new FairShares(options.places);
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /**
   * @param work  gets a function that keeps the place, after the work, until something is over that the work has
   *   left running.
   * @param group  shares `placesPerGroup`, as fairly as all share the whole. Who waits for a group holds no place that others need.
   * @throws {LodestoneError} OVERLOADED; the signal's reason when it aborts before `work` begins; what `work` throws.
   */
  async run<Result>(
    caller: string,
    signal: AbortSignal | undefined,
    work: (keepUntil: (isOver: Promise<void>) => void) => Promise<Result>,
    group?: string,
  ): Promise<Result> {
    signal?.throwIfAborted();
    await this.#turn(caller, signal, group);
    const startedAt = performance.now();
    const isOver: Promise<void>[] = [];
    const leave = (): void => {
      this.#give(caller, group);
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

  #turn(caller: string, signal: AbortSignal | undefined, group: string | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = (reason: unknown): void => {
        stop();
        this.#queue.delete(caller, entry);
        reject(reason);
      };
      const onAbort = (): void => giveUp(signal!.reason);
      const { waitMs, busy } = this.#options;
      const timer = setTimeout(() => giveUp(new LodestoneError("OVERLOADED", busy, { retryAfterSeconds: 1 })), waitMs);
      const stop = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      };
      const entry: Waiting = {
        group,
        begin: () => {
          stop();
          resolve();
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#queue.push(caller, entry);
      this.#fill();
    });
  }

  #fill(): void {
    for (;;) {
      const next = this.#queue.shift(EXPECTED_MS, (caller, { group }) => this.#hasRoom(caller, group));
      if (next === undefined) return;
      this.#take(next.caller, next.item.group);
      next.item.begin();
    }
  }

  #hasRoom(caller: string, group: string | undefined): boolean {
    if (!this.#places.hasRoom(caller)) return false;
    return group === undefined || (this.#groups.get(group)?.hasRoom(caller) ?? true);
  }

  #take(caller: string, group: string | undefined): void {
    this.#places.take(caller);
    if (group === undefined) return;
    const places = this.#groups.get(group) ?? new FairShares(this.#options.placesPerGroup ?? this.#options.places);
    this.#groups.set(group, places);
    places.take(caller);
  }

  #give(caller: string, group: string | undefined): void {
    this.#places.give(caller);
    if (group === undefined) return;
    const places = this.#groups.get(group)!;
    places.give(caller);
    if (places.total === 0) this.#groups.delete(group);
  }
}
