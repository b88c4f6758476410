/**
 * A full disk. The kernel refuses writes beyond a file size (RLIMIT_FSIZE, lowered on the running server by
 * `prlimit`, which needs no privileges). So PostgreSQL gets real write errors: in its log, where a commit
 * cannot be made durable, and in tables that cannot grow.
 */
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";

const TABLE = "/db/full:main/tables/things";
const members = ["a", "b", "c", "d"];

/** From now on every write beyond this size of a file fails; "unlimited" makes room again. */
function limitFiles(server: TestServer, bytes: number | "unlimited"): void {
  execFileSync("prlimit", ["--pid", String(server.pid), `--fsize=${bytes}:`]);
}

const writeAll = (server: TestServer, value: number, padding: string) =>
  server.post("/db/full:main/transaction", {
    operations: members.map((id) => ({ insert: { table: "things", record: { id, value, padding, vector: [value, 0] } } })),
  });

async function valuesIn(server: TestServer): Promise<number[]> {
  const { status, body } = await server.post("/db/full:main/sql", {
    statement: 'SELECT "value" FROM "things" WHERE "id" = ANY ($1)',
    params: [members],
  });
  expect(status).toBe(200);
  return body.records.map((record: { value: number }) => Number(record.value));
}

async function valuesFound(server: TestServer): Promise<number[]> {
  const request = { column: "vector", queryVector: [0, 0], similarityFunction: "l2", size: 100, consistency: "strong" };
  const { status, body } = await server.post(`${TABLE}/vectorSearch`, request);
  expect(status).toBe(200);
  return body.results.map(({ score }: { score: number }) => Math.round(Math.sqrt(1 / score - 1)));
}

describe("A server whose disk is full", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ env: { LODESTONE_LOG_LEVEL: "info" } });
    await server.put("/db/full:main");
    const columns = [
      { name: "value", type: "int" },
      { name: "padding", type: "text" },
      { name: "vector", type: "vector", vector: { dimension: 2 } },
    ];
    expect((await server.put(TABLE, { columns })).status).toBe(201);
    expect((await writeAll(server, 1, "")).status).toBe(200);
  });
  afterAll(() => server.stop());

  it.each([
    ["no file can be written at all", 1],
    ["files cannot grow beyond 100 kB", 100_000],
  ])("applies transactions whole or not at all, and works again when there is room (%s)", async (_name, limitBytes) => {
    const before = (await valuesIn(server))[0]!;
    let acknowledged = before;
    let tried = before;
    let refused = 0;
    limitFiles(server, limitBytes);
    try {
      for (let attempt = 0; attempt < 3; attempt++) {
        const { status, body } = await writeAll(server, ++tried, "x".repeat(20_000));
        if (status === 200) acknowledged = tried;
        else {
          refused++;
          expect(status).toBeGreaterThanOrEqual(500);
          expect(typeof body.message).toBe("string");
          expect(body.message).not.toMatch(/\n|\/tmp|\.js/);
        }
      }
    } finally {
      limitFiles(server, "unlimited");
    }
    expect(refused).toBeGreaterThan(0);
    // A database that could not be opened is tried again after a pause; until then requests are refused
    // with 503.
    await expect.poll(async () => (await server.get(`${TABLE}/data/a`)).status).toBe(200);
    // If PostgreSQL stopped, the log says of what, and that it is back.
    const deaths = server.log.split("\n").filter((line) => line.includes("The embedded database fails: "));
    if (limitBytes === 1) expect(deaths.length).toBeGreaterThan(0);
    for (const line of deaths) expect(line).toMatch(/could not .*|did not start/);
    if (deaths.length > 0) expect(server.log).toContain('"msg":"The embedded database works again."');

    const values = await valuesIn(server);
    expect(values).toHaveLength(members.length);
    expect(new Set(values).size).toBe(1);
    // What was refused may have been applied, but completely. What was acknowledged is there, or a later
    // value.
    expect(values[0]).toBeGreaterThanOrEqual(acknowledged);
    expect(values[0]).toBeLessThanOrEqual(tried);
    expect(await valuesFound(server)).toEqual(values);

    expect((await writeAll(server, 100 + tried, "")).status).toBe(200);
    expect(await valuesIn(server)).toEqual(members.map(() => 100 + tried));
    await server.end("SIGKILL");
    await server.start();
    expect(await valuesIn(server)).toEqual(members.map(() => 100 + tried));
    expect(await valuesFound(server)).toEqual(members.map(() => 100 + tried));
  });
});
