/**
 * Attacks on the views through which SQL sees a branch whose system columns are underscored, on each wall
 * alone. Also tests that `check` verifies the views.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { checkBranch } from "../../../src/records/check/check-branch.ts";
import { viewSchemaNameOf } from "../../../src/records/identifiers.ts";
import type { BranchInfo, BranchRef } from "../../../src/records/schema.ts";
import { runSql } from "../../../src/records/sql/run-sql.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { CANARY, REFUSED } from "./attacks.ts";
import { firstWall } from "./first-wall.ts";
import { NOT_COLUMNS, PEOPLE } from "./names.ts";

const REF: BranchRef = { database: "views", branch: "main" };
const VIEWS = viewSchemaNameOf(REF);

/** Around the view to its table, at what only the service writes, and at the view itself. */
const AT_VIEWS: readonly string[] = [
  `SELECT * FROM "views:main"."people"`,
  `SELECT * FROM "${VIEWS}"."people"`,
  `SELECT p.ctid FROM "people" p`,
  `SELECT xmin FROM "people"`,
  `SELECT tableoid::regclass FROM "people"`,
  `SELECT (p).xata_id.regclass FROM "people" p`,
  `SELECT (p).pg_column_size FROM "people" p`,
  `SELECT pg_get_viewdef('people')`,
  `SELECT pg_get_ruledef(1)`,
  `SELECT pg_relation_is_updatable('people', true)`,
  `SELECT 'people'::regclass::oid`,
  `SELECT * FROM pg_views`,
  `SELECT * FROM pg_rewrite`,
  `SELECT * FROM information_schema.views`,
  `UPDATE "people" SET "xata_id" = 'other'`,
  `UPDATE "people" SET "xata_version" = 9`,
  `UPDATE "people" SET ("name", "xata_createdat") = ('x', now())`,
  `UPDATE "people" SET "xata_updatedat" = '2000-01-01Z'`,
  `UPDATE "views:main"."people" SET "name" = 'x'`,
  `INSERT INTO "people" VALUES ('new')`,
  `INSERT INTO "people" ("xata_id", "xata_version") VALUES ('new', 9)`,
  `INSERT INTO "people" ("xata_id", "xata_createdat") VALUES ('new', now())`,
  `INSERT INTO "people" ("xata_id") VALUES ('one') ON CONFLICT ("xata_id") DO UPDATE SET "xata_version" = 7`,
  `INSERT INTO "people" ("xata_id") VALUES ('one') ON CONFLICT ("xata_id") DO UPDATE SET "xata_id" = 'two'`,
  `INSERT INTO "views:main"."people" ("id") VALUES ('new')`,
  `WITH w AS (UPDATE "people" SET "xata_id" = 'two' RETURNING *) SELECT * FROM w`,
  `MERGE INTO "people" p USING "teams" t ON true WHEN MATCHED THEN UPDATE SET "xata_id" = 'x'`,
  `TRUNCATE "people"`,
  `LOCK TABLE "people"`,
  `COPY "people" TO STDOUT`,
  `DROP VIEW "people"`,
  `DROP SCHEMA "${VIEWS}" CASCADE`,
  `CREATE VIEW "${VIEWS}"."mine" AS SELECT 1`,
  `CREATE OR REPLACE VIEW "people" AS SELECT 1`,
  `CREATE TABLE "${VIEWS}"."mine" (n int)`,
  `CREATE FUNCTION "${VIEWS}".f() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
  `CREATE RULE r AS ON INSERT TO "people" DO INSTEAD NOTHING`,
  `CREATE TRIGGER t INSTEAD OF INSERT ON "people" FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
  `ALTER VIEW "people" SET (security_invoker = true)`,
  `ALTER VIEW "people" ALTER COLUMN "name" SET DEFAULT 'x'`,
  `ALTER VIEW "people" RENAME TO "mine"`,
  `ALTER VIEW "people" OWNER TO CURRENT_USER`,
  `ALTER SCHEMA "${VIEWS}" OWNER TO CURRENT_USER`,
  `GRANT ALL ON "people" TO PUBLIC`,
  `GRANT UPDATE ("xata_id") ON "people" TO CURRENT_USER`,
  `REFRESH MATERIALIZED VIEW "people"`,
  `COMMENT ON VIEW "people" IS 'mine'`,
  `SET search_path = "views:main"`,
];

