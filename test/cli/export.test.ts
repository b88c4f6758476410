import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCommand } from "../support/server.ts";
import { useImportServer } from "./import-server.ts";

const at = useImportServer();
const { folder, importFile, records, count } = at;

describe("an export", () => {
  it("and an import of it reproduce the table elsewhere", async () => {
    const columns = [
      { name: "s", type: "text" },
      { name: "n", type: "int", notNull: true, defaultValue: "3" },
      { name: "v", type: "vector", vector: { dimension: 2 } },
      { name: "tags", type: "multiple" },
      { name: "j", type: "json" },
    ];
    await at.server.put("/db/i:main/tables/source", { columns });
    const operations = Array.from({ length: 1000 }, (_, n) => ({
      insert: {
        table: "source",
        record: { id: `r${n}`, s: `line\n${n} "ü"`, n, v: [n / 3, -n], tags: ["a", `${n}`], j: { n, deep: [1, { x: null }] } },
      },
    }));
    expect((await at.server.post("/db/i:main/transaction", { operations })).status).toBe(200);
    await at.server.post("/db/i:main/transaction", {
      operations: operations
        .slice(0, 300)
        .map(({ insert }) => ({ insert: { ...insert, record: { ...insert.record, id: `s${insert.record.id}` } } })),
    });
    const path = join(folder, "export", "source.jsonl");
    expect(await runCommand(["export", "i:main/source", "--out", path, "--url", at.server.url])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("1,300 records"),
    });
    const [header, ...lines] = readFileSync(path, "utf8").trim().split("\n");
    expect(JSON.parse(header as string)).toMatchObject({ $lodestone: "export", version: 1, table: "source", columns });
    expect(lines).toHaveLength(1300);
    expect((await importFile(path, "copy", "--create")).code).toBe(0);
    expect((await at.server.get("/db/i:main/tables/copy/schema")).body).toEqual(
      (await at.server.get("/db/i:main/tables/source/schema")).body,
    );
    const strip = (list: { xata: unknown }[]) => list.map(({ xata: _xata, ...record }) => record);
    expect(strip(await records("copy"))).toEqual(strip(await records("source")));
    expect(await count("copy")).toBe(1300);
  });

  it("writes every digit that the server has", async () => {
    await at.server.put("/db/digits:main");
    await at.server.put("/db/digits:main/tables/t", {
      columns: [
        { name: "j", type: "json" },
        { name: "n", type: "int" },
        { name: "s", type: "text" },
      ],
    });
    const text = 'two "lines"\n{[,:]}\\';
    const statement = `INSERT INTO "t" ("id", "j", "n", "s") VALUES ('a', '{"id": 12345678901234567890, "x": [1e400]}', 9223372036854775807, $1), ('b', '[]', 1, NULL)`;
    expect((await at.server.post("/db/digits:main/sql", { statement, params: [text] })).status).toBe(200);
    const { stdout } = await runCommand(["export", "digits:main/t", "--url", at.server.url]);
    const [, first, second, rest] = stdout.split("\n");
    expect(first).toContain("12345678901234567890");
    expect(first).toContain(`[1${"0".repeat(400)}]`);
    expect(first).toContain('"n":9223372036854775807');
    expect(JSON.parse(first as string)).toMatchObject({ id: "a", s: text });
    expect(JSON.parse(second as string)).toMatchObject({ id: "b", j: [], n: 1 });
    expect(rest).toBe("");
  });

  it("and import reads every digit of json columns and ids", async () => {
    const lines = [
      '{"id":12345678901234567890,"j":{"id":12345678901234567890,"x":[0.1000000000000000055,1e400]},"deep":{"j":[9007199254740993]},"f":0.30000000000000004}',
      '{"id":12345678901234567891,"j":9007199254740993,"deep":{"j":{"\\u0061":1}},"f":1}',
    ];
    const path = join(folder, "digits.jsonl");
    writeFileSync(path, lines.join("\n"));
    await at.server.put("/db/i:main/tables/digits", {
      columns: [
        { name: "j", type: "json" },
        { name: "deep.j", type: "json" },
        { name: "f", type: "float" },
      ],
    });
    expect(await at.importFile(path, "digits")).toMatchObject({ code: 0 });
    const { stdout } = await runCommand(["export", "i:main/digits", "--url", at.server.url]);
    const [, first, second] = stdout.split("\n");
    expect(first).toContain('"id":"12345678901234567890"');
    expect(first).toMatch(/"x": ?\[0\.1000000000000000055, ?10{400}\]/);
    expect(first).toMatch(/"id": ?12345678901234567890\D/);
    expect(first).toContain("[9007199254740993]");
    expect(first).toContain('"f":0.30000000000000004');
    expect(second).toContain('"id":"12345678901234567891"');
    expect(second).toContain('"j":9007199254740993');
    expect(second).toMatch(/\{"a": ?1\}/);
  });

  it("of a branch makes a file for each table; it can be piped to stdout", async () => {
    await at.server.put("/db/x:main");
    await at.server.put("/db/x:main/tables/a", { columns: [{ name: "n", type: "int" }] });
    await at.server.put("/db/x:main/tables/b");
    await at.server.put("/db/x:main/tables/a/data/1", { n: 1 });
    const out = join(folder, "whole");
    expect((await runCommand(["export", "x:main", "--out", out, "--url", at.server.url])).code).toBe(0);
    expect(readdirSync(out).toSorted()).toEqual(["a.jsonl", "b.jsonl"]);
    const piped = await runCommand(["export", "x:main/a", "--url", at.server.url]);
    expect(
      piped.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ $lodestone: "export" }, { id: "1", n: 1 }]);
    expect(await runCommand(["export", "x:main", "--url", at.server.url])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("--out"),
    });
    expect(await runCommand(["export", "x:main/none", "--url", at.server.url])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("none"),
    });
  });

  it("of a branch without tables can be imported too", async () => {
    await at.server.put("/db/bare:main");
    const out = join(folder, "bare");
    expect(await runCommand(["export", "bare:main", "--out", out, "--url", at.server.url])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("bare:main has no tables"),
    });
    expect(readdirSync(out)).toEqual([]);
    const importOut = (...flags: string[]) => runCommand(["import", out, "bare:copy", "--url", at.server.url, ...flags]);
    // Without --create an empty folder is more likely the wrong one.
    expect(await importOut()).toMatchObject({ code: 1, stderr: expect.stringContaining("has no .jsonl files") });
    expect(await importOut("--create")).toMatchObject({ code: 0, stdout: expect.stringContaining("created bare:copy") });
    expect((await at.server.get("/db/bare:copy")).status).toBe(200);
  });

  it("of a branch can be imported into a branch, including cyclic links and links to the same table", async () => {
    await at.server.put("/db/knot:main");
    for (const table of ["authors", "books", "notes"]) await at.server.put(`/db/knot:main/tables/${table}`, { columns: [] });
    const column = (table: string, definition: object) => at.server.post(`/db/knot:main/tables/${table}/columns`, definition);
    await column("authors", { name: "favourite", type: "link", link: { table: "books" } });
    await column("authors", { name: "name", type: "string", notNull: true, defaultValue: "?" });
    await column("books", { name: "author", type: "link", link: { table: "authors" } });
    await column("books", { name: "sequel", type: "link", link: { table: "books" } });
    await column("notes", { name: "about", type: "link", link: { table: "books" } });
    const made = await at.server.post("/db/knot:main/transaction", {
      operations: [
        ...["a", "b", "c"].map((id) => ({ insert: { table: "authors", record: { id, name: id.toUpperCase() } } })),
        ...["x", "y", "z"].map((id, n) => ({ insert: { table: "books", record: { id, author: "abc"[n] } } })),
        { update: { table: "authors", id: "a", fields: { favourite: "z" } } },
        { update: { table: "books", id: "x", fields: { sequel: "y" } } },
        { update: { table: "books", id: "y", fields: { sequel: "y" } } },
        ...Array.from({ length: 30 }, (_, n) => ({ insert: { table: "notes", record: { id: `n${n}`, about: "xyz"[n % 3] } } })),
      ],
    });
    expect(made.status).toBe(200);
    const out = join(folder, "knot");
    expect((await runCommand(["export", "knot:main", "--out", out, "--url", at.server.url])).code).toBe(0);

    const imported = await runCommand(["import", out, "knot:again", "--create", "--url", at.server.url]);
    expect(imported).toMatchObject({ code: 0, stdout: expect.stringContaining("30 records imported into knot:again/notes") });
    const contents = async (branch: string) => {
      const tables: unknown[] = [];
      for (const table of ["authors", "books", "notes"]) {
        const { body } = await at.server.post(`/db/knot:${branch}/tables/${table}/query`, { sort: { id: "asc" }, page: { size: 100 } });
        tables.push(body.records.map(({ xata: _xata, ...record }: { xata: unknown }) => record));
        tables.push((await at.server.get(`/db/knot:${branch}/tables/${table}/schema`)).body.columns.toSorted(byName));
      }
      return tables;
    };
    expect(await contents("again")).toEqual(await contents("main"));
    expect(readdirSync(out).filter((name) => name.startsWith("."))).toEqual([]);

    expect(await runCommand(["import", out, "knot:again/authors", "--url", at.server.url])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("A folder goes into a branch"),
    });
    expect(await runCommand(["import", out, "knot:third", "--url", at.server.url])).toMatchObject({ code: 1 });
  });
});

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);
