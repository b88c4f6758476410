/**
 * A semaphore that is fair between callers: one caller gets three quarters of the places at most (FairShares),
 * and the next free place goes to the waiting caller whose work has had the least time (FairQueue). Below every
 * layer.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { FairQueue } from "./fair-queue.ts";
import { FairShares } from "./fair-shares.ts";

/** The time of a work is expected to be the average of about so many. */
const AVERAGED_OVER = 32;

interface Share {
  readonly group: string | undefined;
  readonly places: number;
}

interface Waiting {
  readonly share: Share;
  /** @param expectedMs  what is charged until the work's real duration is known. */
  readonly begin: (expectedMs: number) => void;
  readonly giveUp: (reason: unknown) => void;
}

export interface FairTurnsOptions {
  readonly places: number;
  /** True: one caller may have all places, if nobody else waits. */
  readonly allToOne?: boolean;
  /** Of the places those that one group of works may have. */
  readonly placesPerGroup?: number;
  /** How many works may wait, which callers share. Beyond it they are refused. Default: no bound. */
  readonly mostWaiting?: number;
  /** Nobody waits longer than this for a place. Default: no bound. */
  readonly waitMs?: number;
  /** What the OVERLOADED error says then. @param seconds  until those who wait may have ended. */
  readonly busy: (waiting: number, seconds: number) => string;
}

export class FairTurns {
  readonly #options: FairTurnsOptions;
  readonly #places: FairShares;
  /** Of the groups that hold places. */
  readonly #groups = new Map<string, FairShares>();
  readonly #queue = new FairQueue<Waiting>();
  readonly #waiting: FairShares;
  #averageMs = 0;
  /** Works that have begun and not ended. */
  #running = 0;

  constructor(options: FairTurnsOptions) {
    this.#options = options;
    this.#places = new FairShares(options.places, options.allToOne === true ? 0 : undefined);
    this.#waiting = new FairShares(options.mostWaiting ?? Number.MAX_SAFE_INTEGER);
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /**
   * @param work  gets a function that keeps the place, after the work, until something is over that the work has
   *   left running.
   * @param group  shares `placesPerGroup`, as fairly as all share the whole. Who waits for a group holds no place that others need.
   * @param places  that the work holds. It begins as soon as one is free: if it waited for all, small works would always overtake it.
   * @throws {LodestoneError} OVERLOADED; the signal's reason when it aborts before `work` begins; what `work` throws.
   */
  async run<Result>(
    caller: string,
    signal: AbortSignal | undefined,
    work: (keepUntil: (isOver: Promise<void>) => void) => Promise<Result>,
    { group, places = 1 }: { readonly group?: string | undefined; readonly places?: number } = {},
  ): Promise<Result> {
    signal?.throwIfAborted();
    const expectedMs = await this.#turn(caller, signal, { group, places });
    const startedAt = performance.now();
    const isOver: Promise<void>[] = [];
    const leave = (): void => {
      const elapsedMs = performance.now() - startedAt;
      this.#averageMs += (elapsedMs - this.#averageMs) / AVERAGED_OVER;
      this.#give(caller, { group, places });
      this.#queue.charge(caller, (elapsedMs - expectedMs) * places);
      this.#fill();
    };
    try {
      return await work((promise) => void isOver.push(promise));
    } finally {
      if (isOver.length === 0) leave();
      else void Promise.allSettled(isOver).then(leave);
    }
  }

  /** Rejects all works that wait. */
  close(reason: Error): void {
    for (const entry of this.#queue.drain()) entry.giveUp(reason);
  }

  /** Resolves when the work may begin, to what was charged for it. */
  #turn(caller: string, signal: AbortSignal | undefined, share: Share): Promise<number> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      let waits: "not yet" | "yes" | "no longer" = "not yet";
      const stop = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        if (waits === "yes") this.#waiting.give(caller);
        waits = "no longer";
      };
      const entry: Waiting = {
        share,
        begin: (expectedMs) => {
          stop();
          resolve(expectedMs);
        },
        giveUp: (reason) => {
          stop();
          this.#queue.delete(caller, entry);
          reject(reason);
        },
      };
      const onAbort = (): void => entry.giveUp(signal!.reason);
      this.#queue.push(caller, entry);
      this.#fill();
      if (waits !== "not yet") return;
      if (!this.#waiting.take(caller)) return entry.giveUp(this.#overloaded(this.#queue.size - 1));
      waits = "yes";
      signal?.addEventListener("abort", onAbort, { once: true });
      const { waitMs } = this.#options;
      if (waitMs !== undefined) timer = setTimeout(() => entry.giveUp(this.#overloaded(this.#queue.size)), waitMs);
    });
  }

  #overloaded(waiting: number): LodestoneError {
    const retryAfterSeconds = Math.max(1, Math.ceil((waiting * this.#averageMs) / (1_000 * Math.max(1, this.#running))));
    return new LodestoneError("OVERLOADED", this.#options.busy(waiting, retryAfterSeconds), { retryAfterSeconds });
  }

  #fill(): void {
    for (;;) {
      const expectedMs = this.#averageMs;
      const next = this.#queue.shift(0, (caller, { share }) => this.#hasRoom(caller, share.group));
      if (next === undefined) return;
      const { caller, item } = next;
      this.#queue.charge(caller, expectedMs * item.share.places);
      this.#take(caller, item.share);
      item.begin(expectedMs);
    }
  }

  #hasRoom(caller: string, group: string | undefined): boolean {
    if (!this.#places.hasRoom(caller)) return false;
    return group === undefined || (this.#groups.get(group)?.hasRoom(caller) ?? true);
  }

  #take(caller: string, { group, places }: Share): void {
    this.#running++;
    this.#places.hold(caller, places);
    if (group === undefined) return;
    const own = this.#groups.get(group) ?? new FairShares(this.#options.placesPerGroup ?? this.#options.places);
    this.#groups.set(group, own);
    own.hold(caller, places);
  }

  #give(caller: string, { group, places }: Share): void {
    this.#running--;
    this.#places.give(caller, places);
    if (group === undefined) return;
    const own = this.#groups.get(group)!;
    own.give(caller, places);
    if (own.total === 0) this.#groups.delete(group);
  }
}
