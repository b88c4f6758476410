import { beforeAll, expect, test } from "vitest";
import { catalogNames } from "../../../src/records/sql/catalog-names.ts";
import { runSql } from "../../../src/records/sql/run-sql.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { COLUMNS, COLUMNS_OF_18, HARMLESS_AFTER_A_DOT, NOT_COLUMNS, PEOPLE } from "./names.ts";

describeOnBothEngines("names in SQL: x.f is a column, an allowed call, or refused", (fixture) => {
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
      message: expect.stringMatching(/after a dot may be a call|is not allowed|write "column" or/),
    });
  });

  test.each(HARMLESS_AFTER_A_DOT)("leaves %j to the database", async (statement) => {
    const outcome = await sql(statement).then(
      () => "INVALID",
      (error: { code: string }) => error.code,
    );
    expect(outcome).toBe("INVALID");
  });

  test("refuses a name after a dot whatever the version of PostgreSQL calls it, and no name that people give their columns", async () => {
    const { refusedAfterADot } = await catalogNames(fixture.engine);
    for (const name of [
      "pg_sleep",
      "pg_read_file",
      "regclass",
      "_regclass",
      "regclasssend",
      "nextval",
      "lo_import",
      "current_setting",
      "pg_partition_root",
    ])
      expect(refusedAfterADot, name).toContain(name);
    for (const name of [
      "name",
      "text",
      "date",
      "path",
      "money",
      "xml",
      "system",
      "version",
      "center",
      "width",
      "point",
      "_date",
      "oid",
      "record",
      "trigger",
    ])
      expect(refusedAfterADot, name).not.toContain(name);
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
