import { expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { runSql } from "../../../src/records/sql/run-sql.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";

describeOnBothEngines("the limit on the nesting of json", (fixture) => {
  test("is added to columns of an earlier release when they are opened, and does not apply to what is there", async () => {
    await fixture.createTable("old", [{ name: "config", type: "json" }]);
    const { schemaName } = fixture.branch;
    const deep = "(repeat('[', 200) || repeat(']', 200))::jsonb";
    await fixture.engine.query(`ALTER TABLE "${schemaName}"."old" DROP CONSTRAINT "old.config.json"`);
    await fixture.engine.query(`INSERT INTO "${schemaName}"."old" ("id", "config") VALUES ('deep', ${deep})`);
    for (let start = 0; start < 2; start++) await (await Catalog.open(fixture.engine)).close();
    const sql = (statement: string) => runSql(fixture.engine, fixture.branch, { statement });
    await expect(sql(`INSERT INTO "old" ("id", "config") VALUES ('new', ${deep})`)).rejects.toMatchObject({
      code: "INVALID",
      message: expect.stringContaining("at most 128 levels"),
    });
    expect((await sql(`SELECT "config" FROM "old"`)).records).toEqual([{ config: JSON.parse("[".repeat(200) + "]".repeat(200)) }]);
    const { rows } = await fixture.engine.query(
      `SELECT conname FROM pg_constraint WHERE conrelid = '"${schemaName}"."old"'::regclass AND contype = 'c'`,
    );
    expect(rows).toEqual([{ conname: "old.config.json" }]);
  });

  test("moves with a renamed column and a renamed table", async () => {
    await fixture.createTable("named", [{ name: "config", type: "json" }]);
    await fixture.change(async (editor) => {
      await editor.renameColumn("named", "config", "settings");
      await editor.renameTable("named", "renamed");
    });
    const deep = "(repeat('[', 200) || repeat(']', 200))::jsonb";
    await expect(
      runSql(fixture.engine, fixture.branch, { statement: `INSERT INTO "renamed" ("settings") VALUES (${deep})` }),
    ).rejects.toMatchObject({ message: expect.stringContaining("at most 128 levels") });
  });
});
