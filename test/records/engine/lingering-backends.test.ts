/**
 * A back end of PostgreSQL that does not end when it is told to (here because it is stopped; in earnest because it
 * computes without looking whether it was interrupted) keeps its caller's place until it is gone.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { MemoryBudget } from "../../../src/budget/memory-budget.ts";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { engineForCaller } from "../../../src/records/engine/engine-for-caller.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import type { BranchInfo } from "../../../src/records/schema.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";

/** Of four connections one caller gets three. */
const SQL_POOL = 4;
const PLACES_OF_ONE = 3;

describeWith("postgresql", "a back end that does not end", (bin) => {
  const memory = new MemoryBudget({ answerBytes: 1 << 20, totalBytes: 1 << 24 });
  let server: TestPostgres;
  let engine: Engine;
  let catalog: Catalog;
  let branch: BranchInfo;
  beforeAll(async () => {
    server = await startPostgres(bin);
    engine = await openEngine({ databaseUrl: await server.createDatabase(), sqlPoolSize: SQL_POOL });
    catalog = await Catalog.open(engine);
    await catalog.createBranch({ database: "test", branch: "main" });
    branch = await catalog.branch({ database: "test", branch: "main" });
  });
  afterAll(async () => {
    await catalog.close();
    await engine.close();
    await server.stop();
  });

  const stopped: number[] = [];
  const wakeAll = (): void => {
    for (const pid of stopped.splice(0)) process.kill(pid, "SIGCONT");
  };
  afterEach(wakeAll); // or the server could not be stopped

  it("counts against its caller until it has ended", async () => {
    const of = (caller: string): Engine => engineForCaller(engine, new AbortController().signal, memory.open(caller));
    const jail = { roleName: branch.roleName, schemaName: branch.schemaName };
    for (let i = 0; i < PLACES_OF_ONE; i++) {
      const work = of("a").transaction(
        async (connection) => {
          const { rows } = await connection.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
          stopped.push(rows[0]!.pid);
          process.kill(rows[0]!.pid, "SIGSTOP");
          await connection.query("SELECT 1");
        },
        { jail, timeoutMs: 100 },
      );
      await expect(work).rejects.toMatchObject({ code: "TIMEOUT" });
    }
    const served: string[] = [];
    const another = of("a").transaction((connection) => connection.query("SELECT 1").then(() => served.push("a")), { jail });
    // One of another caller is served at once, although it came later.
    await of("b").transaction((connection) => connection.query("SELECT 1").then(() => served.push("b")), { jail });
    expect(served).toEqual(["b"]);
    wakeAll();
    await another;
    expect(served).toEqual(["b", "a"]);
  });
});
