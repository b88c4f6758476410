import { describe, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { toBranchSchema } from "../../../src/records/catalog/document.ts";
import type { ColumnSchema } from "../../../src/records/schema.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { CatalogSuite } from "./catalog-suite.ts";

describeOnBothEngines("The catalog", (fixture) => {
  const suite = new CatalogSuite(fixture);

  describe("columns", () => {
    test("are added to a table with records: null, or the default", async () => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) => editor.createTable("t"));
      await suite.sql(ref, "INSERT INTO t (id) VALUES ('a'), ('b')");
      await suite.catalog.change(ref, async (editor) => {
        await editor.addColumn("t", { name: "free", type: "string" });
        await editor.addColumn("t", { name: "full", type: "int", notNull: true, defaultValue: "7" });
        await editor.addColumn("t", { name: "one", type: "string", unique: true });
        await editor.addColumn("t", { name: "self", type: "link", link: { table: "t" } });
      });
      expect(await suite.sql(ref, 'SELECT id, free, "full" AS filled, one, "xata.version" AS version FROM t ORDER BY id')).toEqual([
        { id: "a", free: null, filled: 7n, one: null, version: 0 },
        { id: "b", free: null, filled: 7n, one: null, version: 0 },
      ]);
      await suite.sql(ref, "UPDATE t SET self = 'b' WHERE id = 'a'");
      await expect(suite.sql(ref, "UPDATE t SET self = 'c'")).rejects.toMatchObject({ code: "23503" });
    });

    test.each<[ColumnSchema, RegExp]>([
      [{ name: "c", type: "string", notNull: true }, /Column "c" is notNull and table "t" has records.*Give it a defaultValue/],
      [
        { name: "c", type: "string", unique: true, defaultValue: "x" },
        /Column "c" is unique, and table "t" has records that would all get its defaultValue/,
      ],
      [{ name: "c", type: "link", link: { table: "t" }, defaultValue: "x" }, /defaultValue "x" is not a record of table "t"/],
    ])("%j cannot be added to a table with records", async (column, message) => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) => editor.createTable("t"));
      await suite.sql(ref, "INSERT INTO t (id) VALUES ('a'), ('b')");
      await expect(suite.catalog.change(ref, (editor) => editor.addColumn("t", column))).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringMatching(message),
      });
      expect(await suite.names(ref)).toEqual([["t", []]]);
      await suite.sql(ref, "DELETE FROM t");
      if (column.defaultValue === undefined || column.unique) await suite.catalog.change(ref, (editor) => editor.addColumn("t", column));
    });

    test("keep the language of their texts, in copies of the branch as well, until they are given another one", async () => {
      const ref = await suite.newBranch();
      const columns: ColumnSchema[] = [
        { name: "body", type: "text", language: "english" },
        { name: "tags", type: "multiple" },
      ];
      await suite.catalog.change(ref, (editor) => editor.createTable("t", columns));
      const shown = async (at = ref) => toBranchSchema(await suite.catalog.branch(at)).tables[0]!.columns;
      expect(await shown()).toEqual(columns);
      const copy = suite.newRef();
      await suite.catalog.createBranch(copy, { from: ref.branch });
      expect(await shown(copy)).toEqual(columns);
      await suite.catalog.change(ref, (editor) => editor.setLanguage("t", "tags", "german"));
      // A client that knows nothing of languages leaves them as they are.
      const plain = columns.map(({ name, type }) => ({ name, type }));
      await suite.catalog.change(ref, (editor) => editor.setColumns("t", plain));
      expect((await shown()).map(({ language }) => language)).toEqual(["english", "german"]);
      await suite.catalog.change(ref, (editor) =>
        editor.setColumns("t", [
          { name: "tags", type: "multiple", language: "none" as never },
          { name: "body", type: "text", language: "french" },
        ]),
      );
      expect(await shown()).toEqual([
        { name: "tags", type: "multiple" },
        { name: "body", type: "text", language: "french" },
      ]);
      expect((await shown(copy)).map(({ language }) => language)).toEqual(["english", undefined]);
    });

    test.each<[string, object, RegExp]>([
      [
        "unknown",
        { name: "c", type: "text", language: "klingon" },
        /Column "c".*language is "klingon"; expected one of arabic, .*, none\./,
      ],
      [
        "of numbers",
        { name: "c", type: "int", language: "english" },
        /language is for columns of type string, text, email, multiple; this one is int/,
      ],
    ])("refuse a language that is %s", async (_, column, message) => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
      const refused = { code: "INVALID", message: expect.stringMatching(message) };
      await expect(suite.catalog.change(ref, (editor) => editor.addColumn("t", column as ColumnSchema))).rejects.toMatchObject(refused);
      await expect(suite.catalog.change(ref, (editor) => editor.setLanguage("t", "n", "english"))).rejects.toMatchObject({
        message: expect.stringContaining('Column "n" of table "t": language is for columns of type'),
      });
    });

    test("are renamed with their values and rules, and dropped with them", async () => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) =>
        editor.createTable("t", [
          { name: "mail", type: "email", unique: true },
          { name: "v", type: "vector", vector: { dimension: 2 } },
          { name: "next", type: "link", link: { table: "t" } },
        ]),
      );
      await suite.sql(ref, "INSERT INTO t (id, mail, v, next) VALUES ('a', 'a@b', '{1,2}', 'a')");
      const before = (await suite.catalog.branch(ref)).tables.get("t")!.columns;
      await suite.catalog.change(ref, async (editor) => {
        for (const [from, to] of [
          ["mail", "contact.mail"],
          ["v", "w"],
          ["next", "after"],
        ] as const)
          await editor.renameColumn("t", from, to);
        // The old names are free for other columns and their rules.
        await editor.addColumn("t", { name: "mail", type: "email", unique: true });
        await editor.addColumn("t", { name: "next", type: "link", link: { table: "t" } });
      });
      const after = (await suite.catalog.branch(ref)).tables.get("t")!.columns;
      expect([...after.keys()]).toEqual(["contact.mail", "w", "after", "mail", "next"]);
      expect([after.get("contact.mail")!.id, after.get("mail")!.id === before.get("mail")!.id]).toEqual([before.get("mail")!.id, false]);
      expect(await suite.sql(ref, 'SELECT "contact.mail" AS mail, w, after FROM t')).toEqual([{ mail: "a@b", w: [1, 2], after: "a" }]);
      await expect(suite.sql(ref, `INSERT INTO t ("contact.mail") VALUES ('a@b')`)).rejects.toMatchObject({
        constraint: "t.contact.mail.unique",
      });
      await expect(suite.sql(ref, "INSERT INTO t (w) VALUES ('{1}')")).rejects.toMatchObject({ constraint: "t.w.vector" });
      await suite.catalog.change(ref, async (editor) => {
        for (const name of ["contact.mail", "w", "after", "mail", "next"]) await editor.dropColumn("t", name);
      });
      expect(await suite.names(ref)).toEqual([["t", []]]);
      await expect(suite.catalog.change(ref, (editor) => editor.dropColumn("t", "w"))).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: 'Column "w" does not exist in table "t".',
      });
      await expect(suite.catalog.change(ref, (editor) => editor.addColumn("u", { name: "c", type: "int" }))).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: 'Table "u" does not exist.',
      });
    });

    test("setColumns adds, drops and orders, and refuses to change existing columns", async () => {
      const ref = await suite.newBranch();
      await suite.catalog.change(ref, (editor) =>
        editor.createTable("t", [
          { name: "a", type: "int" },
          { name: "b", type: "string" },
        ]),
      );
      await suite.sql(ref, "INSERT INTO t (a, b) VALUES (1, 'x')");
      await suite.catalog.change(ref, (editor) =>
        editor.setColumns("t", [
          { name: "c", type: "float" },
          { name: "b", type: "string" },
        ]),
      );
      expect(await suite.names(ref)).toEqual([["t", ["c", "b"]]]);
      expect(await suite.sql(ref, "SELECT b, c FROM t")).toEqual([{ b: "x", c: null }]);
      await expect(suite.catalog.change(ref, (editor) => editor.setColumns("t", [{ name: "b", type: "int" }]))).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringMatching(/Column "b" of table "t" is \{"name":"b","type":"string"\} and cannot become/),
      });
      expect(await suite.names(ref)).toEqual([["t", ["c", "b"]]]);
    });

    test("of a table are limited to 1,000", async () => {
      const ref = await suite.newBranch();
      const columns = (n: number): ColumnSchema[] => Array.from({ length: n }, (_, i) => ({ name: `c${i}`, type: "int" }));
      await expect(suite.catalog.change(ref, (editor) => editor.createTable("t", columns(1001)))).rejects.toMatchObject({
        code: "INVALID",
        message: /more than 1000 columns/,
      });
      await suite.catalog.change(ref, (editor) => editor.createTable("t", columns(1000)));
      await expect(suite.catalog.change(ref, (editor) => editor.addColumn("t", { name: "x", type: "int" }))).rejects.toMatchObject({
        code: "INVALID",
      });
    });
  });

  test("several changes are one unit: if one is refused, none is made", async () => {
    const ref = await suite.newBranch();
    const { version } = await suite.catalog.branch(ref);
    await expect(
      suite.catalog.change(ref, async (editor) => {
        await editor.createTable("a");
        await editor.createTable("b", [{ name: "l", type: "link", link: { table: "nope" } }]);
      }),
    ).rejects.toMatchObject({ code: "INVALID" });
    expect([await suite.names(ref), (await suite.catalog.branch(ref)).version]).toEqual([[], version]);
    await suite.catalog.change(ref, async (editor) => {
      await editor.createTable("a");
      await editor.createTable("b", [{ name: "l", type: "link", link: { table: "a" } }]);
    });
    expect((await suite.catalog.branch(ref)).version).toBe(version + 1);
  });

  test("concurrent changes from two catalogs are made one after the other, each on the result of the other", async () => {
    const ref = await suite.newBranch();
    const second = await Catalog.open(fixture.engine);
    try {
      await second.branch(ref);
      await Promise.all(
        Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? suite.catalog : second).change(ref, (editor) => editor.createTable(`t${i}`))),
      );
      const tables = async () => [...(await suite.catalog.branch(ref)).tables.keys()].sort();
      await expect.poll(tables).toEqual(Array.from({ length: 8 }, (_, i) => `t${i}`));
      const fresh = await suite.catalog.branch(ref);
      const ids = [...fresh.tables.values()].map((table) => table.id);
      expect(new Set(ids).size).toBe(8);
    } finally {
      await second.close();
    }
  });

  test("a change by another catalog is noticed, and the cache follows", async () => {
    const ref = await suite.newBranch();
    const second = await Catalog.open(fixture.engine);
    try {
      expect((await second.branch(ref)).tables.size).toBe(0);
      const heard = new Promise<void>((resolve) => {
        second.onChange((changed) => {
          if (changed?.branch === ref.branch) resolve();
        });
      });
      await suite.catalog.change(ref, (editor) => editor.createTable("t"));
      await heard;
      expect((await second.branch(ref)).tables.size).toBe(1);
    } finally {
      await second.close();
    }
  });

  test("a role that a restored dump did not include is made again, with its grants", async () => {
    const ref = await suite.newBranch();
    await suite.catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
    const { schemaName, roleName } = await suite.catalog.branch(ref);
    await fixture.engine.query(`DROP OWNED BY "${roleName}"`);
    await fixture.engine.query(`DROP ROLE "${roleName}"`);
    const opened = await Promise.all([Catalog.open(fixture.engine), Catalog.open(fixture.engine)]);
    for (const other of opened) await other.close();
    const { rows } = await fixture.engine.transaction((connection) => connection.query("INSERT INTO t (n) VALUES (1) RETURNING n"), {
      jail: { schemaName, roleName },
    });
    expect(rows).toEqual([{ n: 1n }]);
  });

  test("data that moved to another place, or back in time, invalidates positions in change feeds", async () => {
    const ref = await suite.newBranch();
    const before = await suite.catalog.branch(ref);
    await fixture.engine.query("UPDATE lodestone.format SET origin = 'elsewhere'");
    const reopened = await Catalog.open(fixture.engine);
    const after = await reopened.branch(ref);
    await reopened.close();
    expect([after.incarnation === before.incarnation, after.version]).toEqual([false, before.version + 1]);
  });

  test("data of a newer release is refused and left as it is", async () => {
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
    const ref = await suite.newBranch();
    const other = await suite.newBranch();
    await suite.catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
    await suite.catalog.change(ref, (editor) => editor.addColumn("t", { name: "late", type: "int" }));
    await suite.catalog.change(other, (editor) => editor.createTable("secret"));
    const { schemaName, roleName } = await suite.catalog.branch(ref);
    const otherSchema = (await suite.catalog.branch(other)).schemaName;
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
    expect((await suite.sql(ref, `SELECT record_id FROM "lodestone.feed" ORDER BY seq`)).map((row) => row.record_id)).toEqual([
      "a",
      "a",
      "a",
    ]);
  });
});
