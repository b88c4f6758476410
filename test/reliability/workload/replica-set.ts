/** Replicas of the clients' records, in this process: each is read by all clients, and is closed and opened again from what it kept. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
// As built: soaks run without vitest, which knows where the sources' builds are.
import { FolderReplicaStore, LodestoneError, Replica } from "../../../dist/index.js";
import { agree } from "../checker/group.ts";
import type { Action, Seen } from "../checker/history.ts";
import type { RequestContext } from "./requests.ts";
import { BRANCH, memberIds, membersFound, vectorOf } from "./tables.ts";

export class ReplicaSet {
  readonly #url: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "lodestone-replicas-"));
  readonly #replicas: Replica[] = [];
  /** Each phase that any of them was in, and how often. */
  readonly phases: Record<string, number> = {};

  /** @param url  of the server, or a function that gives it, if it changes. */
  private constructor(url: string) {
    this.#url = url;
  }

  static async open(url: string, count: number): Promise<ReplicaSet> {
    const set = new ReplicaSet(url);
    for (let n = 0; n < count; n++) set.#replicas.push(await set.#open(n));
    return set;
  }

  get size(): number {
    return this.#replicas.length;
  }

  /** Of a record, or of a group; by one of them. "current": with all that was written before. */
  read(consistency: "eventual" | "current") {
    return async (context: RequestContext, key: string): Promise<Action | undefined> => {
      const n = context.random.below(this.#replicas.length);
      const found = await this.#search(n, consistency, { filter: { grp: key }, k: 10 });
      if (found === undefined) return undefined;
      const ids = key.startsWith("g") ? memberIds(key) : [key];
      const agreed = agree(key, membersFound(found, ids), `a search (${consistency}) of replica ${n}`);
      if ("fault" in agreed) {
        context.recorder.faults.push(agreed.fault);
        return undefined;
      }
      if (consistency === "current") return { do: "read", ...agreed };
      return { do: "follow", lagLimitMs: context.lagLimitMs, replica: n, ...agreed };
    };
  }

  /** The next program that has what this one kept. */
  async restart(n: number): Promise<void> {
    await this.#replicas[n]!.close();
    this.#replicas[n] = await this.#open(n);
  }

  /** All that each of them holds is what the records are. For servers that nobody else uses. */
  async audit(context: RequestContext, items: ReadonlyMap<string, Seen>): Promise<void> {
    for (const n of this.#replicas.keys()) {
      const found = await this.#search(n, "current", { k: 1_000_000 });
      if (found === undefined) {
        context.report(`replica ${n} cannot be current: ${JSON.stringify(this.#replicas[n]!.status)}`);
        continue;
      }
      const values = membersFound(found, [...items.keys()]);
      for (const [i, [id, record]] of [...items].entries()) {
        const value = values[i]?.value;
        if (value === record.value) continue;
        const message = `Replica ${n} shows ${value} for ${id}, the records ${JSON.stringify(record)}`;
        context.recorder.faults.push({ kind: value === undefined ? "lost" : "stale", key: id, message });
      }
    }
  }

  /** When it resolves, each of them has seen what the servers have, and nothing of before. */
  async untilCurrent(): Promise<void> {
    for (const replica of this.#replicas) {
      for (;;) {
        try {
          await replica.current();
          break;
        } catch (error) {
          if (!isAway(error)) throw error;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
    }
  }

  async close(): Promise<void> {
    for (const replica of this.#replicas) await replica.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #open(n: number): Promise<Replica> {
    return Replica.open({
      url: `${this.#url}${BRANCH}`,
      table: "items",
      columns: ["grp", "val", "embedding"],
      store: new FolderReplicaStore(join(this.#folder, String(n))),
      onStatus: ({ phase }) => {
        this.phases[phase] = (this.phases[phase] ?? 0) + 1;
      },
    });
  }

  /** undefined: it has no server, or is being opened again. */
  async #search(n: number, consistency: "eventual" | "current", options: { filter?: { grp: string }; k: number }) {
    const replica = this.#replicas[n]!;
    try {
      if (consistency === "current") await replica.current();
      return await replica.search(vectorOf(0), { similarity: "l2", ...options });
    } catch (error) {
      if (isAway(error)) return undefined;
      throw error;
    }
  }
}

/** A fetch that fails is a TypeError. */
const isAway = (error: unknown): boolean =>
  (error instanceof LodestoneError && error.code === "UNAVAILABLE") || (error instanceof TypeError && error.message === "fetch failed");
