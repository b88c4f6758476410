import { afterAll, beforeAll, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { checkBranch } from "../../../src/records/check/check-branch.ts";
import type { BranchRef } from "../../../src/records/schema.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";

describeOnBothEngines("Checking a branch", (fixture) => {
  let catalog: Catalog;
  let count = 0;
  beforeAll(async () => {
    catalog = await Catalog.open(fixture.engine);
  });
  afterAll(() => catalog.close());

  const newBranch = async (): Promise<{ ref: BranchRef; sql: (...statements: string[]) => Promise<void> }> => {
    const ref = { database: "check", branch: `b${count++}` };
    await catalog.createBranch(ref);
    const { schemaName } = await catalog.change(ref, async (editor) => {
      await editor.createTable("teams", [{ name: "name", type: "string", unique: true, notNull: true }]);
      await editor.createTable("users", [
        { name: "mail", type: "email" },
        { name: "team", type: "link", link: { table: "teams" } },
        { name: "v", type: "vector", vector: { dimension: 2 } },
        { name: "address.city", type: "string" },
        { name: "n", type: "int" },
        { name: "f", type: "float" },
        { name: "b", type: "bool" },
        { name: "at", type: "datetime" },
        { name: "tags", type: "multiple" },
        { name: "config", type: "json" },
      ]);
    });
    const sql = async (...statements: string[]): Promise<void> => {
      await fixture.engine.transaction(async (connection) => {
        await connection.query("SELECT set_config('search_path', $1, true)", [`"${schemaName}"`]);
        for (const statement of statements) await connection.query(statement);
      });
    };
    await sql(
      "INSERT INTO teams (id, name) VALUES ('t1', 'one'), ('t2', 'two')",
      "INSERT INTO users (id, mail, team, v) VALUES ('u', 'a@b', 't1', '{1,2}'), ('w', NULL, NULL, NULL)",
    );
    return { ref, sql };
  };

  test("finds nothing in a sound branch, and counts its records", async () => {
    const { ref } = await newBranch();
    expect(await checkBranch(fixture.engine, ref)).toEqual({
      faults: [],
      tables: [
        { name: "teams", records: 2 },
        { name: "users", records: 2 },
      ],
      outboxRows: 4,
    });
  });

  test("of a branch that does not exist is NOT_FOUND", async () => {
    await expect(checkBranch(fixture.engine, { database: "check", branch: "nope" })).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test.each<[string, string[], { table?: string; column?: string; message: string | RegExp }[]]>([
    [
      "a trigger that was switched off",
      ['ALTER TABLE users DISABLE TRIGGER "lodestone.update"'],
      [{ table: "users", message: /trigger "lodestone\.update" is missing or disabled/ }],
    ],
    [
      "a trigger that was dropped",
      ['DROP TRIGGER "lodestone.touch" ON teams'],
      [{ table: "teams", message: /trigger "lodestone\.touch"/ }],
    ],
    ["a table that was dropped by hand", ["DROP TABLE users"], [{ table: "users", message: /in the catalog but not in the database/ }]],
    ["a table made by hand", ["CREATE TABLE mine ()"], [{ table: "mine", message: /in the database but not in the catalog/ }]],
    [
      "a column that was dropped by hand",
      ['ALTER TABLE users DROP COLUMN "address.city"'],
      [{ table: "users", column: "address.city", message: /not in the database/ }],
    ],
    [
      "a column made by hand",
      ["ALTER TABLE users ADD COLUMN extra int"],
      [{ table: "users", column: "extra", message: /not in the catalog/ }],
    ],
    [
      "a column of another type",
      ["ALTER TABLE users ALTER COLUMN n TYPE int4"],
      [{ table: "users", column: "n", message: "The column's type is int4; it has to be int8." }],
    ],
    [
      "a rule that was dropped",
      [
        'ALTER TABLE users DROP CONSTRAINT "users.mail.email"',
        'ALTER TABLE users DROP CONSTRAINT "users.team.link"',
        'ALTER TABLE teams DROP CONSTRAINT "teams.name.unique"',
      ],
      [
        { table: "teams", column: "name", message: /rule "unique"/ },
        { table: "users", column: "mail", message: /rule "email"/ },
        { table: "users", column: "team", message: /rule "link"/ },
      ],
    ],
    [
      "a column that lost its notNull",
      ["ALTER TABLE teams ALTER COLUMN name DROP NOT NULL"],
      [{ table: "teams", column: "name", message: /is notNull, but the database does not enforce it/ }],
    ],
    ["a lost outbox", ['DROP TABLE "lodestone.feed"'], [{ message: /outbox of the change feed is missing/ }]],
    [
      "a follower from the future",
      ["INSERT INTO lodestone.followers SELECT nspname, 'f', '99999999999' FROM pg_namespace WHERE nspname = current_schema()"],
      [{ message: /ahead of the database/ }],
    ],
  ])("finds %s", async (_what, damage, faults) => {
    const { ref, sql } = await newBranch();
    await sql(...damage);
    expect((await checkBranch(fixture.engine, ref)).faults).toEqual(
      faults.map((fault) => ({
        ...fault,
        message: fault.message instanceof RegExp ? expect.stringMatching(fault.message) : fault.message,
      })),
    );
  });

  test("finds records that break rules which once held", async () => {
    const { ref, sql } = await newBranch();
    // As a damaged disk, or a rule that was disabled for a while, would leave them.
    await sql(
      'ALTER TABLE users DROP CONSTRAINT "users.v.vector"',
      "ALTER TABLE users DISABLE TRIGGER ALL",
      "UPDATE users SET v = '{1,NaN}', team = 'nobody' WHERE id = 'u'",
      "ALTER TABLE users ENABLE TRIGGER ALL",
      'ALTER TABLE users ADD CONSTRAINT "users.v.vector" CHECK (v IS NULL OR true)',
    );
    expect((await checkBranch(fixture.engine, ref)).faults).toEqual([
      { table: "users", column: "v", message: "1 of 2 records have a vector that is not of dimension 2, or not of finite numbers." },
      { table: "users", column: "team", message: '1 of 2 records link to records of table "teams" that do not exist.' },
    ]);
  });
});
