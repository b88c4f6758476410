/** Replicas of the clients' records, in this process and in pages: each is read by all clients, and goes on from what it kept. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
// As built: soaks run without vitest, which knows where the sources' builds are.
import { FolderReplicaStore } from "../../../dist/index.js";
import { agree } from "../checker/group.ts";
import type { Action, Seen } from "../checker/history.ts";
import { PageReplica, ReplicaBrowser } from "./page-replica.ts";
import { ProgramReplica, type ReadReplica, type ReplicaConsistency } from "./read-replica.ts";
import type { RequestContext } from "./requests.ts";
import { BRANCH, memberIds, membersFound } from "./tables.ts";

export interface ReplicaCounts {
  /** In this process. */
  readonly programs: number;
  /** In pages; the first two of them are tabs that share one replica. */
  readonly pages?: number | undefined;
  /** With pages: the program. */
  readonly chromium?: string | undefined;
}

const TABS = 2;

export class ReplicaSet {
  readonly #url: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "lodestone-replicas-"));
  readonly #programs: ProgramReplica[] = [];
  readonly #pages: PageReplica[] = [];
  #browser: ReplicaBrowser | undefined;
  /** Each phase that any of them was in, and how often. */
  readonly phases: Record<string, number> = {};

  /** @param url  of the server. */
  private constructor(url: string) {
    this.#url = `${url}${BRANCH}`;
  }

  static async open(url: string, { programs, pages = 0, chromium }: ReplicaCounts): Promise<ReplicaSet> {
    const set = new ReplicaSet(url);
    try {
      for (let n = 0; n < programs; n++) set.#programs.push(await ProgramReplica.open(set.#options(n)));
      if (pages > 0) set.#browser = await ReplicaBrowser.start(chromium!, join(set.#folder, "profile"));
      for (let n = 0; n < pages; n++) set.#pages.push(await PageReplica.open(set.#browser!, set.#url, `of ${lineOf(n)}`, set.#count));
    } catch (error) {
      await set.close();
      throw error;
    }
    return set;
  }

  get programs(): number {
    return this.#programs.length;
  }

  get pages(): number {
    return this.#pages.length;
  }

  /** Of a record, or of a group; by one of them. "current": with all that was written before. */
  read(consistency: ReplicaConsistency) {
    return async (context: RequestContext, key: string): Promise<Action | undefined> => {
      const n = context.random.below(this.#all.length);
      const found = await this.#all[n]!.search(consistency, { filter: { grp: key }, k: 10 });
      if (found === undefined) return undefined;
      const ids = key.startsWith("g") ? memberIds(key) : [key];
      const agreed = agree(key, membersFound(found, ids), `a search (${consistency}) of ${this.#nameOf(n)}`);
      if ("fault" in agreed) {
        context.recorder.faults.push(agreed.fault);
        return undefined;
      }
      if (consistency === "current") return { do: "read", ...agreed };
      // Tabs that share a replica have one time.
      const replica = n < this.programs ? n : this.programs + lineOf(n - this.programs);
      return { do: "follow", lagLimitMs: context.lagLimitMs, replica, ...agreed };
    };
  }

  /** The next program that has what this one kept. */
  restartProgram(n: number): Promise<void> {
    return this.#programs[n]!.restart();
  }

  async killPage(n: number): Promise<void> {
    await this.#pages[n]!.kill();
    await this.#reopen();
  }

  async killBrowser(): Promise<void> {
    for (const page of this.#pages) page.abandon();
    await this.#browser!.kill();
    await this.#browser!.restart();
    await this.#reopen();
  }

  /** All that each of them holds is what the records are. For servers that nobody else uses. */
  async audit(context: RequestContext, items: ReadonlyMap<string, Seen>): Promise<void> {
    for (const [n, replica] of this.#all.entries()) {
      const found = await replica.search("current", { k: 1_000_000 });
      if (found === undefined) {
        context.report(`${this.#nameOf(n)} cannot be current`);
        continue;
      }
      const values = membersFound(found, [...items.keys()]);
      for (const [i, [id, record]] of [...items].entries()) {
        const value = values[i]?.value;
        if (value === record.value) continue;
        const message = `${this.#nameOf(n)} shows ${value} for ${id}, the records ${JSON.stringify(record)}`;
        context.recorder.faults.push({ kind: value === undefined ? "lost" : "stale", key: id, message });
      }
    }
  }

  /** When it resolves, each of them has seen what the servers have, and nothing of before. */
  async untilCurrent(): Promise<void> {
    for (const replica of this.#all) while (!(await replica.current())) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  async close(): Promise<void> {
    for (const replica of this.#all) await replica.close();
    await this.#browser?.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #all(): readonly ReadReplica[] {
    return [...this.#programs, ...this.#pages];
  }

  readonly #count = (phase: string): void => {
    this.phases[phase] = (this.phases[phase] ?? 0) + 1;
  };

  #nameOf(n: number): string {
    return n < this.programs ? `replica ${n}` : `the replica of page ${n - this.programs}`;
  }

  #options(n: number) {
    return {
      url: this.#url,
      table: "items",
      columns: ["grp", "val", "embedding"],
      store: new FolderReplicaStore(join(this.#folder, String(n))),
      onStatus: ({ phase }: { phase: string }) => this.#count(phase),
    };
  }

  /** Pages whose process was that of another one have gone with it. */
  async #reopen(): Promise<void> {
    for (const page of this.#pages) if (!page.isOpen) await page.reopen();
  }
}

/** Pages of a line have one replica. */
const lineOf = (page: number): number => Math.max(0, page - TABS + 1);
