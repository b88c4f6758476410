/** A replica that clients read: in this process, or in a page. */
import { LodestoneError, Replica, type ReplicaOptions, type SearchResult } from "../../../dist/index.js";
import { vectorOf } from "./tables.ts";

export type ReplicaConsistency = "eventual" | "current";

export interface ReplicaSearch {
  readonly filter?: { readonly grp: string };
  readonly k: number;
}

export interface ReadReplica {
  /** What it holds, near the origin. "current": with all that was written before. undefined: it has no server, or is being opened again. */
  search(consistency: ReplicaConsistency, search: ReplicaSearch): Promise<SearchResult | undefined>;
  /** Resolves when it has seen what the servers have. false: it has no server. */
  current(): Promise<boolean>;
  close(): Promise<void>;
}

/** In this process. */
export class ProgramReplica implements ReadReplica {
  readonly #options: ReplicaOptions;
  #replica: Replica;

  private constructor(options: ReplicaOptions, replica: Replica) {
    this.#options = options;
    this.#replica = replica;
  }

  static async open(options: ReplicaOptions): Promise<ProgramReplica> {
    return new ProgramReplica(options, await Replica.open(options));
  }

  /** The next program that has what this one kept. */
  async restart(): Promise<void> {
    await this.#replica.close();
    this.#replica = await Replica.open(this.#options);
  }

  async search(consistency: ReplicaConsistency, search: ReplicaSearch): Promise<SearchResult | undefined> {
    const replica = this.#replica;
    try {
      if (consistency === "current") await replica.current();
      return await replica.search(vectorOf(0), { similarity: "l2", ...search });
    } catch (error) {
      if (isAway(error as Error)) return undefined;
      throw error;
    }
  }

  async current(): Promise<boolean> {
    try {
      await this.#replica.current();
      return true;
    } catch (error) {
      if (isAway(error as Error)) return false;
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#replica.close();
  }
}

/** A fetch that fails is a TypeError, whose message is the runtime's own. */
export const isAway = (error: { readonly name: string; readonly message: string; readonly code?: unknown }): boolean =>
  (error.name === LodestoneError.name && error.code === "UNAVAILABLE") ||
  (error.name === "TypeError" && /^(fetch failed|Failed to fetch|network error)$/.test(error.message));
