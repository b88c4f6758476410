/**
 * Data written by an earlier release, opened by this one: nothing is lost and everything works. Newer formats
 * are refused, see columns.test.ts.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { type EngineOptions, openEngine } from "../../../src/records/engine/open-engine.ts";
import { openRecordStore } from "../../../src/records/open.ts";
import { openSearchStore } from "../../../src/search/open-search-store.ts";
import { startPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";

const FIXTURES = fileURLToPath(new URL("../../fixtures/", import.meta.url));
const FORMATS = readdirSync(FIXTURES).filter((name) => /^format-\d+\.sql$/.test(name));
const MAIN = { database: "shop", branch: "main" };

const dataDir = mkdtempSync(join(tmpdir(), "lodestone-upgrade-"));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const thing = (i: number) => ({
  id: `t${i}`,
  title: `Thing ${i} 'quoted' ü😀`,
  count: i * 1000,
  price: i === 1 ? 9.5 : i / 8,
  isSold: i % 2 === 0,
  at: `2026-01-0${i + 1}T12:00:00.123Z`,
  tags: [`tag${i}`, 'a"b\\c'],
  extra: { i, deep: [null, true, { x: "y" }] },
  maker: { id: i % 2 === 0 ? "m1" : "m2" },
  v: [i, 1, 0.5],
  size: { width: i },
  xata: { version: i === 1 ? 1 : 0 },
});

async function opensWhole(options: EngineOptions, fixture: string): Promise<void> {
  const engine = await openEngine(options);
  await engine.query(readFileSync(join(FIXTURES, fixture), "utf8"));
  await engine.close();

  const records = await openRecordStore(options);
  try {
    expect((await records.listDatabases()).map(({ name }) => name)).toEqual(["shop"]);
    expect((await records.listBranches("shop")).map(({ name }) => name).sort()).toEqual(["dev", "main"]);
    for (const branch of ["main", "dev"]) {
      const ref = { database: "shop", branch };
      expect(await records.check(ref)).toMatchObject({ faults: [] });
      const { tables } = await records.schema(ref);
      expect(tables.map(({ name, columns }) => [name, columns.map((column) => `${column.name} ${column.type}`)])).toEqual([
        ["people", ["name string", "mail email"]],
        [
          "things",
          [
            "title text",
            "count int",
            "price float",
            "isSold bool",
            "at datetime",
            "tags multiple",
            "extra json",
            "maker link",
            "v vector",
            "size.width int",
            "late string",
          ],
        ],
      ]);
      const { records: found } = await records.query(ref, "things", { sort: { id: "asc" }, columns: ["*"] });
      expect(found).toMatchObject([0, 1, 2, 3].map(thing));
    }
    expect(await records.getRecord(MAIN, "things", "t1", { columns: ["maker.mail", "maker.name"] })).toMatchObject({
      maker: { name: "Grace" },
    });
    expect(await records.migrations.list(MAIN, { limit: 10 })).toHaveLength(5);

    // The data can be written as well as read.
    expect(await records.updateRecord(MAIN, "things", "t1", { count: 5 }, { columns: ["count"] })).toMatchObject({
      xata: { version: 2 },
      count: 5,
    });
    await records.deleteRecord(MAIN, "people", "m1");
    await records.addColumn(MAIN, "things", { name: "new", type: "int" });
    await expect(records.insertRecord(MAIN, "people", { name: "Grace" })).rejects.toMatchObject({ code: "INVALID" });
    const { records: rows } = await records.sql(MAIN, { statement: 'DELETE FROM "things" WHERE "maker" IS NULL RETURNING "id"' });
    expect(rows?.map(({ id }) => id).sort()).toEqual(["t0", "t2"]);
    expect((await records.query({ ...MAIN, branch: "dev" }, "things", {})).records).toHaveLength(4);
    const search = await openSearchStore(records);
    const request = { column: "v", queryVector: [3, 1, 0.5], similarityFunction: "l2", consistency: "strong" } as const;
    expect(await search.vectorSearch(MAIN, "things", request)).toEqual({
      totalCount: 2,
      results: [
        { id: "t3", score: 1 },
        { id: "t1", score: 0.2 },
      ],
    });
    await search.close();
  } finally {
    await records.close();
  }
}

it("there is a fixture of every format, from the first to the one of this release", async () => {
  const options = { dataDir: join(dataDir, "new") };
  await (await openRecordStore(options)).close();
  const engine = await openEngine(options);
  const { rows } = await engine.query<{ version: number }>("SELECT version FROM lodestone.format");
  await engine.close();
  expect(FORMATS.sort()).toEqual(Array.from({ length: rows[0]!.version }, (_, i) => `format-${i + 1}.sql`));
});

it("functions are replaced only when they are not what this release makes", async () => {
  const options = { dataDir: join(dataDir, "functions") };
  const functions = async (before?: string) => {
    const engine = await openEngine(options);
    try {
      if (before !== undefined) await engine.query(before);
      const { rows } = await engine.query<{ name: string; source: string; version: string }>(
        `SELECT proname AS name, pg_get_functiondef(oid) || coalesce(proacl::text, '') AS source, xmin AS version
         FROM pg_proc WHERE pronamespace = 'lodestone'::regnamespace ORDER BY proname`,
      );
      return rows;
    } finally {
      await engine.close();
    }
  };
  const open = async () => (await openRecordStore(options)).close();
  await open();
  const installed = await functions();
  expect(installed.map(({ name }) => name)).toEqual([
    "array_bytes",
    "array_of_bytes",
    "bounded_answer",
    "fold",
    "record_id",
    "touch_record",
  ]);
  await open();
  expect(await functions()).toEqual(installed);

  // What other releases may have left.
  for (const change of [
    "CREATE OR REPLACE FUNCTION lodestone.fold(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)'",
    "GRANT EXECUTE ON FUNCTION lodestone.array_bytes(real[]) TO PUBLIC",
    "COMMENT ON TABLE lodestone.format IS NULL",
  ]) {
    await functions(change);
    await open();
    const replaced = await functions();
    expect(replaced.map(({ source }) => source)).toEqual(installed.map(({ source }) => source));
    expect(replaced.map(({ version }) => version)).not.toEqual(installed.map(({ version }) => version));
  }
});

it.each(FORMATS)("the embedded engine opens %s", (fixture) => opensWhole({ dataDir: join(dataDir, fixture) }, fixture));

describeWith("postgresql", "a PostgreSQL server", (bin) => {
  it.each(FORMATS)("opens %s when the roles of branches are missing", async (fixture) => {
    // A cluster of its own: the fixtures have the same roles, and all databases of a cluster share them.
    const server = await startPostgres(bin, ["max_connections=30"]);
    try {
      await opensWhole({ databaseUrl: await server.createDatabase() }, fixture);
    } finally {
      await server.stop();
    }
  });
});
