/**
 * A client that closes its connection frees what it held: its place, its turn in the queue, and the statement
 * that ran for it.
 */
import { connect, type Socket } from "node:net";
import { expect, it } from "vitest";
import { ENDLESS, untilEndlessRuns } from "../support/endless-statement.ts";
import { startPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";

const STATEMENT = { statement: ENDLESS };
const TABLE = "/db/gone:main/tables/t";

async function prepare(server: TestServer): Promise<void> {
  await server.put("/db/gone:main");
  await server.put(TABLE, { columns: [{ name: "n", type: "int" }] });
  expect((await server.put(`${TABLE}/data/a`, { n: 1 })).status).toBe(201);
}

function send(server: TestServer, path: string, body: object): Socket {
  const socket = connect(server.port, "127.0.0.1");
  const text = JSON.stringify(body);
  socket.on("error", () => {});
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
  return socket;
}

async function untilUnderWay(server: TestServer, count: number): Promise<void> {
  for (;;) {
    const { text } = await server.get("/metrics");
    if (text.includes(`lodestone_http_requests_in_progress ${count}\n`)) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

it("gives up its turn in the embedded database's queue, and its running statement", async () => {
  const server = await startServer();
  try {
    await prepare(server);
    const running = send(server, "/db/gone:main/sql", STATEMENT);
    await untilEndlessRuns(server.dataDir);
    await untilUnderWay(server, 1);
    const waiting = [
      send(server, `${TABLE}/data`, { n: 2 }),
      send(server, `${TABLE}/bulk`, { records: [{ n: 3 }] }),
      send(server, "/db/gone:main/transaction", { operations: [{ insert: { table: "t", record: { n: 4 } } }] }),
      send(server, `${TABLE}/query`, {}),
      send(server, "/db/gone:main/sql", { statement: 'INSERT INTO "t" ("id", "n") VALUES ($1, 5)', params: ["b"] }),
    ];
    await untilUnderWay(server, 6);
    for (const socket of waiting) socket.destroy();
    // They leave while the first statement still runs.
    await untilUnderWay(server, 1);
    running.destroy();
    await untilUnderWay(server, 0);
    expect((await server.post(`${TABLE}/query`, { columns: ["n"] })).body.records).toMatchObject([{ id: "a", n: 1 }]);
    expect((await server.get("/metrics")).text).not.toMatch(/^lodestone_http_requests_total\{.*status="5\d\d"/m);
    expect(server.log).toContain('"status":499');
  } finally {
    await server.end("SIGKILL");
    await server.stop();
  }
});

describeWith("postgresql", "with a PostgreSQL server", (bin) => {
  it("its running statement is cancelled", async () => {
    const postgres = await startPostgres(bin);
    const server = await startServer({ databaseUrl: await postgres.createDatabase() });
    try {
      await prepare(server);
      // As many as the branch has connections for SQL: while they run, no other SQL does.
      const running = [send(server, "/db/gone:main/sql", STATEMENT), send(server, "/db/gone:main/sql", STATEMENT)];
      await untilUnderWay(server, 2);
      for (const socket of running) socket.destroy();
      await untilUnderWay(server, 0);
      const { status, body } = await server.post("/db/gone:main/sql", { statement: 'SELECT "n" FROM "t"' });
      expect([status, body.records]).toEqual([200, [{ n: 1 }]]);
      expect((await server.get("/metrics")).text).not.toMatch(/^lodestone_http_requests_total\{.*status="5\d\d"/m);
    } finally {
      await server.end("SIGTERM");
      await postgres.stop();
    }
  });
});
