/** Statements that come again and again are prepared on the embedded engine, and follow every change of the schema. */
import { expect, test } from "vitest";
import { runSql } from "../../../src/records/sql/run-sql.ts";
import { describeOnEmbeddedEngine } from "../../support/record-engines.ts";
import { recordsOf } from "../data/write/records-of.ts";

describeOnEmbeddedEngine("prepared statements", (fixture) => {
  const prepared = async (): Promise<readonly string[]> =>
    (await fixture.engine.query<{ statement: string }>("SELECT statement FROM pg_prepared_statements")).rows.map(
      ({ statement }) => statement,
    );
  const items = recordsOf(fixture, "items");

  /** Often enough for PostgreSQL to keep the plan. */
  async function write(record: object): Promise<void> {
    for (let i = 0; i < 8; i++) {
      const written = await items.insert(record);
      expect(written).toMatchObject(record);
      expect(await items.get(written.id as string)).toEqual(written);
    }
  }

  test("are each parsed once", async () => {
    await fixture.createTable("items", [{ name: "value", type: "int" }]);
    await write({ value: 7 });
    const texts = await prepared();
    expect(texts.filter((text) => text.startsWith("INSERT"))).toHaveLength(1);
    expect(new Set(texts).size).toBe(texts.length);
  });

  test("follow a column that comes back with another type, and a table that comes back under its name", async () => {
    await write({ value: 8 });
    await fixture.change(async (editor) => {
      await editor.dropColumn("items", "value");
      await editor.addColumn("items", { name: "value", type: "string" });
    });
    await write({ value: "text" });
    await fixture.change(async (editor) => {
      await editor.dropTable("items");
      await editor.createTable("items", [{ name: "value", type: "multiple" }]);
    });
    await write({ value: ["a", "b"] });
  });

  test("are forgotten with a user's SQL, and prepared again", async () => {
    await write({ value: ["c"] });
    await runSql(fixture.engine, fixture.branch, { statement: 'SELECT count(*) FROM "items"' });
    expect((await prepared()).filter((text) => text.startsWith("INSERT"))).toEqual([]);
    await write({ value: ["d"] });
    expect((await prepared()).filter((text) => text.startsWith("INSERT"))).toHaveLength(1);
  });

  test("are at most a hundred, and none of them is long", async () => {
    const columns = Array.from({ length: 110 }, (_, i) => ({ name: `c${i}`, type: "int" as const }));
    await fixture.createTable("wide", columns);
    const wide = recordsOf(fixture, "wide");
    for (const { name } of columns) {
      await wide.insert({ [name]: 1 }, {});
      expect((await prepared()).length).toBeLessThanOrEqual(100);
    }
    await wide.insert(Object.fromEntries(columns.map(({ name }) => [name, 2])));
    for (const text of await prepared()) expect(text.length).toBeLessThanOrEqual(5_000);
    await write({ value: ["e"] });
  });
});
