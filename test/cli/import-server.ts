/** A server with an empty branch `i:main`, a folder for files, and `lodestone import` into that branch. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { runHere } from "../support/run-here.ts";
import { type CommandResult, startServer, type TestServer } from "../support/server.ts";

/** For the test file that calls it. */
export function useImportServer() {
  let server: TestServer | undefined;
  const folder = mkdtempSync(join(tmpdir(), "lodestone-import-"));
  beforeAll(async () => {
    server = await startServer();
    await server.put("/db/i:main");
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    folder,
    get server(): TestServer {
      return server!;
    },
    importFile: (path: string, table: string, ...flags: string[]): Promise<CommandResult> =>
      runHere(["import", path, `i:main/${table}`, "--url", server!.url, ...flags]),
    records: async (table: string) =>
      (await server!.post(`/db/i:main/tables/${table}/query`, { sort: { id: "asc" }, page: { size: 1000 } })).body.records,
    count: async (table: string): Promise<number> =>
      (await server!.post("/db/i:main/sql", { statement: `SELECT count(*)::int AS n FROM "${table}"` })).body.records[0].n,
  };
}
