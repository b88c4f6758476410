/**
 * Strong searches over several parts, all answered from one position.
 *
 * This server takes a snapshot of the database. Every part advances to exactly that snapshot and answers
 * before it advances further. Searches that arrive during a round go into the next one together. A part that
 * is already beyond the snapshot says so. The search then joins another round, for which that part waits a
 * moment.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { SnapshotSharing } from "../../records/feed/feed-types.ts";
import { together } from "./merge-answers.ts";
import type { PartResult, PartSearch } from "./part-messages.ts";
import type { PartReplicas } from "./part-replicas.ts";

/** Each round holds a connection to the database while it runs. */
const ROUNDS_AT_ONCE = 2;
const MAX_SEARCHES = 64;
const MAX_ROUND_BYTES = 8 * 2 ** 20;
/** The pause between attempts of one search. It grows with each attempt. */
const FIRST_BACKOFF_MS = 5;
const MAX_BACKOFF_MS = 200;
/**
 * A search with less time left is rejected: the round would end at its deadline, and so would all other
 * searches of the round.
 */
const LEAST_ROUND_MS = 1_000;

interface Waiting {
  readonly search: PartSearch;
  /** Its approximate size in a message. */
  readonly bytes: number;
  readonly signal: AbortSignal | undefined;
  readonly deadline: number;
  attempts: number;
  resolve(results: readonly PartResult[]): void;
  reject(error: unknown): void;
}

export class StrongRounds {
  readonly #feed: SnapshotSharing;
  readonly #parts: readonly PartReplicas[];
  readonly #waiting: Waiting[] = [];
  #running = 0;
  #retries = 0;

  constructor(feed: SnapshotSharing, parts: readonly PartReplicas[]) {
    this.#feed = feed;
    this.#parts = parts;
  }

  /** Number of searches that joined another round, since the start. */
  get retries(): number {
    return this.#retries;
  }

  /**
   * One result for each part.
   * @throws {LodestoneError} UNAVAILABLE when a part is missing, or past the deadline; the signal's reason.
   */
  search(search: PartSearch, deadline: number, signal: AbortSignal | undefined): Promise<readonly PartResult[]> {
    return new Promise((resolve, reject) => {
      const bytes = search.queries.byteLength + JSON.stringify(search.request).length;
      this.#waiting.push({ search, bytes, signal, deadline, attempts: 0, resolve, reject });
      this.#start();
    });
  }

  #start(): void {
    if (this.#running >= ROUNDS_AT_ONCE || this.#waiting.length === 0) return;
    this.#running++;
    const batch = this.#take();
    this.#round(batch)
      .catch((error: unknown) => {
        for (const { reject } of batch) reject(error);
      })
      .finally(() => {
        this.#running--;
        this.#start();
      });
  }

  /** Takes as many searches as fit into one round; at least one. */
  #take(): Waiting[] {
    let total = 0;
    let count = 0;
    for (const { bytes } of this.#waiting) {
      total += bytes;
      if (count > 0 && (count === MAX_SEARCHES || total > MAX_ROUND_BYTES)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #round(all: readonly Waiting[]): Promise<void> {
    const batch = all.filter(({ signal, reject, deadline }) => {
      if (signal?.aborted === true) reject(signal.reason);
      else if (deadline - performance.now() < LEAST_ROUND_MS) reject(late());
      else return true;
      return false;
    });
    if (batch.length === 0) return;
    const limitMs = Math.min(...batch.map(({ deadline }) => deadline)) - performance.now();
    const snapshot = await this.#feed.shareSnapshot();
    let results: readonly (readonly PartResult[])[];
    try {
      const searches = batch.map(({ search }) => search);
      results = await Promise.all(this.#parts.map((part) => part.search({ snapshot, searches }, { limitMs })));
    } finally {
      await snapshot.end();
    }
    batch.forEach((waiting, i) => {
      this.#settle(
        waiting,
        results.map((ofPart) => ofPart[i]!),
      );
    });
  }

  #settle(waiting: Waiting, results: readonly PartResult[]): void {
    if (results.some(({ kind }) => kind === "refused") || together(results) !== undefined) {
      waiting.resolve(results);
      return;
    }
    this.#retries++;
    const backoffMs = Math.min(FIRST_BACKOFF_MS * waiting.attempts++, MAX_BACKOFF_MS) * Math.random();
    setTimeout(() => {
      this.#waiting.unshift(waiting);
      this.#start();
    }, backoffMs);
  }
}

function late(): LodestoneError {
  return new LodestoneError("UNAVAILABLE", "The parts did not come to one position in time; try again in a moment.", {
    retryAfterSeconds: 1,
  });
}
