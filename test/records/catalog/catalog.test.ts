import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { toBranchSchema } from "../../../src/records/catalog/document.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { constraintName, schemaNameOf } from "../../../src/records/identifiers.ts";
import type { BranchRef, ColumnSchema } from "../../../src/records/schema.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { describeWith } from "../../support/requirements.ts";

const LONG = "x".repeat(63);

describeOnBothEngines("The catalog", (fixture) => {
  let catalog: Catalog;
  let count = 0;

  beforeAll(async () => {
    catalog = await Catalog.open(fixture.engine);
  });
  afterAll(() => catalog.close());

  const newRef = (): BranchRef => ({ database: "cat", branch: `b${count++}` });
  const newBranch = async (): Promise<BranchRef> => {
    const ref = newRef();
    await catalog.createBranch(ref);
    return ref;
  };
  const sql = async <Row extends object = Record<string, unknown>>(
    ref: BranchRef,
    text: string,
    values: unknown[] = [],
  ): Promise<Row[]> => {
    const { schemaName } = await catalog.branch(ref);
    return fixture.engine.transaction(async (connection) => {
      await connection.query("SELECT set_config('search_path', $1, true)", [`"${schemaName}"`]);
      return (await connection.query<Row>(text, values)).rows;
    });
  };
  const names = async (ref: BranchRef): Promise<[string, string[]][]> =>
    [...(await catalog.branch(ref)).tables.values()].map((table) => [table.name, [...table.columns.keys()]]);

  describe("databases and branches", () => {
    test("the first branch brings its database, and both are listed in the order of their names", async () => {
      await catalog.createBranch({ database: "zoo", branch: "main" });
      await catalog.createBranch({ database: "zoo", branch: "Dev~1" });
      expect((await catalog.listDatabases()).map(({ name }) => name)).toContain("zoo");
      expect(await catalog.listBranches("zoo")).toEqual([
        { name: "Dev~1", createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) },
        { name: "main", createdAt: expect.any(String) },
      ]);
    });

    test("creating a branch that exists answers it as it is", async () => {
      const ref = newRef();
      const first = await catalog.createBranch(ref);
      const second = await catalog.createBranch(ref);
      expect([first.created, second.created]).toEqual([true, false]);
      expect(second.branch).toEqual(first.branch);
    });

    test("branches of one name created at once are one branch", async () => {
      const ref = newRef();
      const results = await Promise.all(Array.from({ length: 5 }, () => catalog.createBranch(ref)));
      expect(results.filter(({ created }) => created)).toHaveLength(1);
    });

    test("what is missing is named: the database, or the branch in it", async () => {
      await catalog.createBranch({ database: "here", branch: "main" });
      await expect(catalog.branch({ database: "nowhere", branch: "main" })).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: 'Database "nowhere" does not exist.',
      });
      await expect(catalog.branch({ database: "here", branch: "x" })).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: 'Branch "x" does not exist in database "here".',
      });
      await expect(catalog.listBranches("nowhere")).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(catalog.dropBranch({ database: "here", branch: "x" })).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(catalog.dropDatabase("nowhere")).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(catalog.change({ database: "here", branch: "x" }, async () => {})).rejects.toMatchObject({ code: "NOT_FOUND" });
    });

    test.each(["", "a b", "a:b", "ä", 'a"b', "a.b", "a/b", "x".repeat(256), "__proto__ ", "a\u0000"])(
      "the name %j is refused",
      async (name) => {
        await expect(catalog.createBranch({ database: name, branch: "main" })).rejects.toMatchObject({
          code: "INVALID",
          message: /Database name/,
        });
        await expect(catalog.createBranch({ database: "ok", branch: name })).rejects.toMatchObject({
          code: "INVALID",
          message: /Branch name/,
        });
      },
    );

    test("names of 255 characters, of PostgreSQL's own prefix, and that look like JavaScript's insides are as good as any", async () => {
      const refs = [
        { database: "d".repeat(255), branch: "b".repeat(255) },
        { database: "d".repeat(255), branch: `${"b".repeat(254)}c` },
        { database: "pg_catalog", branch: "main" },
        { database: "__proto__", branch: "constructor" },
      ];
      expect(new Set(refs.map(schemaNameOf)).size).toBe(4);
      for (const ref of refs) {
        expect(schemaNameOf(ref).length).toBeLessThanOrEqual(63);
        expect((await catalog.createBranch(ref)).created).toBe(true);
        await catalog.change(ref, (editor) => editor.createTable("__proto__", [{ name: "__proto__", type: "string" }]));
        expect(await names(ref)).toEqual([["__proto__", ["__proto__"]]]);
        await sql(ref, `INSERT INTO "__proto__" ("__proto__") VALUES ('x')`);
      }
      await catalog.dropDatabase("d".repeat(255));
    });

    test("dropping a branch takes its tables and its role with it, and leaves the database", async () => {
      const ref = { database: "dropping", branch: "main" };
      const { branch } = await catalog.createBranch(ref);
      await catalog.change(ref, (editor) => editor.createTable("t"));
      await catalog.dropBranch(ref);
      await expect(catalog.branch(ref)).rejects.toMatchObject({ code: "NOT_FOUND" });
      expect(await catalog.listBranches("dropping")).toEqual([]);
      const left = await fixture.engine.query(
        "SELECT nspname FROM pg_namespace WHERE nspname = $1 UNION SELECT rolname FROM pg_roles WHERE rolname = $2",
        [branch.schemaName, branch.roleName],
      );
      expect(left.rows).toEqual([]);
    });

    test("dropping a database drops its branches", async () => {
      for (const branch of ["a", "b"]) await catalog.createBranch({ database: "both", branch });
      await catalog.dropDatabase("both");
      await expect(catalog.branch({ database: "both", branch: "a" })).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: /Database "both"/,
      });
      expect((await catalog.listDatabases()).map(({ name }) => name)).not.toContain("both");
    });
  });

  describe("copies of a branch", () => {
    test("have the schema, the records, their versions and times, and live on their own", async () => {
      const from = await newBranch();
      await catalog.change(from, async (editor) => {
        await editor.createTable("teams", [{ name: "name", type: "string", unique: true, notNull: true }]);
        await editor.createTable("users", [
          { name: "mail", type: "email", unique: true },
          { name: "address.city", type: "string", defaultValue: "Köln" },
          { name: "team", type: "link", link: { table: "teams" } },
          { name: "boss", type: "link", link: { table: "users" } },
          { name: "v", type: "vector", vector: { dimension: 3 } },
        ]);
        // Links that go round.
        await editor.addColumn("teams", { name: "lead", type: "link", link: { table: "users" } });
      });
      await sql(from, "INSERT INTO teams (id, name) VALUES ('t', 'T')");
      await sql(from, "INSERT INTO users (id, mail, team, boss, v) VALUES ('u', 'a@b', 't', 'u', '{1,2,3}')");
      await sql(from, "UPDATE teams SET lead = 'u'");
      const ref = { database: from.database, branch: `${from.branch}-copy` };
      const { branch } = await catalog.createBranch(ref, { from: from.branch });

      const source = await catalog.branch(from);
      expect(toBranchSchema(branch)).toEqual(toBranchSchema(source));
      expect([branch.incarnation === source.incarnation, branch.roleName === source.roleName]).toEqual([false, false]);
      for (const table of ["teams", "users"])
        expect(await sql(ref, `SELECT * FROM ${table}`)).toEqual(await sql(from, `SELECT * FROM ${table}`));

      await sql(ref, "DELETE FROM users");
      expect(await sql(ref, 'SELECT id, lead, "xata.version" AS version FROM teams')).toEqual([{ id: "t", lead: null, version: 2 }]);
      expect(await sql(from, "SELECT lead FROM teams")).toEqual([{ lead: "u" }]);
      for (const statement of [
        "INSERT INTO teams (name) VALUES ('T')",
        "INSERT INTO teams (name) VALUES (NULL)",
        "INSERT INTO users (mail) VALUES ('no address')",
        "INSERT INTO users (team) VALUES ('nobody')",
        "INSERT INTO users (v) VALUES ('{1,2}')",
      ]) {
        await expect(sql(ref, statement)).rejects.toMatchObject({ code: expect.stringMatching(/^23/) });
      }
      expect(await sql(ref, `INSERT INTO users (mail) VALUES ('c@d') RETURNING "address.city" AS city`)).toEqual([{ city: "Köln" }]);
      expect((await sql(ref, `SELECT table_name FROM "lodestone.feed"`)).map((row) => row.table_name)).toEqual(["users", "teams", "users"]);
      await catalog.dropBranch(from);
      expect(await sql(ref, "SELECT name FROM teams")).toEqual([{ name: "T" }]);
    });

    test("of a branch that does not exist, or over one that does, are refused and leave nothing", async () => {
      const ref = await newBranch();
      const missing = { database: ref.database, branch: "fresh" };
      await expect(catalog.createBranch(missing, { from: "nope" })).rejects.toMatchObject({ code: "NOT_FOUND", message: /Branch "nope"/ });
      await expect(catalog.branch(missing)).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(catalog.createBranch({ database: "no-database", branch: "b" }, { from: "main" })).rejects.toMatchObject({
        code: "NOT_FOUND",
      });
      expect((await catalog.listDatabases()).map(({ name }) => name)).not.toContain("no-database");
      const other = await newBranch();
      await expect(catalog.createBranch(ref, { from: other.branch })).rejects.toMatchObject({
        code: "CONFLICT",
        message: /exists already/,
      });
    });
  });

  describe("tables", () => {
    test("are created with columns of every type, whose rules hold whoever writes", async () => {
      const ref = await newBranch();
      const columns: ColumnSchema[] = [
        { name: "s", type: "string", defaultValue: 'it\'s \\ "x"' },
        { name: "t", type: "text", notNull: true, defaultValue: "" },
        { name: "m", type: "email", unique: true },
        { name: "i", type: "int", defaultValue: "-9223372036854775808" },
        { name: "f", type: "float", defaultValue: "1e-3" },
        { name: "b", type: "bool", defaultValue: "true" },
        { name: "d", type: "datetime", defaultValue: "2026-01-31T12:00:00+02:00" },
        { name: "n", type: "datetime", defaultValue: "now" },
        { name: "l", type: "multiple", defaultValue: '["a", "\\"b\\\\", "c,d"]' },
        { name: "j", type: "json", defaultValue: '{"a": [1, "\'"]}' },
        { name: "p", type: "link", link: { table: "all" } },
        { name: "v", type: "vector", vector: { dimension: 2 }, defaultValue: "[1, -0.5]" },
        { name: "a.b.c", type: "string" },
        { name: "a.b.d", type: "string" },
      ];
      await catalog.change(ref, (editor) => editor.createTable("all", columns));
      expect(toBranchSchema(await catalog.branch(ref))).toEqual({ tables: [{ name: "all", columns }] });
      const [row] = await sql(
        ref,
        `INSERT INTO "all" (id) VALUES (DEFAULT) RETURNING *, f = 0.001 AS f_is, now() - n < interval '1 minute' AS n_is, d = '2026-01-31T10:00:00Z' AS d_is`,
      );
      expect(row).toMatchObject({
        id: expect.stringMatching(/^rec_[0-9a-v]{20}$/),
        s: 'it\'s \\ "x"',
        t: "",
        m: null,
        i: -9223372036854775808n,
        f_is: true,
        b: true,
        d_is: true,
        n_is: true,
        l: ["a", '"b\\', "c,d"],
        j: { a: [1, "'"] },
        p: null,
        v: [1, -0.5],
        "xata.version": 0,
      });
      const refused: [string, string][] = [
        ["t", "NULL"],
        ["m", "'no address'"],
        ["m", "'a@ b'"],
        ["m", "'a@b@c'"],
        ["p", "'nobody'"],
        ["v", "'{1}'"],
        ["v", "'{1,2,3}'"],
        ["v", "'{1,NULL}'"],
        ["v", "'{1,NaN}'"],
        ["v", "'{Infinity,1}'"],
        ["v", "'{1,-Infinity}'"],
        ["v", "'{{1,2}}'"],
        ["v", "'[0:1]={1,2}'"],
        ["v", "'{}'"],
      ];
      for (const [column, value] of refused) {
        await expect(sql(ref, `INSERT INTO "all" ("${column}") VALUES (${value})`), `${column} = ${value}`).rejects.toMatchObject({
          code: expect.stringMatching(/^23/),
        });
      }
      await sql(ref, `INSERT INTO "all" (m) VALUES ('a@b')`);
      await expect(sql(ref, `INSERT INTO "all" (m) VALUES ('a@b')`)).rejects.toMatchObject({
        code: "23505",
        constraint: constraintName("all", "m", "unique"),
      });
    });

    test("ids that SQL makes are in the order of their time, and do not repeat", async () => {
      const ref = await newBranch();
      await catalog.change(ref, (editor) => editor.createTable("t"));
      const ids: string[] = [];
      for (let i = 0; i < 5; i++) {
        ids.push((await sql<{ id: string }>(ref, "INSERT INTO t (id) VALUES (DEFAULT) RETURNING id"))[0]!.id);
        await new Promise((resolve) => setTimeout(resolve, 3));
      }
      expect(ids).toEqual([...ids].sort());
      const [{ n }] = (await sql<{ n: number }>(
        ref,
        "SELECT count(DISTINCT lodestone.record_id())::int4 AS n FROM generate_series(1, 5000)",
      )) as [{ n: number }];
      expect(n).toBe(5000);
    });

    test("text is ordered by code point", async () => {
      const ref = await newBranch();
      await catalog.change(ref, (editor) => editor.createTable("t", [{ name: "s", type: "string" }]));
      await sql(ref, "INSERT INTO t (s) VALUES ('b'), ('B'), ('ä'), ('a'), ('_'), ('😀'), ('ﬀ')");
      expect((await sql(ref, "SELECT s FROM t ORDER BY s")).map(({ s }) => s)).toEqual(["B", "_", "a", "b", "ä", "ﬀ", "😀"]);
    });

    test("the version grows and updatedAt moves with each update, the id and createdAt stay", async () => {
      const ref = await newBranch();
      await catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
      await sql(ref, "INSERT INTO t (id) VALUES ('a')");
      const [before] = await sql(ref, "SELECT * FROM t");
      await sql(ref, `UPDATE t SET n = 1, "xata.version" = 99, "xata.createdAt" = '2000-01-01', "xata.updatedAt" = '2000-01-01'`);
      const [after] = await sql(ref, "SELECT * FROM t");
      expect(after).toMatchObject({ n: 1n, "xata.version": 1, "xata.createdAt": before!["xata.createdAt"] });
      expect(String(after!["xata.updatedAt"]) > String(before!["xata.updatedAt"])).toBe(true);
      await expect(sql(ref, "UPDATE t SET id = 'b'")).rejects.toMatchObject({ message: /id of a record cannot change/ });
    });

    test("are renamed with their records, and links to them follow", async () => {
      const ref = await newBranch();
      await catalog.change(ref, async (editor) => {
        await editor.createTable("teams", [{ name: "name", type: "string", unique: true }]);
        await editor.createTable("users", [{ name: "team", type: "link", link: { table: "teams" } }]);
      });
      await sql(ref, "INSERT INTO teams (id, name) VALUES ('t', 'T')");
      await catalog.change(ref, (editor) => editor.renameTable("teams", "groups"));
      expect((await catalog.branch(ref)).tables.get("users")!.columns.get("team")!.link).toEqual({ table: "groups" });
      await sql(ref, "INSERT INTO users (id, team) VALUES ('u', 't')");
      await expect(sql(ref, "INSERT INTO users (team) VALUES ('x')")).rejects.toMatchObject({ code: "23503" });
      await expect(sql(ref, "INSERT INTO groups (name) VALUES ('T')")).rejects.toMatchObject({ constraint: "groups.name.unique" });
      await sql(ref, "DELETE FROM groups");
      expect(await sql(ref, "SELECT team FROM users")).toEqual([{ team: null }]);
      // Its old name is free, for its constraints and indexes too.
      await catalog.change(ref, async (editor) => {
        await editor.createTable("teams", [{ name: "name", type: "string", unique: true }]);
        await editor.renameTable("users", "people");
        await editor.createTable("users", [{ name: "team", type: "link", link: { table: "teams" } }]);
      });
      expect((await names(ref)).map(([name]) => name)).toEqual(["groups", "people", "teams", "users"]);
    });

    test("whose names are equal in their first 63 characters are refused, longer ones are fine", async () => {
      const ref = await newBranch();
      await catalog.change(ref, (editor) => editor.createTable(`${LONG}1`, [{ name: `${LONG}1`, type: "email", unique: true }]));
      await sql(ref, `INSERT INTO "${LONG}" ("${LONG}") VALUES ('a@b')`);
      const clash = { code: "CONFLICT", message: /first 63 characters are the same/ };
      await expect(catalog.change(ref, (editor) => editor.createTable(`${LONG}2`))).rejects.toMatchObject(clash);
      await expect(catalog.change(ref, (editor) => editor.createTable(LONG))).rejects.toMatchObject(clash);
      await expect(catalog.change(ref, (editor) => editor.addColumn(`${LONG}1`, { name: LONG, type: "int" }))).rejects.toMatchObject(clash);
      await catalog.change(ref, async (editor) => {
        await editor.renameTable(`${LONG}1`, `${LONG}2`);
        await editor.renameColumn(`${LONG}2`, `${LONG}1`, `${LONG}2`);
      });
      expect(await names(ref)).toEqual([[`${LONG}2`, [`${LONG}2`]]]);
      await catalog.change(ref, (editor) => editor.renameTable(`${LONG}2`, "y".repeat(255)));
      await sql(ref, `INSERT INTO "${"y".repeat(63)}" ("${LONG}") VALUES ('c@d')`);
    });

    test("are not dropped while others link to them; links to themselves do not matter", async () => {
      const ref = await newBranch();
      await catalog.change(ref, async (editor) => {
        await editor.createTable("teams", [{ name: "above", type: "link", link: { table: "teams" } }]);
        await editor.createTable("users", [{ name: "team", type: "link", link: { table: "teams" } }]);
      });
      await expect(catalog.change(ref, (editor) => editor.dropTable("teams"))).rejects.toMatchObject({
        code: "CONFLICT",
        message: 'Table "teams" is linked to by column "team" of table "users". Drop that column first.',
      });
      await catalog.change(ref, async (editor) => {
        await editor.dropColumn("users", "team");
        await editor.dropTable("teams");
      });
      expect(await names(ref)).toEqual([["users", []]]);
    });

    test.each<[string, Promise<never> | unknown, string, RegExp]>([
      ["a name that is taken", ["t", []], "CONFLICT", /Table "t" exists already/],
      ["a bad name", ["a.b", []], "INVALID", /Table name: got "a.b"/],
      ["columns that are no list", ["x", {}], "INVALID", /columns has to be a list/],
      ["a column that is no object", ["x", ["c"]], "INVALID", /a column is an object/],
      [
        "two columns of one name",
        [
          "x",
          [
            { name: "c", type: "int" },
            { name: "c", type: "int" },
          ],
        ],
        "CONFLICT",
        /Column "c" exists already in table "x"/,
      ],
      [
        "a value that is also an object",
        [
          "x",
          [
            { name: "c.d", type: "int" },
            { name: "c", type: "int" },
          ],
        ],
        "CONFLICT",
        /both "c" and "c\.d"/,
      ],
      [
        "an unknown type",
        ["x", [{ name: "c", type: "varchar" }]],
        "INVALID",
        /Column "c" of table "x": type is "varchar"; expected one of string, text/,
      ],
      ["no type", ["x", [{ name: "c" }]], "INVALID", /type is undefined/],
      ["the type of Object.prototype", ["x", [{ name: "c", type: "constructor" }]], "INVALID", /type is "constructor"/],
      ["an unknown property", ["x", [{ name: "c", type: "int", nullable: true }]], "INVALID", /unknown property "nullable"/],
      ["a link without a table", ["x", [{ name: "c", type: "link" }]], "INVALID", /a link needs the table/],
      [
        "a link to nowhere",
        ["x", [{ name: "c", type: "link", link: { table: "y" } }]],
        "INVALID",
        /links to table "y", which does not exist/,
      ],
      [
        "a vector without a dimension",
        ["x", [{ name: "c", type: "vector" }]],
        "INVALID",
        /vector\.dimension is missing; expected a whole number from 2 to 10000/,
      ],
      ["a vector of one", ["x", [{ name: "c", type: "vector", vector: { dimension: 1 } }]], "INVALID", /vector\.dimension is 1/],
      [
        "a vector of too many",
        ["x", [{ name: "c", type: "vector", vector: { dimension: 10001 } }]],
        "INVALID",
        /vector\.dimension is 10001/,
      ],
      ["a unique list", ["x", [{ name: "c", type: "multiple", unique: true }]], "INVALID", /unique is not possible for type multiple/],
      [
        "a flag that is no boolean",
        ["x", [{ name: "c", type: "int", notNull: "yes" }]],
        "INVALID",
        /notNull is "yes"; expected true or false/,
      ],
      [
        "a default that is no string",
        ["x", [{ name: "c", type: "int", defaultValue: 1 }]],
        "INVALID",
        /defaultValue is 1; expected a string/,
      ],
      [
        "a default of no number",
        ["x", [{ name: "c", type: "int", defaultValue: "1.5" }]],
        "INVALID",
        /defaultValue is "1\.5"; expected a whole number/,
      ],
      [
        "a default beyond 64 bits",
        ["x", [{ name: "c", type: "int", defaultValue: "9223372036854775808" }]],
        "INVALID",
        /whole number of 64 bits/,
      ],
      ["an infinite default", ["x", [{ name: "c", type: "float", defaultValue: "1e999" }]], "INVALID", /finite number/],
      ["a default of no time", ["x", [{ name: "c", type: "datetime", defaultValue: "yesterday" }]], "INVALID", /"now" or an RFC 3339 time/],
      ["a default of no list", ["x", [{ name: "c", type: "multiple", defaultValue: "a" }]], "INVALID", /JSON array of strings/],
      ["a default of no JSON", ["x", [{ name: "c", type: "json", defaultValue: "{" }]], "INVALID", /JSON text/],
      [
        "a default of another dimension",
        ["x", [{ name: "c", type: "vector", vector: { dimension: 3 }, defaultValue: "[1]" }]],
        "INVALID",
        /3 elements, got 1/,
      ],
      ["a default of no address", ["x", [{ name: "c", type: "email", defaultValue: "me" }]], "INVALID", /an email address/],
      ["a default that PostgreSQL cannot store", ["x", [{ name: "c", type: "string", defaultValue: "\u0000" }]], "INVALID", /U\+0000/],
      ...["id", "xata", "xata.version", "xata.x", "ctid", "xmin"].map((name): [string, unknown, string, RegExp] => [
        `the reserved name ${name}`,
        ["x", [{ name, type: "int" }]],
        "INVALID",
        /is reserved/,
      ]),
      ...["", ".", "a.", ".a", "a..b", "a b", 'a"', "ä", "x".repeat(256), "a->b"].map((name): [string, unknown, string, RegExp] => [
        `the bad name ${JSON.stringify(name)}`,
        ["x", [{ name, type: "int" }]],
        "INVALID",
        /Column name in table "x"/,
      ]),
    ])("creating one with %s is refused, and changes nothing", async (_what, given, code, message) => {
      const ref = await newBranch();
      await catalog.change(ref, (editor) => editor.createTable("t"));
      const [name, columns] = given as [string, ColumnSchema[]];
      await expect(catalog.change(ref, (editor) => editor.createTable(name, columns))).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      });
      expect(await names(ref)).toEqual([["t", []]]);
      await catalog.change(ref, (editor) => editor.createTable("x"));
    });
  });

  describe("columns", () => {
    test("are added to a table with records: null, or the default", async () => {
      const ref = await newBranch();
      await catalog.change(ref, (editor) => editor.createTable("t"));
      await sql(ref, "INSERT INTO t (id) VALUES ('a'), ('b')");
      await catalog.change(ref, async (editor) => {
        await editor.addColumn("t", { name: "free", type: "string" });
        await editor.addColumn("t", { name: "full", type: "int", notNull: true, defaultValue: "7" });
        await editor.addColumn("t", { name: "one", type: "string", unique: true });
        await editor.addColumn("t", { name: "self", type: "link", link: { table: "t" } });
      });
      expect(await sql(ref, 'SELECT id, free, "full" AS filled, one, "xata.version" AS version FROM t ORDER BY id')).toEqual([
        { id: "a", free: null, filled: 7n, one: null, version: 0 },
        { id: "b", free: null, filled: 7n, one: null, version: 0 },
      ]);
      await sql(ref, "UPDATE t SET self = 'b' WHERE id = 'a'");
      await expect(sql(ref, "UPDATE t SET self = 'c'")).rejects.toMatchObject({ code: "23503" });
    });

    test.each<[ColumnSchema, RegExp]>([
      [{ name: "c", type: "string", notNull: true }, /Column "c" is notNull and table "t" has records.*Give it a defaultValue/],
      [
        { name: "c", type: "string", unique: true, defaultValue: "x" },
        /Column "c" is unique, and table "t" has records that would all get its defaultValue/,
      ],
      [{ name: "c", type: "link", link: { table: "t" }, defaultValue: "x" }, /defaultValue "x" is not a record of table "t"/],
    ])("%j cannot be added to a table with records", async (column, message) => {
      const ref = await newBranch();
      await catalog.change(ref, (editor) => editor.createTable("t"));
      await sql(ref, "INSERT INTO t (id) VALUES ('a'), ('b')");
      await expect(catalog.change(ref, (editor) => editor.addColumn("t", column))).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringMatching(message),
      });
      expect(await names(ref)).toEqual([["t", []]]);
      await sql(ref, "DELETE FROM t");
      if (column.defaultValue === undefined || column.unique) await catalog.change(ref, (editor) => editor.addColumn("t", column));
    });

    test("are renamed with their values and rules, and dropped with them", async () => {
      const ref = await newBranch();
      await catalog.change(ref, (editor) =>
        editor.createTable("t", [
          { name: "mail", type: "email", unique: true },
          { name: "v", type: "vector", vector: { dimension: 2 } },
          { name: "next", type: "link", link: { table: "t" } },
        ]),
      );
      await sql(ref, "INSERT INTO t (id, mail, v, next) VALUES ('a', 'a@b', '{1,2}', 'a')");
      const before = (await catalog.branch(ref)).tables.get("t")!.columns;
      await catalog.change(ref, async (editor) => {
        for (const [from, to] of [
          ["mail", "contact.mail"],
          ["v", "w"],
          ["next", "after"],
        ] as const)
          await editor.renameColumn("t", from, to);
        // The old names are free for others, and for their rules.
        await editor.addColumn("t", { name: "mail", type: "email", unique: true });
        await editor.addColumn("t", { name: "next", type: "link", link: { table: "t" } });
      });
      const after = (await catalog.branch(ref)).tables.get("t")!.columns;
      expect([...after.keys()]).toEqual(["contact.mail", "w", "after", "mail", "next"]);
      expect([after.get("contact.mail")!.id, after.get("mail")!.id === before.get("mail")!.id]).toEqual([before.get("mail")!.id, false]);
      expect(await sql(ref, 'SELECT "contact.mail" AS mail, w, after FROM t')).toEqual([{ mail: "a@b", w: [1, 2], after: "a" }]);
      await expect(sql(ref, `INSERT INTO t ("contact.mail") VALUES ('a@b')`)).rejects.toMatchObject({
        constraint: "t.contact.mail.unique",
      });
      await expect(sql(ref, "INSERT INTO t (w) VALUES ('{1}')")).rejects.toMatchObject({ constraint: "t.w.vector" });
      await catalog.change(ref, async (editor) => {
        for (const name of ["contact.mail", "w", "after", "mail", "next"]) await editor.dropColumn("t", name);
      });
      expect(await names(ref)).toEqual([["t", []]]);
      await expect(catalog.change(ref, (editor) => editor.dropColumn("t", "w"))).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: 'Column "w" does not exist in table "t".',
      });
      await expect(catalog.change(ref, (editor) => editor.addColumn("u", { name: "c", type: "int" }))).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: 'Table "u" does not exist.',
      });
    });

    test("setColumns adds, drops and orders, and refuses to change what is there", async () => {
      const ref = await newBranch();
      await catalog.change(ref, (editor) =>
        editor.createTable("t", [
          { name: "a", type: "int" },
          { name: "b", type: "string" },
        ]),
      );
      await sql(ref, "INSERT INTO t (a, b) VALUES (1, 'x')");
      await catalog.change(ref, (editor) =>
        editor.setColumns("t", [
          { name: "c", type: "float" },
          { name: "b", type: "string" },
        ]),
      );
      expect(await names(ref)).toEqual([["t", ["c", "b"]]]);
      expect(await sql(ref, "SELECT b, c FROM t")).toEqual([{ b: "x", c: null }]);
      await expect(catalog.change(ref, (editor) => editor.setColumns("t", [{ name: "b", type: "int" }]))).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringMatching(/Column "b" of table "t" is \{"name":"b","type":"string"\} and cannot become/),
      });
      expect(await names(ref)).toEqual([["t", ["c", "b"]]]);
    });

    test("of a table number 1,000 at most", async () => {
      const ref = await newBranch();
      const columns = (n: number): ColumnSchema[] => Array.from({ length: n }, (_, i) => ({ name: `c${i}`, type: "int" }));
      await expect(catalog.change(ref, (editor) => editor.createTable("t", columns(1001)))).rejects.toMatchObject({
        code: "INVALID",
        message: /more than 1000 columns/,
      });
      await catalog.change(ref, (editor) => editor.createTable("t", columns(1000)));
      await expect(catalog.change(ref, (editor) => editor.addColumn("t", { name: "x", type: "int" }))).rejects.toMatchObject({
        code: "INVALID",
      });
    });
  });

  test("several changes are one unit: if one is refused, none is made", async () => {
    const ref = await newBranch();
    const { version } = await catalog.branch(ref);
    await expect(
      catalog.change(ref, async (editor) => {
        await editor.createTable("a");
        await editor.createTable("b", [{ name: "l", type: "link", link: { table: "nope" } }]);
      }),
    ).rejects.toMatchObject({ code: "INVALID" });
    expect([await names(ref), (await catalog.branch(ref)).version]).toEqual([[], version]);
    await catalog.change(ref, async (editor) => {
      await editor.createTable("a");
      await editor.createTable("b", [{ name: "l", type: "link", link: { table: "a" } }]);
    });
    expect((await catalog.branch(ref)).version).toBe(version + 1);
  });

  test("changes from two catalogs at once are made one after the other, each on what the other left", async () => {
    const ref = await newBranch();
    const second = await Catalog.open(fixture.engine);
    try {
      await second.branch(ref);
      await Promise.all(
        Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? catalog : second).change(ref, (editor) => editor.createTable(`t${i}`))),
      );
      const fresh = await catalog.refresh(ref);
      expect([...fresh.tables.keys()].sort()).toEqual(Array.from({ length: 8 }, (_, i) => `t${i}`));
      const ids = [...fresh.tables.values()].map((table) => table.id);
      expect(new Set(ids).size).toBe(8);
    } finally {
      await second.close();
    }
  });

  test("a change by another catalog is heard, and the cache follows", async () => {
    const ref = await newBranch();
    const second = await Catalog.open(fixture.engine);
    try {
      expect((await second.branch(ref)).tables.size).toBe(0);
      const heard = new Promise<void>((resolve) => {
        second.onChange((changed) => {
          if (changed?.branch === ref.branch) resolve();
        });
      });
      await catalog.change(ref, (editor) => editor.createTable("t"));
      await heard;
      expect((await second.branch(ref)).tables.size).toBe(1);
    } finally {
      await second.close();
    }
  });

  test("a role that a restored dump did not bring is made again, with its grants", async () => {
    const ref = await newBranch();
    await catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
    const { schemaName, roleName } = await catalog.branch(ref);
    await fixture.engine.query(`DROP OWNED BY "${roleName}"`);
    await fixture.engine.query(`DROP ROLE "${roleName}"`);
    const opened = await Promise.all([Catalog.open(fixture.engine), Catalog.open(fixture.engine)]);
    for (const other of opened) await other.close();
    const { rows } = await fixture.engine.transaction((connection) => connection.query("INSERT INTO t (n) VALUES (1) RETURNING n"), {
      jail: { schemaName, roleName },
    });
    expect(rows).toEqual([{ n: 1n }]);
  });

  test("data that moved to another place, or back in time, makes positions in change feeds void", async () => {
    const ref = await newBranch();
    const before = await catalog.branch(ref);
    await fixture.engine.query("UPDATE lodestone.format SET origin = 'elsewhere'");
    const reopened = await Catalog.open(fixture.engine);
    const after = await reopened.branch(ref);
    await reopened.close();
    await catalog.refresh(ref);
    expect([after.incarnation === before.incarnation, after.version]).toEqual([false, before.version + 1]);
  });

  test("data of a newer release is refused, and left as it is", async () => {
    await fixture.engine.query("UPDATE lodestone.format SET version = version + 1000");
    await expect(Catalog.open(fixture.engine)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: /written by a newer Lodestone \(format 100\d/,
    });
    await fixture.engine.query("UPDATE lodestone.format SET version = version - 1000");
  });

  test("many catalogs may be opened over one database at once", async () => {
    const opened = await Promise.all(Array.from({ length: 4 }, () => Catalog.open(fixture.engine)));
    const { rows } = await fixture.engine.query("SELECT version FROM lodestone.format");
    expect(rows).toHaveLength(1);
    for (const other of opened) await other.close();
  });

  test("the role of a branch may read, insert and delete, may not write system columns, and sees no other branch", async () => {
    const ref = await newBranch();
    const other = await newBranch();
    await catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
    await catalog.change(ref, (editor) => editor.addColumn("t", { name: "late", type: "int" }));
    await catalog.change(other, (editor) => editor.createTable("secret"));
    const { schemaName, roleName } = await catalog.branch(ref);
    const otherSchema = (await catalog.branch(other)).schemaName;
    const asRole = (text: string): Promise<unknown[]> =>
      fixture.engine.transaction(async (connection) => (await connection.query(text)).rows, { jail: { schemaName, roleName } });
    await asRole("INSERT INTO t (id, n, late) VALUES ('a', 1, 2)");
    await asRole("UPDATE t SET n = n + 1, late = 3");
    expect(await asRole('SELECT n, late, "xata.version" AS version FROM t')).toEqual([{ n: 2n, late: 3n, version: 1 }]);
    for (const statement of [
      `UPDATE t SET "xata.version" = 5`,
      `UPDATE t SET id = 'b'`,
      `INSERT INTO t ("xata.createdAt") VALUES (now())`,
      `SELECT * FROM "lodestone.feed"`,
      `DELETE FROM "lodestone.feed"`,
      `SELECT * FROM "${otherSchema}".secret`,
      "SELECT * FROM lodestone.branches",
      "CREATE TABLE x ()",
      "DROP TABLE t",
      "ALTER TABLE t DISABLE TRIGGER ALL",
      "TRUNCATE t",
    ]) {
      await expect(asRole(statement), statement).rejects.toMatchObject({ code: "42501" });
    }
    await asRole("DELETE FROM t");
    expect((await sql(ref, `SELECT record_id FROM "lodestone.feed" ORDER BY seq`)).map((row) => row.record_id)).toEqual(["a", "a", "a"]);
  });
});

