import { getEventListeners, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createApp } from "../../src/http/app.ts";
import { listen, type RunningServer } from "../../src/http/server.ts";
import { openRecordStore } from "../../src/records/open.ts";
import type { RecordStore } from "../../src/records/record-store.ts";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { copyTemplate } from "../support/server-template.ts";

/** What requests share because they come over one connection. */

const REF = { database: "shared", branch: "main" };
const TABLE = "/db/shared:main/tables/t";
const REQUESTS: readonly (readonly [path: string, body: object, status: number])[] = [
  [`${TABLE}/vectorSearch`, { column: "v", queryVector: [1, 0] }, 200],
  [`${TABLE}/data`, { n: 1, v: [1, 0] }, 201],
  [`${TABLE}/query`, { columns: ["n"] }, 200],
  [`${TABLE}/vectorSearch`, { column: "v", queryVector: [1, 0], columns: ["n"], consistency: "strong" }, 200],
  ["/db/shared:main/sql", { statement: 'SELECT "n" FROM "t"' }, 200],
  ["/db/shared:main/transaction", { operations: [{ insert: { table: "t", record: { n: 2 } } }] }, 200],
  [`${TABLE}/vectorSearch`, { column: "v", queryVector: [1] }, 400],
];

const folder = mkdtempSync(join(tmpdir(), "lodestone-connection-"));
/** Of requests that came to the stores. */
const signals = new Set<AbortSignal>();
let records: RecordStore;
let search: SearchStore;
let server: RunningServer;

beforeAll(async () => {
  const dataDir = join(folder, "data");
  copyTemplate(dataDir);
  records = await openRecordStore({ dataDir });
  await records.createBranch(REF);
  await records.createTable(REF, "t", [
    { name: "n", type: "int" },
    { name: "v", type: "vector", vector: { dimension: 2 } },
  ]);
  search = await openSearchStore(records);
  const watched: RecordStore = {
    ...records,
    forCaller: (signal, budget) => {
      signals.add(signal);
      return records.forCaller(signal, budget);
    },
  };
  const app = createApp({ records: watched, search, log: pino({ level: "silent" }), version: "0.0.0" });
  server = await listen(app, { addresses: ["127.0.0.1"], port: 0 });
});

afterAll(async () => {
  await server?.close();
  await search?.close();
  await records?.close();
  rmSync(folder, { recursive: true, force: true });
});

const textOf = (path: string, body: object): string => {
  const text = JSON.stringify(body);
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
};

/** The statuses of the next answers, in their order. */
async function statuses(socket: Socket, count: number): Promise<number[]> {
  let text = "";
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += chunk;
    const found = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => Number(match[1]));
    if (found.length === count && text.endsWith("}")) return found;
  }
  throw new Error(`the connection ended after ${text}`);
}

it("many requests leave nothing behind on the signal of their connection, which tells all of them that it has closed", async () => {
  const socket = connect(server.port, "127.0.0.1").setEncoding("utf8");
  const expected = Array.from({ length: 5 }, () => REQUESTS).flat();
  // All in one piece, so that they wait for each other in every queue.
  socket.write(expected.map(([path, body]) => textOf(path, body)).join(""));
  expect(await statuses(socket, expected.length)).toEqual(expected.map(([, , status]) => status));
  expect(signals.size).toBe(1);
  const [signal] = signals as Set<AbortSignal>;
  expect(getEventListeners(signal!, "abort")).toEqual([]);
  expect(signal!.aborted).toBe(false);
  const aborted = once(signal!, "abort");
  socket.destroy();
  await aborted;
});

it("a body is read alike, whether it comes with the headers, behind them, or in pieces", async () => {
  const socket = connect(server.port, "127.0.0.1").setEncoding("utf8").setNoDelay();
  const text = textOf(`${TABLE}/query`, { columns: ["n"], filter: { n: { $gt: 0 } } });
  for (const cuts of [[], [text.indexOf("{")], [text.indexOf("{") + 3], [text.indexOf("{"), text.length - 1], [text.length - 1]]) {
    for (const [i, end] of [...cuts, text.length].entries()) {
      socket.write(text.slice(cuts[i - 1] ?? 0, end));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await statuses(socket, 1)).toEqual([200]);
  }
  socket.destroy();
});
