/**
 * Enforces the memory limit of all indexes together. If they would exceed it, the largest branch of the
 * database that uses most gives way. So a database that uses at most an equal share never loses a branch,
 * however many branches the others have.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { BranchKey } from "./search-messages.ts";

/**
 * A branch that did not fit is retried when it would fit, when it has been recreated, and otherwise after
 * this long, because it may have become smaller.
 */
const TRY_AGAIN_MS = 5 * 60_000;

interface Refused {
  /** Its size when it gave way. */
  readonly bytes: number;
  readonly at: number;
  readonly incarnation: string;
}

export class IndexRoom<Holder extends { readonly incarnation: string }> {
  readonly #limitBytes: number;
  readonly #held = new Map<Holder, { readonly key: BranchKey; readonly bytes: number }>();
  readonly #refused = new Map<BranchKey, Refused>();
  #total = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Sets the current size of `holder`, an index of the branch. */
  set(holder: Holder, key: BranchKey, bytes: number): void {
    this.#total += bytes - (this.#held.get(holder)?.bytes ?? 0);
    this.#held.set(holder, { key, bytes });
  }

  delete(holder: Holder): void {
    this.#total -= this.#held.get(holder)?.bytes ?? 0;
    this.#held.delete(holder);
  }

  get isFull(): boolean {
    return this.#total > this.#limitBytes;
  }

  /**
   * The holder that has to be evicted so that the others fit; undefined when all fit. From now on it counts
   * as evicted, and its branch as one that does not fit.
   */
  giveWay(): Holder | undefined {
    if (this.#total <= this.#limitBytes) return undefined;
    const databases = new Map<string, number>();
    for (const { key, bytes } of this.#held.values()) databases.set(databaseOf(key), (databases.get(databaseOf(key)) ?? 0) + bytes);
    let found: Holder | undefined;
    let most = [-1, -1];
    for (const [holder, { key, bytes }] of this.#held) {
      const rank = [databases.get(databaseOf(key))!, bytes];
      if (rank[0]! < most[0]! || (rank[0] === most[0] && rank[1]! <= most[1]!)) continue;
      found = holder;
      most = rank;
    }
    const { key, bytes } = this.#held.get(found!)!;
    this.delete(found!);
    this.#refused.set(key, { bytes, at: performance.now(), incarnation: found!.incarnation });
    return found;
  }

  /** @throws {LodestoneError} OUT_OF_MEMORY if the branch did not fit, and still would not. */
  require(key: BranchKey, incarnation: string): void {
    const refused = this.#refused.get(key);
    if (refused === undefined || refused.incarnation !== incarnation) return;
    if (this.#total + refused.bytes > this.#limitBytes && performance.now() - refused.at < TRY_AGAIN_MS) throw this.refusal(key);
  }

  isRefused(key: BranchKey): boolean {
    return this.#refused.has(key);
  }

  /** Call this when the branch fits again, or no longer exists. */
  forget(key: BranchKey): void {
    this.#refused.delete(key);
  }

  /** Words give way before vectors do: they are held because somebody has searched for some. */
  textRefusal(key: BranchKey): LodestoneError {
    return new LodestoneError(
      "OUT_OF_MEMORY",
      `The words of branch ${key} cannot be searched: indexes may take ${Math.floor(this.#limitBytes / 2 ** 20)} MiB at most (--max-memory). ` +
        "Its records are complete. Delete what is not needed, or give the server more memory.",
    );
  }

  refusal(key: BranchKey): LodestoneError {
    return new LodestoneError(
      "OUT_OF_MEMORY",
      `The vectors of branch ${key} cannot be searched: indexes may take ${Math.floor(this.#limitBytes / 2 ** 20)} MiB at most (--max-memory), and this branch is the ` +
        "largest of the database that uses the most memory. Its records are complete. Delete what is not needed, or give the server more memory.",
    );
  }
}

const databaseOf = (key: BranchKey): string => key.slice(0, key.indexOf(":"));