/**
 * The branch's own records, which its role may read and write. GRANT by a role that owns nothing gives
 * nothing. The first wall refuses these all the same.
 */
const HARMLESS = /^(?:SELECT|SET|COPY|LOCK|GRANT|UPDATE "views:main"|INSERT INTO "views:main"|INSERT INTO "people" VALUES)/;

describeOnBothEngines("Attacks on a branch with underscored system columns", (fixture) => {
  let catalog: Catalog;
  let branch: BranchInfo;

  const stateOf = async (): Promise<unknown> =>
    (
      await fixture.engine.query(
        `SELECT (SELECT jsonb_agg(p ORDER BY p."id") FROM "views:main"."people" p) AS people, (SELECT jsonb_agg(s) FROM "views:other"."secrets" s) AS secrets,
           (SELECT array_agg(nspname || '.' || relname || relkind::text || coalesce(relacl::text, '') || coalesce(reloptions::text, '') ORDER BY 1)
             FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname LIKE 'views:%') AS relations,
           (SELECT array_agg(ev_class::regclass::text || rulename ORDER BY 1) FROM pg_rewrite WHERE oid > 16383) AS rules,
           (SELECT array_agg(nspname || nspowner || coalesce(nspacl::text, '') ORDER BY 1) FROM pg_namespace WHERE nspname LIKE 'views:%') AS schemas,
           (SELECT array_agg(rolname ORDER BY 1) FROM pg_roles) AS roles`,
      )
    ).rows;

  beforeAll(async () => {
    catalog = await Catalog.open(fixture.engine);
    const other = { database: "views", branch: "other" };
    await catalog.createBranch(other);
    await catalog.change(other, (editor) => editor.createTable("secrets", [{ name: "name", type: "string" }]));
    await fixture.engine.query(`INSERT INTO "views:other"."secrets" ("id", "name") VALUES ('s', $1)`, [CANARY]);
    await catalog.createBranch(REF);
    branch = await catalog.change(REF, async (editor) => {
      await editor.createTable("t", [{ name: "name", type: "string" }]);
      await editor.createTable("teams", [{ name: "name", type: "string" }]);
      await editor.createTable("people", PEOPLE);
      editor.setSystemNaming("underscored");
    });
    await runSql(fixture.engine, branch, { statement: `INSERT INTO "people" ("xata_id", "name") VALUES ('one', 'own')` });
  });
  afterAll(() => catalog.close());

  const inJail = async (statement: string): Promise<{ code: string | undefined; shown: string }> => {
    let shown = "";
    let code: string | undefined;
    await fixture.engine
      .transaction(
        async (connection) => {
          const result = await connection.query(statement.replaceAll("\0", " "));
          shown = JSON.stringify(result.rows, (_key, value) => (typeof value === "bigint" ? String(value) : (value as unknown))) ?? "";
          throw new Error("roll back");
        },
        { jail: { roleName: branch.roleName, schemaName: branch.sqlSchemaName }, timeoutMs: 3_600_000 },
      )
      .catch((error: { code?: string }) => {
        ({ code } = error);
      });
    return { code, shown };
  };

  test("the first wall refuses everything aimed at the views, and everything that it refuses elsewhere", async () => {
    // x(a, b) gives the view's first two columns other names, and they are no longer the service's.
    const notColumns = NOT_COLUMNS.filter((statement) => !statement.includes("x(a, b)"));
    for (const statement of [...AT_VIEWS, ...notColumns])
      expect(await firstWall(fixture.engine, branch, statement), statement).toMatchObject({ code: "INVALID" });
    for (const statement of Object.values(REFUSED).flat()) {
      const outcome = await firstWall(fixture.engine, branch, statement);
      // A statement that writes to "id" or "xata.version" names no column of a view.
      if (outcome === "passed")
        await expect(runSql(fixture.engine, branch, { statement }), statement).rejects.toMatchObject({ code: "INVALID" });
      else expect(outcome, statement).toMatchObject({ code: "INVALID" });
    }
    // The view has no column of that name, which only PostgreSQL knows.
    for (const column of ["id", "xata.version", "xata.createdAt"])
      await expect(runSql(fixture.engine, branch, { statement: `SELECT "${column}" FROM "people"` })).rejects.toMatchObject({
        code: "INVALID",
      });
  });

  test("the second wall alone lets none of them change a view, a right, or what the service writes", async () => {
    const before = await stateOf();
    for (const statement of AT_VIEWS) {
      const { code, shown } = await inJail(statement);
      if (!HARMLESS.test(statement)) expect(code, statement).toMatch(/^(?:42|0A|55)/);
      expect(shown, statement).not.toContain(CANARY);
    }
    for (const statement of [
      `SELECT * FROM "views:other"."secrets"`,
      `SELECT * FROM "${viewSchemaNameOf({ database: "views", branch: "other" })}"."secrets"`,
    ])
      expect((await inJail(statement)).code, statement).toMatch(/^(?:42501|42P01|3F000)$/);
    expect(await stateOf()).toEqual(before);
  });

  test("check accepts the views as they should be, and finds every deviation", async () => {
    const faults = async () => (await checkBranch(fixture.engine, REF)).faults;
    expect(await faults()).toEqual([]);
    const role = `"${branch.roleName}"`;
    const people = `"${VIEWS}"."people"`;
    const spoiled: readonly (readonly [spoil: string, mend: string, message: RegExp])[] = [
      [
        `GRANT UPDATE ("xata_version") ON ${people} TO ${role}`,
        `REVOKE UPDATE ("xata_version") ON ${people} FROM ${role}`,
        /may write the column/,
      ],
      [`REVOKE INSERT ("name") ON ${people} FROM ${role}`, `GRANT INSERT ("name") ON ${people} TO ${role}`, /may write the column/],
      [`REVOKE DELETE ON ${people} FROM ${role}`, `GRANT DELETE ON ${people} TO ${role}`, /rights to the view/],
      [`GRANT CREATE ON SCHEMA "${VIEWS}" TO ${role}`, `REVOKE CREATE ON SCHEMA "${VIEWS}" FROM ${role}`, /rights to the view/],
      [`CREATE RULE r AS ON INSERT TO ${people} DO INSTEAD NOTHING`, `DROP RULE r ON ${people}`, /rights to the view/],
      [`CREATE TABLE "${VIEWS}"."mine" (n int)`, `DROP TABLE "${VIEWS}"."mine"`, /not one of them/],
      [
        `ALTER VIEW ${people} RENAME COLUMN "name" TO "tags2"`,
        `ALTER VIEW ${people} RENAME COLUMN "tags2" TO "name"`,
        /columns of the table/,
      ],
      [`ALTER VIEW ${people} RENAME TO "mine"`, `ALTER VIEW "${VIEWS}"."mine" RENAME TO "people"`, /missing|not one of them/],
    ];
    for (const [spoil, mend, message] of spoiled) {
      await fixture.engine.query(spoil);
      expect(await faults(), spoil).toContainEqual(expect.objectContaining({ message: expect.stringMatching(message) }));
      await fixture.engine.query(mend);
      expect(await faults(), mend).toEqual([]);
    }
    const { rows } = await fixture.engine.query<{ text: string }>(`SELECT pg_get_viewdef('${people}'::regclass) AS text`);
    await fixture.engine.query(`CREATE OR REPLACE VIEW ${people} AS ${rows[0]!.text.replace(/;\s*$/, "")} WHERE "id" <> 'one'`);
    expect(await faults()).toContainEqual(expect.objectContaining({ message: expect.stringContaining("does not show") }));
    await fixture.engine.query(`CREATE OR REPLACE VIEW ${people} AS ${rows[0]!.text}`);
    expect(await faults()).toEqual([]);
  });
});
