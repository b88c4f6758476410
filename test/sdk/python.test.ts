/**
 * Requests of the Python SDK, byte for byte as it sends them (recorded from xata 1.3.6 on a socket), one
 * after the other. They show how it sends None, False and empty strings.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";
import { sendBytes } from "./support/recorded.ts";

const RECORDED = JSON.parse(readFileSync(new URL("recorded/python-sdk.json", import.meta.url), "utf8")) as {
  name: string;
  request: string;
}[];

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
});
afterAll(() => server?.stop());

const found = (...titles: string[]) => titles.map((title) => expect.objectContaining({ title }));
const message = (text: string | RegExp) => ({ message: typeof text === "string" ? text : expect.stringMatching(text) });

/** In the order in which they were recorded. */
const ANSWERS: Readonly<Record<string, readonly [status: number, body: unknown]>> = {
  "create database": [201, { databaseName: "python", branchName: "main" }],
  "create table": [201, { branchName: "python:main", tableName: "Posts", status: "completed" }],
  "set schema": [200, { status: "completed" }],
  "insert with an id": [201, { id: "p1", xata: { version: 0 } }],
  "insert with an id, only new": [422, message(/p1/)],
  "insert with an empty id": [404, message(/empty/)],
  "get by a hash sign": [404, message(/empty/)],
  "get from a table that is not there": [404, message("table [python:main/Nope] not found")],
  "bulk insert": [200, { recordIDs: [expect.any(String), expect.any(String)] }],
  count: [200, { aggs: { title: 3 } }],
  // Immediately after the count, which is how its users wait for their records.
  "vector search": [200, { totalCount: 3, records: found("Käse", "three", "two") }],
  query: [200, { records: [{ title: "Käse" }, {}], meta: { page: { more: true, size: 2 } } }],
  "search without words": [200, { totalCount: 3, records: expect.arrayContaining(found("Käse", "two", "three")) }],
  "search with an unknown member": [400, message(/invalid/)],
  "search in a table without a name": [400, message(/tables/)],
  summarize: [
    200,
    {
      summaries: [
        { title: "Käse", likes: 3 },
        { title: "three", likes: null },
        { title: "two", likes: null },
      ],
    },
  ],
  transaction: [
    200,
    {
      results: [
        { operation: "insert", rows: 1 },
        { operation: "get", columns: { title: "Käse" } },
        { operation: "delete", rows: 0 },
      ],
    },
  ],
  sql: [200, { records: [{ id: "p1", title: "Käse", xata: { version: 0 } }], total: 1 }],
  "create a branch that is there": [422, message(/exists already/)],
  "create a branch from one that is not there": [400, message(/avengers/)],
  "create a branch of a database that is not there": [404, message(/NOPE/)],
  "rename database": [200, { name: "python-renamed", createdAt: expect.any(String) }],
};

test("every recorded request is expected here", () => {
  expect(RECORDED.map(({ name }) => name)).toEqual(Object.keys(ANSWERS));
});

// In the order of the recording: each builds on those before.
test.each(RECORDED)("$name", async ({ name, request }) => {
  const [status, body] = ANSWERS[name] as readonly [number, unknown];
  const answer = await sendBytes(server.port, request);
  expect(answer).toMatchObject({ status, body });
});
