/** The search engines that one suite of tests is run over. */
import { LodestoneError } from "../../src/errors/lodestone-error.ts";
import type { FollowedRecords } from "../../src/search/followed-schema.ts";
import { openSearchStore, type SearchStoreOptions } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { startSqlEngine } from "../../src/search/sql/sql-engine.ts";
import { SEARCH_SERVERS, type SearchServer } from "../support/pgvector.ts";
import { describeLater, describeOnce } from "../support/requirements.ts";

export interface EngineFixture {
  /** Deletes whatever earlier stores have kept. */
  reset(): Promise<void>;
  open(records: FollowedRecords, options?: SearchStoreOptions): Promise<SearchStore>;
  stop(): Promise<void>;
}

async function startMemory(): Promise<EngineFixture> {
  return { reset: async () => {}, open: openSearchStore, stop: async () => {} };
}

export async function openSqlStore(url: string, records: FollowedRecords, options: SearchStoreOptions = {}): Promise<SearchStore> {
  const startEngine = await startSqlEngine(url, { connections: 4, statementTimeoutMs: 3_600_000 }, tellUnlessClosed);
  return openSearchStore(records, { ...options, startEngine });
}

function tellUnlessClosed(error: unknown): void {
  if (!(error instanceof LodestoneError && error.code === "UNAVAILABLE")) console.error(error);
}

async function startSql(start: () => Promise<SearchServer>): Promise<EngineFixture> {
  const server = await start();
  let url = await server.emptyDatabase();
  return {
    reset: async () => {
      url = await server.emptyDatabase();
    },
    open: (records, options) => openSqlStore(url, records, options),
    stop: () => server.stop(),
  };
}

/** `body` as a suite over each of ENGINES; the quick tests leave the databases to `thorough`. */
export function describeOnEngines(name: string, body: (start: () => Promise<EngineFixture>) => void): void {
  for (const [engine, start] of ENGINES) (engine === "memory" ? describeOnce : describeLater)(`${name} ${engine}`, () => body(start));
}

/** By name: the worker thread's memory, and each available PostgreSQL with pgvector. */
export const ENGINES: readonly (readonly [name: string, start: () => Promise<EngineFixture>])[] = [
  ["memory", startMemory],
  ...SEARCH_SERVERS.map(([name, start]) => [name, () => startSql(start)] as const),
];
