/**
 * Two servers on one database, where no notification ever arrives: what one of them has answered is true on the other,
 * whatever that one has cached.
 */

import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRecordStore } from "../../src/records/open.ts";
import type { RecordStore } from "../../src/records/record-store.ts";
import type { BranchRef } from "../../src/records/schema.ts";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { LIMIT_MS, until } from "../support/patience.ts";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";

const VECTOR = { name: "v", type: "vector", vector: { dimension: 2 } } as const;

describeWith("postgresql", "Two servers whose notifications are late", (bin) => {
  let server: TestPostgres;
  let one: RecordStore;
  let other: RecordStore;
  let search: SearchStore;
  let branches = 0;

  beforeAll(async () => {
    server = await startPostgres(bin);
    const databaseUrl = await server.createDatabase();
    one = await openRecordStore({ databaseUrl });
    other = await openRecordStore({ databaseUrl });
    // Long enough that nothing but the search itself makes a round.
    search = await openSearchStore(other, { pollMs: 3_600_000, waitMs: LIMIT_MS });
    await until("the search store is ready", () => search.status().ready);
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    await client.query("ALTER FUNCTION pg_catalog.pg_notify(text, text) RENAME TO notify_in_time");
    await client.query("CREATE FUNCTION pg_catalog.pg_notify(text, text) RETURNS void LANGUAGE sql AS ''");
    await client.end();
  });
  afterAll(async () => {
    await search.close();
    await other.close();
    await one.close();
    await server.stop();
  });

  /** With an empty branch in the other server's cache. */
  const newBranch = async (): Promise<BranchRef> => {
    const ref = { database: "late", branch: `b${branches++}` };
    await one.createBranch(ref);
    expect((await other.branch(ref)).tables.size).toBe(0);
    return ref;
  };
  const strong = { column: "v", queryVector: [1, 1], consistency: "strong" } as const;

  test("a schema is answered as it is, and not after its branch was deleted", async () => {
    const ref = await newBranch();
    await one.createTable(ref, "t", [VECTOR]);
    expect((await other.schema(ref)).tables.map(({ name }) => name)).toEqual(["t"]);
    await one.addColumn(ref, "t", { name: "n", type: "int" });
    expect(await other.column(ref, "t", "n")).toMatchObject({ type: "int" });
    await one.dropColumn(ref, "t", "n");
    expect((await other.tableSchema(ref, "t")).columns.map(({ name }) => name)).toEqual(["v"]);
    await one.dropBranch(ref);
    for (const answer of [() => other.schema(ref), () => other.tableSchema(ref, "t"), () => other.currentBranch(ref)])
      await expect(answer()).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: expect.stringContaining(`Branch "${ref.branch}" does not exist`),
      });
  });

  test("a new table is searched, strongly and not; so is one in a branch that was deleted and created again", async () => {
    const ref = await newBranch();
    for (let life = 0; life < 2; life++) {
      await one.createTable(ref, "t", [VECTOR]);
      await one.insertRecord(ref, "t", { v: [life, 1] });
      expect((await search.vectorSearch(ref, "t", strong)).results).toEqual([{ id: expect.any(String), score: expect.any(Number) }]);
      await one.addColumn(ref, "t", { name: "n", type: "int" });
      expect((await search.vectorSearch(ref, "t", { ...strong, consistency: "eventual", filter: { n: 1 } })).totalCount).toBe(0);
      await one.dropBranch(ref);
      if (life === 0) await one.createBranch(ref);
    }
    await expect(search.vectorSearch(ref, "t", strong)).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(search.vectorSearch({ ...ref, branch: "none" }, "t", strong)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("records of a new table and column are written and read", async () => {
    const ref = await newBranch();
    await one.createTable(ref, "t", [{ name: "a", type: "int" }]);
    const { id } = await other.insertRecord(ref, "t", { a: 1 });
    await one.addColumn(ref, "t", { name: "b", type: "int" });
    await other.updateRecord(ref, "t", String(id), { b: 2 });
    expect((await other.query(ref, "t", { filter: { b: 2 } })).records).toHaveLength(1);
    await one.addColumn(ref, "t", { name: "c", type: "int" });
    expect((await other.query(ref, "t", { filter: { c: 2 } })).records).toHaveLength(0);
    await one.createTable(ref, "u", [{ name: "a", type: "int" }]);
    for await (const page of other.scanRecords(ref, "u")) expect(page).toEqual([]);
    // What is wrong is refused once, as it should be.
    await expect(other.query(ref, "t", { filter: { d: 2 } })).rejects.toMatchObject({ code: "INVALID" });
    await expect(other.query(ref, "none", {})).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});
