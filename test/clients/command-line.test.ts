/**
 * The retired service's command line (`@xata.io/cli`), which finds the server through a variable, as
 * docs/migrating.md says.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";

const run = promisify(execFile);

describeWith("clients", "the command line", (modules) => {
  let server: TestServer;
  const home = mkdtempSync(join(tmpdir(), "lodestone-cli-"));
  const xata = async (...args: string[]): Promise<string> => {
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      XATA_API_KEY: "none",
      XATA_API_PROVIDER: `http://localhost:${server.port},http://{workspaceId}.{region}.localhost:${server.port}`,
    };
    return (await run(process.execPath, [join(modules, ".bin/xata"), ...args], { cwd: home, env })).stdout;
  };
  beforeAll(async () => {
    server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
    await server.put("/db/library:main", {});
    await server.put("/db/library:main/tables/authors", { columns: [{ name: "name", type: "string" }] });
    await server.put("/db/library:main/tables/books", { columns: [{ name: "author", type: "link", link: { table: "authors" } }] });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(home, { recursive: true, force: true });
  });

  test("dumps the schema with the links that point to a table, imports a file, and renames a database", async () => {
    const { tables } = JSON.parse(
      await xata("schema", "dump", "--db", `http://any.local.localhost:${server.port}/db/library`, "--branch", "main"),
    );
    expect(tables).toEqual([
      { name: "authors", columns: [{ name: "name", type: "string" }], revLinks: [{ table: "books", column: "author" }] },
      { name: "books", columns: [{ name: "author", type: "link", link: { table: "authors" } }] },
    ]);
    writeFileSync(join(home, "people.csv"), "name,born\nAda,1815\nEmmy,1882\n");
    const database = `http://any.local.localhost:${server.port}/db/library`;
    await xata("import", "csv", "people.csv", "--db", database, "--branch", "main", "--table", "people", "--create", "--no-input");
    const { records } = (await server.post("/db/library:main/tables/people/query", { sort: { born: "asc" }, columns: ["name", "born"] }))
      .body;
    expect(records).toMatchObject([
      { name: "Ada", born: 1815 },
      { name: "Emmy", born: 1882 },
    ]);
    await xata("dbs", "rename", "library", "shelf", "--workspace", "any", "--force");
    expect(await xata("dbs", "list", "--workspace", "any")).toMatch(/shelf/);
  });
});
