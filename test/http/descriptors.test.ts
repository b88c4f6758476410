import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { descriptorLimits, mostOpenFiles } from "../../src/budget/process-limits.ts";
import { startServer, type TestServer } from "../support/server.ts";

/** A server that may open 1,024 files, with more connections than that, and a database of more files than are left. */

const OPEN_FILES = 1_024;
const TABLES = 60;
const TABLE = "/db/d:main/tables/t";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ openFiles: OPEN_FILES });
});
afterAll(() => server?.stop());

it("goes on with everything while clients open more connections than there can be", async () => {
  expect((await server.put("/db/d:main")).status).toBe(201);
  expect((await server.put(TABLE, { columns: [{ name: "n", type: "int" }] })).status).toBe(201);
  const closed: boolean[] = [];
  const silent: Socket[] = [];
  for (let i = 0; i < 1_100; i++) {
    const socket = connect({ port: server.port, host: "127.0.0.1", localAddress: `127.0.0.${2 + (i % 2)}` });
    socket.on("error", () => {}).once("close", () => (closed[i] = true));
    silent.push(socket);
    await new Promise<void>((resolve) => socket.once("connect", resolve));
  }
  // All of them were accepted, and the first ones closed for later ones, when a later one is answered.
  expect((await server.get("/livez")).status).toBe(200);
  const { connections } = descriptorLimits(OPEN_FILES);
  // This process hears of the closed ones a little later than the server closes them.
  await expect.poll(() => silent.length - closed.filter(Boolean).length).toBeLessThanOrEqual(connections);
  // Each table has several files, which are opened now.
  for (let i = 0; i < TABLES; i++) {
    expect((await server.put(`/db/d:main/tables/t${i}`, { columns: [{ name: "n", type: "int", unique: true }] })).status).toBe(201);
    expect((await server.put(`/db/d:main/tables/t${i}/data/a`, { n: i })).status).toBe(201);
  }
  expect((await server.get("/readyz")).status).toBe(200);
  expect((await server.post(`${TABLE}/query`, {})).status).toBe(200);
  expect(server.log).not.toMatch(/EMFILE|took over|heartbeat/);
  expect(server.log).toContain(`"openFiles":${OPEN_FILES},"connections":${connections}`);
  for (const socket of silent) socket.destroy();
});

describe("descriptors", () => {
  it.each([
    [256, { databaseFiles: 64, connections: 128 }],
    [1_024, { databaseFiles: 256, connections: 512 }],
    [20_000, { databaseFiles: 1_000, connections: 18_744 }],
    [Number.POSITIVE_INFINITY, { databaseFiles: 1_000, connections: Number.POSITIVE_INFINITY }],
    [1, { databaseFiles: 64, connections: 1 }],
  ])("of %i are divided between files and connections", (openFiles, limits) => {
    expect(descriptorLimits(openFiles)).toEqual(limits);
  });

  it("are as many as the process may open", () => {
    expect(mostOpenFiles()).toBeGreaterThan(0);
  });
});