describeWith("postgresql", "The catalog on a server where its user has few rights", (bin) => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres(bin);
  });
  afterAll(() => server.stop());

  /** A database that belongs to a user of its own with these rights, and nothing else. */
  const openAs = async (user: string, rights: string): Promise<Engine> => {
    const url = new URL(await server.createDatabase());
    const admin = await openEngine({ databaseUrl: url.href });
    await admin.query(`CREATE ROLE ${user} LOGIN ${rights}`);
    if (rights !== "") await admin.query(`ALTER DATABASE ${url.pathname.slice(1)} OWNER TO ${user}`);
    await admin.close();
    url.username = user;
    return openEngine({ databaseUrl: url.href });
  };

  test("CREATEROLE and a database of its own are enough", async () => {
    const engine = await openAs("enough", "CREATEROLE");
    const catalog = await Catalog.open(engine);
    const ref = { database: "d", branch: "main" };
    await catalog.createBranch(ref);
    await catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
    const { schemaName, roleName } = await catalog.branch(ref);
    await engine.transaction((connection) => connection.query("INSERT INTO t (n) VALUES (1)"), { jail: { schemaName, roleName } });
    await catalog.createBranch({ database: "d", branch: "copy" }, { from: "main" });
    await catalog.dropDatabase("d");
    await catalog.close();
    await engine.close();
  });

  test("with less, the message says what is missing", async () => {
    const message = /needs CREATE on the database, and CREATEROLE/;
    const poor = await openAs("poor", "");
    await expect(Catalog.open(poor)).rejects.toMatchObject({ code: "UNAVAILABLE", message });
    await poor.close();
    const noRoles = await openAs("no_roles", "NOCREATEROLE");
    const catalog = await Catalog.open(noRoles);
    await expect(catalog.createBranch({ database: "d", branch: "main" })).rejects.toMatchObject({ code: "UNAVAILABLE", message });
    expect(await catalog.listDatabases()).toEqual([]);
    await catalog.close();
    await noRoles.close();
  });
});
