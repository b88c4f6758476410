import { describe, expect, test } from "vitest";
import { toBranchSchema } from "../../../src/records/catalog/document.ts";
import { schemaNameOf } from "../../../src/records/identifiers.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { CatalogSuite } from "./catalog-suite.ts";

describeOnBothEngines("The catalog", (fixture) => {
  const suite = new CatalogSuite(fixture);

  describe("databases and branches", () => {
    test("the first branch creates its database, and both are listed by name", async () => {
      await suite.catalog.createBranch({ database: "zoo", branch: "main" });
      await suite.catalog.createBranch({ database: "zoo", branch: "Dev~1" });
      expect((await suite.catalog.listDatabases()).map(({ name }) => name)).toContain("zoo");
      expect(await suite.catalog.listBranches("zoo")).toEqual([
        { name: "Dev~1", createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) },
        { name: "main", createdAt: expect.any(String) },
      ]);
    });

    test("creating a branch that exists returns it as it is", async () => {
      const ref = suite.newRef();
      const first = await suite.catalog.createBranch(ref);
      const second = await suite.catalog.createBranch(ref);
      expect([first.created, second.created]).toEqual([true, false]);
      expect(second.branch).toEqual(first.branch);
    });

    test("concurrent creations of a branch of one name make one branch", async () => {
      const ref = suite.newRef();
      const results = await Promise.all(Array.from({ length: 5 }, () => suite.catalog.createBranch(ref)));
      expect(results.filter(({ created }) => created)).toHaveLength(1);
    });

    test("the error names what is missing: the database, or the branch in it", async () => {
      await suite.catalog.createBranch({ database: "here", branch: "main" });
      await expect(suite.catalog.branch({ database: "nowhere", branch: "main" })).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: 'Database "nowhere" does not exist.',
      });
      await expect(suite.catalog.branch({ database: "here", branch: "x" })).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: 'Branch "x" does not exist in database "here".',
      });
      await expect(suite.catalog.listBranches("nowhere")).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(suite.catalog.dropBranch({ database: "here", branch: "x" })).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(suite.catalog.dropDatabase("nowhere")).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(suite.catalog.change({ database: "here", branch: "x" }, async () => {})).rejects.toMatchObject({ code: "NOT_FOUND" });
    });

    test.each(["", "a b", "a:b", "ä", 'a"b', "a.b", "a/b", "x".repeat(256), "__proto__ ", "a\u0000"])(
      "the name %j is refused",
      async (name) => {
        await expect(suite.catalog.createBranch({ database: name, branch: "main" })).rejects.toMatchObject({
          code: "INVALID",
          message: /Database name/,
        });
        await expect(suite.catalog.createBranch({ database: "ok", branch: name })).rejects.toMatchObject({
          code: "INVALID",
          message: /Branch name/,
        });
      },
    );

    test("names of 255 characters, with PostgreSQL's own prefix, or like JavaScript's internals are valid", async () => {
      const refs = [
        { database: "d".repeat(255), branch: "b".repeat(255) },
        { database: "d".repeat(255), branch: `${"b".repeat(254)}c` },
        { database: "pg_catalog", branch: "main" },
        { database: "__proto__", branch: "constructor" },
      ];
      expect(new Set(refs.map(schemaNameOf)).size).toBe(4);
      for (const ref of refs) {
        expect(schemaNameOf(ref).length).toBeLessThanOrEqual(63);
        expect((await suite.catalog.createBranch(ref)).created).toBe(true);
        await suite.catalog.change(ref, (editor) => editor.createTable("__proto__", [{ name: "__proto__", type: "string" }]));
        expect(await suite.names(ref)).toEqual([["__proto__", ["__proto__"]]]);
        await suite.sql(ref, `INSERT INTO "__proto__" ("__proto__") VALUES ('x')`);
      }
      await suite.catalog.dropDatabase("d".repeat(255));
    });

    test("dropping a branch drops its tables and its role, and keeps the database", async () => {
      const ref = { database: "dropping", branch: "main" };
      const { branch } = await suite.catalog.createBranch(ref);
      await suite.catalog.change(ref, (editor) => editor.createTable("t"));
      await suite.catalog.dropBranch(ref);
      await expect(suite.catalog.branch(ref)).rejects.toMatchObject({ code: "NOT_FOUND" });
      expect(await suite.catalog.listBranches("dropping")).toEqual([]);
      const left = await fixture.engine.query(
        "SELECT nspname FROM pg_namespace WHERE nspname = $1 UNION SELECT rolname FROM pg_roles WHERE rolname = $2",
        [branch.schemaName, branch.roleName],
      );
      expect(left.rows).toEqual([]);
    });

    test("dropping a database drops its branches", async () => {
      for (const branch of ["a", "b"]) await suite.catalog.createBranch({ database: "both", branch });
      await suite.catalog.dropDatabase("both");
      await expect(suite.catalog.branch({ database: "both", branch: "a" })).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: /Database "both"/,
      });
      expect((await suite.catalog.listDatabases()).map(({ name }) => name)).not.toContain("both");
    });
  });

  describe("copies of a branch", () => {
    test("have the schema, the records, their versions and times, and are independent", async () => {
      const from = await suite.newBranch();
      await suite.catalog.change(from, async (editor) => {
        await editor.createTable("teams", [{ name: "name", type: "string", unique: true, notNull: true }]);
        await editor.createTable("users", [
          { name: "mail", type: "email", unique: true },
          { name: "address.city", type: "string", defaultValue: "Köln" },
          { name: "team", type: "link", link: { table: "teams" } },
          { name: "boss", type: "link", link: { table: "users" } },
          { name: "v", type: "vector", vector: { dimension: 3 } },
        ]);
        // Links that form a cycle.
        await editor.addColumn("teams", { name: "lead", type: "link", link: { table: "users" } });
      });
      await suite.sql(from, "INSERT INTO teams (id, name) VALUES ('t', 'T')");
      await suite.sql(from, "INSERT INTO users (id, mail, team, boss, v) VALUES ('u', 'a@b', 't', 'u', '{1,2,3}')");
      await suite.sql(from, "UPDATE teams SET lead = 'u'");
      const ref = { database: from.database, branch: `${from.branch}-copy` };
      const { branch } = await suite.catalog.createBranch(ref, { from: from.branch });

      const source = await suite.catalog.branch(from);
      expect(toBranchSchema(branch)).toEqual(toBranchSchema(source));
      expect([branch.incarnation === source.incarnation, branch.roleName === source.roleName]).toEqual([false, false]);
      for (const table of ["teams", "users"])
        expect(await suite.sql(ref, `SELECT * FROM ${table}`)).toEqual(await suite.sql(from, `SELECT * FROM ${table}`));

      await suite.sql(ref, "DELETE FROM users");
      expect(await suite.sql(ref, 'SELECT id, lead, "xata.version" AS version FROM teams')).toEqual([{ id: "t", lead: null, version: 2 }]);
      expect(await suite.sql(from, "SELECT lead FROM teams")).toEqual([{ lead: "u" }]);
      for (const statement of [
        "INSERT INTO teams (name) VALUES ('T')",
        "INSERT INTO teams (name) VALUES (NULL)",
        "INSERT INTO users (mail) VALUES ('no address')",
        "INSERT INTO users (team) VALUES ('nobody')",
        "INSERT INTO users (v) VALUES ('{1,2}')",
      ]) {
        await expect(suite.sql(ref, statement)).rejects.toMatchObject({ code: expect.stringMatching(/^23/) });
      }
      expect(await suite.sql(ref, `INSERT INTO users (mail) VALUES ('c@d') RETURNING "address.city" AS city`)).toEqual([{ city: "Köln" }]);
      expect((await suite.sql(ref, `SELECT table_name FROM "lodestone.feed"`)).map((row) => row.table_name)).toEqual([
        "users",
        "teams",
        "users",
      ]);
      await suite.catalog.dropBranch(from);
      expect(await suite.sql(ref, "SELECT name FROM teams")).toEqual([{ name: "T" }]);
    });

    test("of a branch that does not exist, or onto one that does, are refused and leave nothing", async () => {
      const ref = await suite.newBranch();
      const missing = { database: ref.database, branch: "fresh" };
      await expect(suite.catalog.createBranch(missing, { from: "nope" })).rejects.toMatchObject({
        code: "INVALID",
        message: /Branch "nope"/,
      });
      await expect(suite.catalog.branch(missing)).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(suite.catalog.createBranch({ database: "no-database", branch: "b" }, { from: "main" })).rejects.toMatchObject({
        code: "NOT_FOUND",
      });
      expect((await suite.catalog.listDatabases()).map(({ name }) => name)).not.toContain("no-database");
      const other = await suite.newBranch();
      await expect(suite.catalog.createBranch(ref, { from: other.branch })).rejects.toMatchObject({
        code: "CONFLICT",
        message: /exists already/,
      });
    });
  });
});
