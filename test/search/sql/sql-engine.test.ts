/** What the SQL engine keeps, and what happens to it when processes, connections and servers come and go. */

import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { FeedBatch } from "../../../src/records/feed/feed-types.ts";
import type { BranchRef } from "../../../src/records/schema.ts";
import { followedSchema } from "../../../src/search/followed-schema.ts";
import type { SearchStoreOptions } from "../../../src/search/open-search-store.ts";
import type { SearchEngine } from "../../../src/search/search-engine.ts";
import type { SearchJob } from "../../../src/search/search-messages.ts";
import type { SearchStore } from "../../../src/search/search-store.ts";
import { startSqlEngine } from "../../../src/search/sql/sql-engine.ts";
import { LIMIT_MS } from "../../support/patience.ts";
import { SEARCH_SERVERS, type SearchServer, withClient } from "../../support/pgvector.ts";
import { startPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { openSqlStore } from "../engines.ts";
import { MemoryRecords } from "../memory-records.ts";

const REF: BranchRef = { database: "db", branch: "main" };
const OPTIONS: SearchStoreOptions = { pollMs: 50, waitMs: LIMIT_MS };

describe.each(SEARCH_SERVERS)("The SQL engine over %s", (_, start) => {
  let server: SearchServer;
  let url: string;
  let records: MemoryRecords;
  let stores: SearchStore[];

  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    url = await server.emptyDatabase();
    stores = [];
    records = newRecords();
  });
  afterEach(async () => {
    for (const store of stores) await store.close();
  });

  const newRecords = (): MemoryRecords => {
    const made = new MemoryRecords();
    made.createBranch(REF);
    made.createTable(REF, "items", [
      { name: "v", type: "vector", vector: { dimension: 2 } },
      { name: "n", type: "int" },
    ]);
    return made;
  };
  const open = async (through = url, from = records): Promise<SearchStore> => {
    const store = await openSqlStore(through, from, OPTIONS);
    stores.push(store);
    return store;
  };
  const ids = async (store: SearchStore, consistency: "strong" | "eventual" = "strong"): Promise<string[]> => {
    const { results, totalCount } = await store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 1], size: 1_000, consistency });
    expect(totalCount).toBe(results.length);
    return results.map(({ id }) => id);
  };
  const item = (id: string, x = 1) => ({ id, v: [x, 1], n: BigInt(x) });
  const count = (what: string): Promise<number> =>
    withClient(url, async (client) => Number((await client.query<{ count: string }>(`SELECT count(*) FROM ${what}`)).rows[0]!.count));
  const tables = () => count("pg_tables WHERE schemaname = 'lodestone_search' AND tablename ~ '^g[0-9]+_t'");
  const revision = () =>
    withClient(url, async (client) => (await client.query("SELECT revision::text, position FROM lodestone_search.branches")).rows);

  test("continues where it was when it is started again, and reads nothing twice", async () => {
    records.write(REF, "items", [item("a"), item("b")]);
    expect(await ids(await open())).toEqual(["a", "b"]);
    await stores.pop()!.close();
    records.write(REF, "items", [item("c")], ["a"]);
    const { all } = records.reads;
    records.positionsRead = [];
    const store = await open();
    // What was stored can be searched before anything is read.
    records.beforeRead = () => new Promise((resolve) => setTimeout(resolve, 200));
    expect(await ids(store)).toEqual(["b", "c"]);
    expect(records.reads.all).toBe(all);
    expect(records.positionsRead[0]).toBe("2");
  });

  test("reads everything again when the records belong to another life of the database", async () => {
    records.write(REF, "items", [item("a"), item("b")]);
    expect(await ids(await open())).toEqual(["a", "b"]);
    await stores.pop()!.close();
    const others = newRecords();
    others.write(REF, "items", [item("z")]);
    expect(await ids(await open(url, others))).toEqual(["z"]);
    expect(await tables()).toBe(1);
  });

  test("writes nothing while nothing changes", async () => {
    const store = await open();
    records.write(REF, "items", [item("a")]);
    expect(await ids(store)).toEqual(["a"]);
    const before = await revision();
    const reads = records.reads.since;
    await expect.poll(() => records.reads.since).toBeGreaterThan(reads + 5);
    await ids(store);
    expect(await revision()).toEqual(before);
  });

  test("shows no part of a change, and loses or doubles none, when connections break in the middle of it", async () => {
    const proxy = new TcpProxy(Number(new URL(url).port));
    await proxy.forward();
    try {
      const store = await open(proxy.url(url));
      const watcher = await open();
      const old = Array.from({ length: 30 }, (_, i) => item(`r${i}`, 0));
      records.write(REF, "items", old);
      expect(await ids(store)).toHaveLength(30);
      records.readLimit = 7;
      for (let round = 1; round <= 4; round++) {
        let reads = 0;
        // Between the reads of one change: some of it has been written, nothing committed.
        records.beforeRead = async () => {
          if (++reads === round) await proxy.refuse();
        };
        records.write(REF, "items", [...old.map(({ id }) => item(id, round)), item(`new${round}`, round)]);
        await expect.poll(() => reads).toBeGreaterThanOrEqual(round);
        const seen = await watcher.vectorSearch(REF, "items", { column: "v", queryVector: [1, 1], filter: { n: round }, size: 1_000 });
        expect([0, 30 + 1]).toContain(seen.totalCount);
        records.beforeRead = () => {};
        await proxy.forward();
        await expect.poll(async () => (await ids(store).catch(() => [])).length).toBe(30 + round);
      }
      expect(records.reads.all).toBeLessThanOrEqual(2);
    } finally {
      await proxy.close();
    }
  });

  test("is UNAVAILABLE at once while its database is away, and recovers by itself", async () => {
    const proxy = new TcpProxy(Number(new URL(url).port));
    await proxy.forward();
    try {
      const store = await open(proxy.url(url));
      records.write(REF, "items", [item("a")]);
      expect(await ids(store)).toEqual(["a"]);
      await proxy.refuse();
      records.write(REF, "items", [item("b")]);
      for (const consistency of ["eventual", "strong"] as const) {
        await expect(ids(store, consistency)).rejects.toMatchObject({
          code: "UNAVAILABLE",
          retryAfterSeconds: 1,
          message: expect.stringContaining("The search database cannot be reached"),
        });
      }
      await expect.poll(() => store.status().fault).toContain("The search database cannot be reached");
      expect(store.status().lagMs).toBeGreaterThan(0);
      await proxy.forward();
      await expect.poll(() => ids(store, "eventual").catch(() => [])).toEqual(["a", "b"]);
      await expect.poll(() => store.status().fault).toBeUndefined();
    } finally {
      await proxy.close();
    }
  });

  test("is shared by several servers: each gives strong answers, and everything is read once", async () => {
    records.write(REF, "items", [item("first")]);
    const one = await open();
    expect(await ids(one)).toEqual(["first"]);
    const two = await open();
    const expected = new Set(["first"]);
    for (let i = 0; i < 25; i++) {
      records.write(REF, "items", [item(`i${i}`)], i % 3 === 0 ? [`i${i - 1}`] : []);
      expected.add(`i${i}`);
      if (i % 3 === 0) expected.delete(`i${i - 1}`);
      const answers = await Promise.all([ids(i % 2 === 0 ? one : two), ids(two)]);
      for (const answer of answers) expect(answer.toSorted()).toEqual([...expected].toSorted());
    }
    // The schema too.
    records.alter(REF, (all) => {
      all[0]!.columns = all[0]!.columns.map((column) => (column.name === "n" ? { ...column, name: "number" } : column));
    });
    records.createTable(REF, "more", [{ name: "v", type: "vector", vector: { dimension: 3 } }]);
    records.write(REF, "more", [{ id: "m", v: [1, 2, 3] }]);
    for (const store of [two, one]) {
      const found = await store.vectorSearch(REF, "more", { column: "v", queryVector: [1, 2, 3], consistency: "strong" });
      expect(found).toMatchObject({ totalCount: 1, results: [{ id: "m" }] });
      expect((await ids(store)).toSorted()).toEqual([...expected].toSorted());
    }
  });

  test("removes the tables of dropped branches and dropped tables, and those of an unfinished build", async () => {
    const store = await open();
    records.createTable(REF, "more", [{ name: "v", type: "vector", vector: { dimension: 3 } }]);
    expect(await ids(store)).toEqual([]);
    await expect.poll(tables).toBe(2);
    records.alter(REF, (all) => all.pop());
    expect(await ids(store)).toEqual([]);
    await expect.poll(tables).toBe(1);
    records.dropBranch(REF);
    await expect.poll(tables).toBe(0);
    expect(await count("lodestone_search.branches")).toBe(0);
    await withClient(url, (client) => client.query("CREATE TABLE lodestone_search.g999999_t1 (id text)"));
    await open();
    await expect.poll(tables).toBe(0);
  });

  describe("a value that is too large to be kept", () => {
    const columns = [
      { id: 11, name: "v", type: "vector", vector: { dimension: 2 }, physicalName: "v" },
      { id: 12, name: "text", type: "text", physicalName: "text" },
      { id: 13, name: "list", type: "multiple", physicalName: "list" },
      { id: 14, name: "config", type: "json", physicalName: "config" },
    ] as const;
    const schema = followedSchema({
      tables: new Map([["t", { id: 1, name: "t", physicalName: "t", columns: new Map(columns.map((column) => [column.name, column])) }]]),
    });
    const batch: FeedBatch = {
      table: "t",
      ids: ["large", "small"],
      deleted: [],
      columns: new Map([
        ["v", { kind: "vector", dimension: 2, rows: Uint32Array.of(0, 1), elements: Float32Array.of(1, 0, 0, 1) }],
        ["text", { kind: "text", values: [null, "x"], omitted: new Set([0]) }],
        ["list", { kind: "multiple", values: [null, ["x"]], omitted: new Set([0]) }],
        ["config", { kind: "json", values: [null, '{"a":1}'], omitted: new Set([0]) }],
      ]),
    };
    let engine: SearchEngine;
    const search = async (filter: unknown): Promise<unknown> => {
      const job: SearchJob = {
        key: "db:main",
        incarnation: "one",
        tableId: 1,
        columnId: 11,
        queries: Float32Array.of(1, 1),
        count: 1,
        similarity: "l2",
        size: 10,
        offset: 0,
        minScore: undefined,
        filter,
        maxBytes: 1e6,
      };
      const outcome = await engine.call("search", job);
      return outcome.kind === "answers" ? outcome.answers[0]!.ids : outcome;
    };

    beforeEach(async () => {
      engine = (await startSqlEngine(url, { connections: 2, statementTimeoutMs: 3_600_000 }, () => {}))({
        onLost: () => {},
        onRestart: () => {},
      });
      await engine.call("begin", { build: 1, key: "db:main", incarnation: "one", version: 1, tables: schema });
      await engine.call("load", { build: 1, batch });
      await engine.call("install", { build: 1, key: "db:main", position: "1" });
    });
    afterEach(() => engine.close());

    test("exists, equals nothing, and whatever depends on it is refused", async () => {
      expect(await search({ $exists: "text" })).toEqual(["large", "small"]);
      expect(await search({ $exists: "list" })).toEqual(["large", "small"]);
      expect(await search({ text: "x" })).toEqual(["small"]);
      expect(await search({ $not: { text: "x" } })).toEqual(["large"]);
      for (const filter of [{ text: { $contains: "x" } }, { list: { $includes: "x" } }, { "config->a": 1 }, { $exists: "config->a" }]) {
        expect(await search(filter)).toMatchObject({
          kind: "invalid",
          message: expect.stringMatching(/of the record "large" holds a value that is too large to be kept for searches/),
        });
      }
    });

    test("is like any other once it is shorter", async () => {
      const shorter: FeedBatch = {
        ...batch,
        columns: new Map(
          [...batch.columns].map(([name, column]) => [name, "omitted" in column ? { ...column, omitted: new Set() } : column]),
        ),
      };
      await engine.call("commit", { key: "db:main", batches: [shorter], position: "2" });
      expect(await search({ text: { $contains: "x" } })).toEqual(["small"]);
      expect(await search({ $exists: "text" })).toEqual(["small"]);
      expect(await search({ "config->a": 1 })).toEqual(["small"]);
    });
  });
});

