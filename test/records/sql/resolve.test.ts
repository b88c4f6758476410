import { beforeAll, expect, test } from "vitest";
import { runSql } from "../../../src/records/sql/run-sql.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { COLUMNS, COLUMNS_OF_18, NOT_COLUMNS, PEOPLE } from "./names.ts";

describeOnBothEngines("names in SQL: x.f is a column, or it is refused", (fixture) => {
  const sql = (statement: string) => runSql(fixture.engine, fixture.branch, { statement, params: statement.includes("$1") ? ["1"] : [] });
  let version = 0;

  beforeAll(async () => {
    await fixture.createTable("teams", [{ name: "name", type: "string" }]);
    await fixture.createTable("people", PEOPLE);
    await fixture.change((editor) => editor.addColumn("people", { name: "late", type: "string" }));
    await sql(`INSERT INTO "teams" ("id", "name") VALUES ('red', 'Red')`);
    await sql(`INSERT INTO "people" ("id", "name", "tags", "team", "config") VALUES ('ada', 'Ada', '{a,b}', 'red', '{"a": 1}')`);
    const { rows } = await fixture.engine.query<{ version: number }>("SELECT current_setting('server_version_num')::int4 AS version");
    version = rows[0]!.version;
  });

  test.each(NOT_COLUMNS)("refuses %j before the database sees it", async (statement) => {
    await expect(sql(statement)).rejects.toMatchObject({
      code: "INVALID",
      message: expect.stringMatching(
        /does not exist, or cannot be told from a call|is not allowed|missing FROM-clause|takes constants|write "column" or/,
      ),
    });
  });

  test.each(COLUMNS)("runs %j", async (statement) => {
    await expect(sql(statement)).resolves.toHaveProperty("records");
  });

  test("knows the rows of RETURNING where PostgreSQL does", async () => {
    for (const statement of COLUMNS_OF_18) {
      if (version >= 180_000) await expect(sql(statement)).resolves.toHaveProperty("records");
      else await expect(sql(statement)).rejects.toMatchObject({ code: "INVALID" });
    }
  });
});
