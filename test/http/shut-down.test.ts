import { afterAll, beforeAll, expect, it } from "vitest";
import { ENDLESS, untilEndlessRuns } from "../support/endless-statement.ts";
import { RealStores, Talk } from "./real-app.ts";

/** What clients see of a server that shuts down: an answer to each request, and none of their connections broken. */

let stores: RealStores;

async function openStores(): Promise<RealStores> {
  const opened = await RealStores.open();
  await opened.records.createBranch({ database: "s", branch: "main" });
  await opened.records.createTable({ database: "s", branch: "main" }, "t", [{ name: "s", type: "text" }]);
  return opened;
}
beforeAll(async () => {
  stores = await openStores();
});
afterAll(() => stores?.close());

const DBS = "GET /dbs HTTP/1.1\r\nHost: localhost\r\n\r\n";
const post = (path: string, body: string, length = body.length): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n${body}`;
const CONTINUE = /^HTTP\/1\.1 100 Continue\r\n\r\n/;
/** Sends it, and waits until it is under way. */
const begin = async (talk: Talk, request: string): Promise<void> => {
  talk.send(request);
  await talk.answered(CONTINUE);
};
const answerOf = (talk: Talk): { status: number; head: string; body: { message?: string } } => {
  const [head = "", body = ""] = talk.text.replace(CONTINUE, "").split("\r\n\r\n");
  return { status: Number(head.slice(9, 12)), head, body: JSON.parse(body) };
};
/** Far longer than a test takes. */
const NEVER_MS = 600_000;

it("a request that is cut by the deadline is answered 503 with Retry-After, and then its connection is closed", async () => {
  const { server, log } = await stores.listen({ shutdownTimeoutMs: 50, shutdownAnswerMs: NEVER_MS });
  const statement = new Talk(server);
  await begin(statement, post("/db/s:main/sql", JSON.stringify({ statement: ENDLESS })));
  await untilEndlessRuns(stores.dataDir);
  const incomplete = new Talk(server);
  await begin(incomplete, post("/db/s:main/tables/t/data", '{"s": ', 12));
  await server.close();
  for (const talk of [statement, incomplete]) {
    await talk.closed;
    const { status, head, body } = answerOf(talk);
    expect([status, talk.error]).toEqual([503, undefined]);
    expect(head).toMatch(/^Retry-After: \d+$/im);
    expect(head).toMatch(/^Connection: close$/im);
    expect(body.message).toBe("The server is shutting down, and ended this request. Nothing was changed: try again.");
  }
  expect(log).toContainEqual(expect.objectContaining({ requests: 2, msg: "the time for requests in flight is over; they are ended" }));
  expect((await stores.records.query({ database: "s", branch: "main" }, "t", {})).records).toEqual([]);
});

it("a write that goes on is answered 503 as well, which does not say that nothing was changed", async () => {
  // It goes on until they are closed.
  const own = await openStores();
  const { server, log } = await own.listen({ shutdownTimeoutMs: 10, shutdownAnswerMs: 10 });
  const talk = new Talk(server);
  const statement = `INSERT INTO "t" ("s") SELECT 'x' FROM generate_series(1, 1e12)`;
  await begin(talk, post("/db/s:main/sql", JSON.stringify({ statement })));
  await untilEndlessRuns(own.dataDir);
  await server.close();
  await talk.closed;
  await own.close();
  const { status, body } = answerOf(talk);
  expect([status, talk.error]).toEqual([503, undefined]);
  expect(body.message).toContain("It may be carried out all the same.");
  expect(log).toContainEqual(expect.objectContaining({ requests: 1, msg: expect.stringContaining("without their outcome") }));
});

it("requests in flight are completed, with the word that the connection ends", async () => {
  const { server } = await stores.listen({ shutdownTimeoutMs: NEVER_MS, shutdownIdleMs: 10 });
  const talk = new Talk(server);
  await begin(talk, post("/db/s:main/tables/t/data", '{"s": ', 12));
  const closed = server.close();
  talk.send('"abc"}');
  await talk.closed;
  const { status, head } = answerOf(talk);
  expect([status, talk.error]).toEqual([201, undefined]);
  expect(head).toMatch(/^Connection: close$/im);
  await closed;
});

/** Connections that wait are not closed before they have asked. */
async function withTalks(count: number) {
  const { server } = await stores.listen({ shutdownTimeoutMs: NEVER_MS, shutdownIdleMs: NEVER_MS });
  return { server, talks: Array.from({ length: count }, () => new Talk(server)) };
}

it("connections that are kept alive are answered once more, with the word that they end", async () => {
  const { server, talks } = await withTalks(20);
  for (const talk of talks) {
    talk.send(DBS);
    await talk.answered(/\r\n\r\n\{.*\}$/);
    expect(talk.text).not.toMatch(/^Connection: close$/im);
    talk.text = "";
  }
  const closed = server.close();
  for (const talk of talks) talk.send(DBS);
  for (const talk of talks) {
    await talk.closed;
    const { status, head } = answerOf(talk);
    expect([status, talk.error]).toEqual([503, undefined]);
    expect(head).toMatch(/^Connection: close$/im);
  }
  await closed;
});

it("connections that were not accepted yet are answered, too", async () => {
  const { server, talks } = await withTalks(50);
  for (const talk of talks) talk.send(DBS);
  // By then the kernel has completed them all.
  await new Promise((resolve) => talks.at(-1)!.socket.once("connect", resolve));
  const closed = server.close();
  for (const talk of talks) await talk.closed;
  for (const talk of talks)
    expect([talk.text.slice(0, 12), talk.error]).toEqual([expect.stringMatching(/HTTP\/1\.1 (200|503)/), undefined]);
  await closed;
});

it("connections that say nothing are closed after a while, and no new ones are accepted", async () => {
  const { server } = await stores.listen({ shutdownTimeoutMs: NEVER_MS, shutdownIdleMs: 10 });
  const talk = new Talk(server);
  talk.send(DBS);
  await talk.answered(/\r\n\r\n\{.*\}$/);
  await server.close();
  await talk.closed;
  expect(talk.error).toBe(undefined);
  const late = new Talk(server);
  await late.closed;
  expect(late.error?.code).toBe("ECONNREFUSED");
});
