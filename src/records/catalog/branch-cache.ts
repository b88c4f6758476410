/**
 * Branches as they were last read. Changes, including those by other servers, invalidate entries (`forget`). A stale
 * entry does no harm, since every change works from what it finds in its own transaction.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { schemaNameOf } from "../identifiers.ts";
import type { BranchInfo, BranchRef } from "../schema.ts";

export class BranchCache {
  readonly #read: (ref: BranchRef) => Promise<BranchInfo>;
  /** By schema name. A promise, so that requests which come together ask once. */
  readonly #cache = new Map<string, Promise<BranchInfo>>();
  /** As last read, for use while the database is away. */
  readonly #known = new Map<string, BranchInfo>();
  readonly #listeners = new Set<(ref: BranchRef | undefined) => void>();

  constructor(read: (ref: BranchRef) => Promise<BranchInfo>) {
    this.#read = read;
  }

  /** Called with a branch that was forgotten, or with undefined when all were. @returns what ends it. */
  onChange(listener: (ref: BranchRef | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reads the branch if it is not known. While the database is away: as it was last read. */
  async get(ref: BranchRef): Promise<BranchInfo> {
    const key = schemaNameOf(ref);
    const cached = this.#cache.get(key);
    // Who was first may have asked before the branch was created.
    if (cached !== undefined) return cached.catch((error: unknown) => (isNotFound(error) ? this.refresh(ref) : Promise.reject(error)));
    const found = this.#read(ref).then(
      (info) => {
        this.#known.set(key, info);
        return info;
      },
      (error: unknown) => {
        // A failure is not remembered; nor is it a reason to forget what a later call has read.
        if (this.#cache.get(key) === found) this.#cache.delete(key);
        const known = this.#known.get(key);
        if (known !== undefined && error instanceof LodestoneError && error.code === "UNAVAILABLE") return known;
        this.#known.delete(key);
        throw error;
      },
    );
    this.#cache.set(key, found);
    return found;
  }

  /** Reads the branch in any case. */
  refresh(ref: BranchRef): Promise<BranchInfo> {
    this.#cache.delete(schemaNameOf(ref));
    return this.get(ref);
  }

  /** Forgets a branch that is cached with another incarnation or an older version than somebody has read. */
  noticed(ref: BranchRef, incarnation: string, version: number): void {
    const key = schemaNameOf(ref);
    const cached = this.#cache.get(key);
    cached?.then(
      (info) => {
        const isOld = info.incarnation !== incarnation || info.version < version;
        if (isOld && this.#cache.get(key) === cached) this.forget(ref);
      },
      () => {}, // forgotten anyway
    );
  }

  /** @param ref  undefined: all. */
  forget(ref: BranchRef | undefined): void {
    if (ref === undefined) this.#cache.clear();
    else this.#cache.delete(schemaNameOf(ref));
    for (const listener of this.#listeners) listener(ref);
  }

  /** Without notifying anybody; used when closing. */
  clear(): void {
    this.#cache.clear();
    this.#known.clear();
  }
}

const isNotFound = (error: unknown): boolean => error instanceof LodestoneError && error.code === "NOT_FOUND";
