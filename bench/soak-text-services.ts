/** What soak:text writes to and searches in: one store in this process, or servers that hold a search part each. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { openRecordStore } from "../dist/records/open.js";
import { openSearchStore } from "../dist/search/open-search-store.js";
import { searchTable } from "../dist/search/text/text-answer.js";
import type { FusionMethod } from "../src/full-text/fusion.ts";
import type { ChangeFeed } from "../src/records/feed/feed-types.ts";
import type { ColumnSchema } from "../src/records/schema.ts";
import type { TextSearchRequest } from "../src/search/text/text-request.ts";
import { PartsCluster } from "../test/cluster/parts-cluster.ts";
import { pathOf } from "../test/support/finders.ts";
import { startPostgres } from "../test/support/postgres.ts";
import type { Answer } from "../test/support/server-client.ts";

const REF = { database: "soak", branch: "main" };
const PATH = "/db/soak:main";
const PATIENT_MS = 600_000;
const MOST_TRIES = 100;

export interface TextAnswer {
  readonly totalCount: number;
  readonly records: readonly { readonly id: string; readonly xata: { readonly score: number } }[];
}

export interface TextService {
  /** The ways to join words and vectors that it offers. */
  readonly methods: readonly FusionMethod[];
  createTable(columns: readonly ColumnSchema[]): Promise<void>;
  /** One transaction. */
  write(operations: readonly object[]): Promise<void>;
  setLanguage(column: string, language: string): Promise<void>;
  search(request: TextSearchRequest): Promise<TextAnswer>;
  /** Stops what searches, and starts it again from its snapshots; `meanwhile` is what these do not have. */
  restart(meanwhile: () => Promise<void>): Promise<void>;
  /** How often records were read as a whole, where they should have come from a snapshot; undefined where nobody counts. */
  wholeReads(): number | undefined;
  close(): Promise<void>;
}

/** A search store over an embedded record store. */
export async function oneStore(): Promise<TextService> {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-soak-text-"));
  const records = await openRecordStore({ dataDir, statementTimeoutMs: PATIENT_MS });
  let reads = 0;
  const counted = <Feed extends ChangeFeed>(feed: Feed): Feed =>
    new Proxy(feed, {
      get(target, name) {
        if (name === "forFollower") return (...how: Parameters<ChangeFeed["forFollower"]>) => counted(target.forFollower(...how));
        if (name === "readAll") reads++;
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  const open = () =>
    openSearchStore({ ...records, feed: counted(records.feed) }, { waitMs: PATIENT_MS, pollMs: 50, snapshotDir: join(dataDir, "search") });
  let search = await open();
  await records.createBranch(REF);
  return {
    methods: ["standardized", "linear", "rrf"],
    createTable: (columns) => records.createTable(REF, "items", columns),
    write: async (operations) => void (await records.transaction(REF, operations as never)),
    setLanguage: (column, language) => records.setColumnLanguage(REF, "items", column, language as never),
    search: async (request) => (await searchTable({ records, search, ref: REF }, "items", request)) as unknown as TextAnswer,
    async restart(meanwhile) {
      await search.close();
      await meanwhile();
      search = await open();
    },
    wholeReads: () => reads,
    async close() {
      await search.close();
      await records.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/**
 * Servers on one PostgreSQL, which hold a part of the records each. Searches go to them in turns; every other restart
 * gives each the data directory of another, whose snapshot is of another part.
 */
export async function inParts(count: number): Promise<TextService> {
  const postgres = await startPostgres(pathOf("postgresql"), ["fsync=off"]);
  const cluster = await PartsCluster.start(postgres, { replicas: Array.from({ length: count }, () => 1) });
  const expectStatus = (what: string, answer: Answer): Answer => {
    if (answer.status >= 300) throw new Error(`${what}: ${answer.status} ${answer.text}`);
    return answer;
  };
  let [turn, restarts] = [0, 0];
  const next = () => cluster.all[turn++ % count]!;
  expectStatus("create", await cluster.whole.put(PATH));
  return {
    // A rank needs all vectors in one place; the others get a 400.
    methods: ["standardized", "linear"],
    createTable: async (columns) => void expectStatus("table", await next().put(`${PATH}/tables/items`, { columns })),
    write: async (operations) => void expectStatus("write", await next().post(`${PATH}/transaction`, { operations })),
    setLanguage: async (column, language) =>
      void expectStatus("language", await next().request("PATCH", `${PATH}/tables/items/columns/${column}`, { language })),
    async search(request) {
      for (let tries = 0; ; tries++) {
        const answer = await next().post(`${PATH}/tables/items/search`, request);
        // A server that has just started, or a part that a peer cannot reach yet: clients ask again.
        if (answer.status !== 503 || tries === MOST_TRIES) return expectStatus("search", answer).body;
        await delay(Number(answer.headers["retry-after"]) * 1_000);
      }
    },
    async restart(meanwhile) {
      await meanwhile();
      await cluster.restart({ turned: restarts++ % 2 === 1 });
    },
    wholeReads: () => undefined,
    async close() {
      await cluster.stop();
      await postgres.stop();
    },
  };
}