describe("A database that cannot hold a search store", () => {
  const openAt = (url: string) => startSqlEngine(url, { connections: 2, statementTimeoutMs: 1_000 }, () => {});

  test("is refused with advice: nobody listens there, or the URL is invalid", async () => {
    await expect(openAt("postgres://user:secret@127.0.0.1:9/search")).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringMatching(/^The database at --search-url \(127\.0\.0\.1:9\/search\) cannot be reached: nothing listens there/),
    });
    await expect(openAt("postgres://user:secret@127.0.0.1:9/search")).rejects.not.toMatchObject({
      message: expect.stringContaining("secret"),
    });
    await expect(openAt("nonsense")).rejects.toMatchObject({ code: "INVALID" });
  });

  describeWith("postgresql", "of PostgreSQL without pgvector", (bin) => {
    test("is refused with advice", async () => {
      const postgres = await startPostgres(bin, ["log_min_messages=fatal"]);
      try {
        // Of a role that may create no extension: the machine may have pgvector.
        const url = new URL(await postgres.createDatabase());
        const admin = new pg.Client({ connectionString: url.href });
        await admin.connect();
        await admin.query("CREATE ROLE guest LOGIN").finally(() => admin.end());
        url.username = "guest";
        await expect(openAt(url.href)).rejects.toMatchObject({
          code: "INVALID",
          message: expect.stringMatching(
            /^The database of --search-url has no pgvector, and it cannot be made .*: install it, then CREATE EXTENSION vector/,
          ),
        });
      } finally {
        await postgres.stop();
      }
    });
  });
});
