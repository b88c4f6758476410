import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BODY_LIMITS } from "./limits/body-limits.ts";
import { api, BRANCH, DOCUMENTED, meet, repeat, TABLE } from "./limits/limit.ts";
import { RECORD_LIMITS } from "./limits/record-limits.ts";
import { SCHEMA_LIMITS } from "./limits/schema-limits.ts";
import { SEARCH_LIMITS } from "./limits/search-limits.ts";

/**
 * Every limit of docs/limits.md that is a number of things. One below and at the limit it works; one above it
 * is refused, and the limit is named.
 */

beforeAll(() => api.start());
afterAll(() => api.stop());

const LIMITS = [...BODY_LIMITS, ...SCHEMA_LIMITS, ...RECORD_LIMITS, ...SEARCH_LIMITS];

/** Tested separately below. */
const TESTED_APART = [
  "headers of a request together",
  "rows of an answer",
  "values of an answer together",
  "what an answer reads, or repeats",
  // memory-budget.test.ts
  "memory of all answers together (`--max-memory`)",
  // large-records.test.ts, large-values.test.ts
  "a value that filters of searches see",
  // text-search.test.ts: not refused
  "different words of a `query`",
  // test/mcp
  "characters of a tool's answer",
  "records of one search or query by a tool",
  "records that a tool inserts or deletes at once",
  // text-work.test.ts
  "words, postings and characters that a text search looks at",
];

/** Limits of time and concurrency, tested in load-limits.test.ts, connections.test.ts, search-queue.test.ts and slow-open.test.ts. */
const TESTED_UNDER_LOAD = [
  "requests worked on at once (`--max-requests`)",
  "bodies held at once by all requests",
  "searches waiting for their turn",
  "connections",
  "connections of one client",
  "time for a request's headers to arrive",
  "time for a body to arrive whole",
  "pause in a body",
  "pause in taking a large answer",
  "time for a statement (`--statement-timeout`)",
  "time for SQL over HTTP on the embedded database (`--statement-timeout`)",
  "wait for the embedded database while it is opened again (`--statement-timeout`)",
];

describe("the limit", () => {
  it.each(LIMITS)("$documented: $value", (limit) => meet(limit));

  it("list is whole: every limit that docs/limits.md names is tested, and no other", () => {
    const tested = [...new Set([...LIMITS.map(({ documented }) => documented), ...TESTED_APART, ...TESTED_UNDER_LOAD])];
    expect(DOCUMENTED.map(({ name }) => name).sort()).toEqual(tested.sort());
  });

  it("headers of a request together: 16,383 bytes, beyond which it is 431", async () => {
    expect(DOCUMENTED).toContainEqual({ name: "headers of a request together", value: "16,383 bytes", beyond: "431" });
    // The parser counts names and values, and the target of the request.
    const statusOf = (bytes: number): Promise<string> => {
      const counted = "/dbs" + "Host" + "localhost" + "Connection" + "close" + "X-Long";
      const socket = connect(api.server.port, "127.0.0.1");
      socket.write(`GET /dbs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: ${"x".repeat(bytes - counted.length)}\r\n\r\n`);
      return new Promise((resolve) => {
        let text = "";
        socket.on("data", (chunk) => {
          text += chunk.toString();
        });
        socket.on("close", () => resolve(text.slice(9, 12)));
      });
    };
    expect(await Promise.all([16_382, 16_383, 16_384].map(statusOf))).toEqual(["200", "200", "431"]);
  });

  it("rows of an answer: 1,000, beyond which it is cut and says so", async () => {
    expect(DOCUMENTED).toContainEqual({ name: "rows of an answer", value: "1,000", beyond: "cut, with a `warning`" });
    await api.server.put(`${BRANCH}/tables/rows`, { columns: [{ name: "n", type: "int" }] });
    const count = async () => {
      const { body } = await api.sql('SELECT "n" FROM "rows"');
      return [body.records.length, body.warning === undefined];
    };
    await api.server.post(`${BRANCH}/tables/rows/bulk`, { records: repeat(999, (n) => ({ n })) });
    expect(await count()).toEqual([999, true]);
    await api.server.put(`${BRANCH}/tables/rows/data/x`, {});
    expect(await count()).toEqual([1000, true]);
    await api.server.put(`${BRANCH}/tables/rows/data/y`, {});
    expect(await count()).toEqual([1000, false]);
  });

  it("values of an answer together: 32 MiB, beyond which it is cut and says so", async () => {
    expect(DOCUMENTED).toContainEqual({
      name: "values of an answer together",
      value: "33,554,432 characters (32 MiB)",
      beyond: "cut, with a `warning`",
    });
    const rowsOf = async (length: number) => {
      const { body } = await api.sql("SELECT 'x' AS first UNION ALL SELECT repeat('x', $1::int - 1)", [length]);
      return [body.records.length, body.warning === undefined];
    };
    expect(await rowsOf(33_554_431)).toEqual([2, true]);
    expect(await rowsOf(33_554_432)).toEqual([2, true]);
    expect(await rowsOf(33_554_433)).toEqual([1, false]);
  });

  it("what an answer reads, or repeats: 64 MiB, beyond which it is refused", async () => {
    expect(DOCUMENTED).toContainEqual({ name: "what an answer reads, or repeats", value: "64 MiB", beyond: "413" });
    const limit = 64 * 2 ** 20;
    // The bytes around the values on the wire are counted too: some hundred bytes.
    const statusOf = async (bytes: number): Promise<number> => {
      const statement = { statement: "SELECT repeat('x', $1::int) AS x", params: [Math.ceil(bytes / 4)] };
      return (await api.server.post(`${BRANCH}/sql/batch`, { statements: [statement, statement, statement, statement] })).status;
    };
    expect([await statusOf(limit - 2_000), await statusOf(limit + 4)]).toEqual([200, 413]);
  });

  it("patterns are matched in linear time: a thousand stars against a hundred thousand letters", async () => {
    await api.server.put(`${TABLE}/data/long`, { s: "a".repeat(100_000) });
    const answer = await api.filter({ s: { $pattern: `${"*a".repeat(499)}*b` } });
    expect(answer).toMatchObject({ status: 200, body: { records: [] } });
  });
});
