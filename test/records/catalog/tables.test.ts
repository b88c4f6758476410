import { describe, expect, test } from "vitest";
import { toBranchSchema } from "../../../src/records/catalog/document.ts";
import { constraintName } from "../../../src/records/identifiers.ts";
import type { ColumnSchema } from "../../../src/records/schema.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { CatalogSuite, LONG } from "./catalog-suite.ts";

describeOnBothEngines("The catalog", (fixture) => {
  const suite = new CatalogSuite(fixture);

  describe("tables", () => {
    test("are created with columns of every type, whose rules hold whoever writes", async () => {
      const ref = await suite.newBranch();
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
      await suite.catalog.change(ref, (editor) => editor.createTable("all", columns));
      expect(toBranchSchema(await suite.catalog.branch(ref))).toEqual({ tables: [{ name: "all", columns }] });
      const [row] = await suite.sql(
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
        await expect(suite.sql(ref, `INSERT INTO "all" ("${column}") VALUES (${value})`), `${column} = ${value}`).rejects.toMatchObject({
          code: expect.stringMatching(/^23/),
        });
      }
      await suite.sql(ref, `INSERT INTO "all" (m) VALUES ('a@b')`);
      await expect(suite.sql(ref, `INSERT INTO "all" (m) VALUES ('a@b')`)).rejects.toMatchObject({
        code: "23505",
        constraint: constraintName("all", "m", "unique"),
      });
    });

    test("ids made by SQL are ordered by time and do not repeat", async () => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) => editor.createTable("t"));
      const ids: string[] = [];
      for (let i = 0; i < 5; i++) {
        ids.push((await suite.sql<{ id: string }>(ref, "INSERT INTO t (id) VALUES (DEFAULT) RETURNING id"))[0]!.id);
        await new Promise((resolve) => setTimeout(resolve, 3));
      }
      expect(ids).toEqual([...ids].sort());
      const [{ n }] = (await suite.sql<{ n: number }>(
        ref,
        "SELECT count(DISTINCT lodestone.record_id())::int4 AS n FROM generate_series(1, 5000)",
      )) as [{ n: number }];
      expect(n).toBe(5000);
    });

    test("text is ordered by code point", async () => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) => editor.createTable("t", [{ name: "s", type: "string" }]));
      await suite.sql(ref, "INSERT INTO t (s) VALUES ('b'), ('B'), ('ä'), ('a'), ('_'), ('😀'), ('ﬀ')");
      expect((await suite.sql(ref, "SELECT s FROM t ORDER BY s")).map(({ s }) => s)).toEqual(["B", "_", "a", "b", "ä", "ﬀ", "😀"]);
    });

    test("the version grows and updatedAt moves with each update, the id and createdAt stay", async () => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
      await suite.sql(ref, "INSERT INTO t (id) VALUES ('a')");
      const [before] = await suite.sql(ref, "SELECT * FROM t");
      await suite.sql(ref, `UPDATE t SET n = 1, "xata.version" = 99, "xata.createdAt" = '2000-01-01', "xata.updatedAt" = '2000-01-01'`);
      const [after] = await suite.sql(ref, "SELECT * FROM t");
      expect(after).toMatchObject({ n: 1n, "xata.version": 1, "xata.createdAt": before!["xata.createdAt"] });
      expect(String(after!["xata.updatedAt"]) > String(before!["xata.updatedAt"])).toBe(true);
      await expect(suite.sql(ref, "UPDATE t SET id = 'b'")).rejects.toMatchObject({ message: /id of a record cannot change/ });
    });

    test("are renamed with their records, and links to them follow", async () => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, async (editor) => {
        await editor.createTable("teams", [{ name: "name", type: "string", unique: true }]);
        await editor.createTable("users", [{ name: "team", type: "link", link: { table: "teams" } }]);
      });
      await suite.sql(ref, "INSERT INTO teams (id, name) VALUES ('t', 'T')");
      await suite.catalog.change(ref, (editor) => editor.renameTable("teams", "groups"));
      expect((await suite.catalog.branch(ref)).tables.get("users")!.columns.get("team")!.link).toEqual({ table: "groups" });
      await suite.sql(ref, "INSERT INTO users (id, team) VALUES ('u', 't')");
      await expect(suite.sql(ref, "INSERT INTO users (team) VALUES ('x')")).rejects.toMatchObject({ code: "23503" });
      await expect(suite.sql(ref, "INSERT INTO groups (name) VALUES ('T')")).rejects.toMatchObject({ constraint: "groups.name.unique" });
      await suite.sql(ref, "DELETE FROM groups");
      expect(await suite.sql(ref, "SELECT team FROM users")).toEqual([{ team: null }]);
      // The old name is free, also for constraints and indexes.
      await suite.catalog.change(ref, async (editor) => {
        await editor.createTable("teams", [{ name: "name", type: "string", unique: true }]);
        await editor.renameTable("users", "people");
        await editor.createTable("users", [{ name: "team", type: "link", link: { table: "teams" } }]);
      });
      expect((await suite.names(ref)).map(([name]) => name)).toEqual(["groups", "people", "teams", "users"]);
    });

    test("whose names are equal in their first 63 characters are refused; longer names are allowed", async () => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) => editor.createTable(`${LONG}1`, [{ name: `${LONG}1`, type: "email", unique: true }]));
      await suite.sql(ref, `INSERT INTO "${LONG}" ("${LONG}") VALUES ('a@b')`);
      const clash = { code: "CONFLICT", message: /first 63 characters are the same/ };
      await expect(suite.catalog.change(ref, (editor) => editor.createTable(`${LONG}2`))).rejects.toMatchObject(clash);
      await expect(suite.catalog.change(ref, (editor) => editor.createTable(LONG))).rejects.toMatchObject(clash);
      await expect(suite.catalog.change(ref, (editor) => editor.addColumn(`${LONG}1`, { name: LONG, type: "int" }))).rejects.toMatchObject(
        clash,
      );
      await suite.catalog.change(ref, async (editor) => {
        await editor.renameTable(`${LONG}1`, `${LONG}2`);
        await editor.renameColumn(`${LONG}2`, `${LONG}1`, `${LONG}2`);
      });
      expect(await suite.names(ref)).toEqual([[`${LONG}2`, [`${LONG}2`]]]);
      await suite.catalog.change(ref, (editor) => editor.renameTable(`${LONG}2`, "y".repeat(255)));
      await suite.sql(ref, `INSERT INTO "${"y".repeat(63)}" ("${LONG}") VALUES ('c@d')`);
    });

    test("are not dropped while others link to them; links to themselves do not count", async () => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, async (editor) => {
        await editor.createTable("teams", [{ name: "above", type: "link", link: { table: "teams" } }]);
        await editor.createTable("users", [{ name: "team", type: "link", link: { table: "teams" } }]);
      });
      await expect(suite.catalog.change(ref, (editor) => editor.dropTable("teams"))).rejects.toMatchObject({
        code: "CONFLICT",
        message: 'Table "teams" is linked to by column "team" of table "users". Drop that column first.',
      });
      await suite.catalog.change(ref, async (editor) => {
        await editor.dropColumn("users", "team");
        await editor.dropTable("teams");
      });
      expect(await suite.names(ref)).toEqual([["users", []]]);
    });

    test.each<[string, Promise<never> | unknown, string, RegExp]>([
      ["a name that is taken", ["t", []], "CONFLICT", /Table "t" exists already/],
      ["a bad name", ["a.b", []], "INVALID", /Table name: got "a.b"/],
      ["columns that are not a list", ["x", {}], "INVALID", /columns has to be a list/],
      ["a column that is not an object", ["x", ["c"]], "INVALID", /a column is an object/],
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
      ["no type", ["x", [{ name: "c" }]], "INVALID", /type is nothing/],
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
        /vector\.dimension is nothing; expected a whole number from 2 to 10000/,
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
        "a flag that is not a boolean",
        ["x", [{ name: "c", type: "int", notNull: "yes" }]],
        "INVALID",
        /notNull is "yes"; expected true or false/,
      ],
      [
        "a default that is not a string",
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
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) => editor.createTable("t"));
      const [name, columns] = given as [string, ColumnSchema[]];
      await expect(suite.catalog.change(ref, (editor) => editor.createTable(name, columns))).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      });
      expect(await suite.names(ref)).toEqual([["t", []]]);
      await suite.catalog.change(ref, (editor) => editor.createTable("x"));
    });
  });
});
