/**
 * Errors as the SDK expects them: class, status, message, errors[], request id; what it turns into null; what
 * is not supported; overload.
 */
import { FetcherError } from "@xata.io/client";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../support/patience.ts";
import { openWorld, sdkClient, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("failing");
});
afterAll(() => world?.stop());

const failure = async (call: Promise<unknown>): Promise<FetcherError> => {
  const error = await call.then(
    () => new Error("it did not fail"),
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(FetcherError);
  return error as FetcherError;
};

test("an error has status, message, errors, and the request id of the answer's header and body", async () => {
  const error = await failure(world.client.db.teams.create({ index: "x" } as never));
  expect(error.status).toBe(400);
  expect(error.message).toContain("index");
  expect(error.errors).toEqual([{ message: error.message, status: 400 }]);
  expect(error.requestId).toMatch(/\S{8,}/);
  expect(error.toString()).toContain(`[400] (${error.requestId})`);

  const answer = await world.plain("POST", "/tables/teams/data", { index: "x" });
  expect(answer.body).toEqual({ id: answer.headers.get("x-request-id"), code: "INVALID", message: error.message });
});

test("each request has its own id, even if it succeeds", async () => {
  const ids = await Promise.all([1, 2, 3].map(async () => (await world.plain("GET", "")).headers.get("x-request-id")));
  expect(new Set(ids).size).toBe(3);
});

test("a failed transaction has errors with their positions, and a message", async () => {
  const error = await failure(world.client.transactions.run([{ get: { table: "planets", id: "x" } }] as never));
  expect(error.status).toBe(400);
  expect(error.errors).toEqual([{ index: 0, code: "NOT_FOUND", message: expect.stringContaining("planets") }]);
});

test("a database or branch that does not exist is a 404 that names it", async () => {
  const database = await failure(sdkClient(world.port, "nowhere").db.teams.getAll());
  expect([database.status, database.message]).toEqual([404, expect.stringContaining("nowhere")]);
  const branch = await failure(sdkClient(world.port, "failing", "sidetrack").db.teams.getAll());
  expect([branch.status, branch.message]).toEqual([404, expect.stringContaining("sidetrack")]);
});

test("404 on a record is null for read, update and delete, and an error for nothing else", async () => {
  const { teams } = world.client.db;
  expect([await teams.read("x"), await teams.update("x", { name: "y" }), await teams.delete("x")]).toEqual([null, null, null]);
});

describe("unsupported features say so", () => {
  test("ask", async () => {
    const error = await failure(world.client.db.teams.ask("How many teams are there?") as Promise<unknown>);
    expect([404, 400, 501]).toContain(error.status);
    expect(error.status).toBeLessThan(500);
    expect(error.message).toMatch(/ask/i);
  });

  test("files", async () => {
    const location = { table: "teams", record: "r", column: "name" } as never;
    for (const call of [
      () => world.client.files.download(location),
      () => world.client.files.upload(location, new Blob(["x"], { type: "image/png" }) as never),
      () => world.client.files.delete(location),
    ]) {
      const error = await failure(call() as Promise<unknown>);
      expect(error.status).toBeGreaterThanOrEqual(400);
      expect(error.status).toBeLessThan(500);
    }
    const answer = await world.plain("GET", "/tables/teams/data/r/column/name/file");
    expect(answer.body.message).toMatch(/file/i);
  });

  test("columns of type file", async () => {
    await expect(
      world.api.table.addTableColumn({ pathParams: { ...world.branchPath, tableName: "teams" }, body: { name: "photo", type: "file" } }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining("file") });
  });

  test("an unknown address is a 404 in JSON", async () => {
    const answer = await world.plain("GET", "/no/such/thing");
    expect([answer.status, typeof answer.body.message, answer.body.id]).toEqual([404, "string", answer.headers.get("x-request-id")]);
  });
});

test("after 429 the SDK waits, and then the request succeeds", async () => {
  let asked = 0;
  const client = new (await import("./support/schema.ts")).XataClient({
    databaseURL: `http://w.r.localhost:${world.port}/db/failing`,
    apiKey: "k",
    branch: "main",
    // The server's own overload response is tested with the server; this tests how the SDK handles one.
    fetch: (async (url: string, init: RequestInit) => {
      if (asked++ === 0) return new Response("{}", { status: 429, headers: { "X-RateLimit-Reset": "1" } });
      return fetch(url, init);
    }) as never,
  });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const created = client.db.teams.create({ name: "patient" });
    await until("it waits", () => asked === 1 && vi.getTimerCount() > 0);
    await vi.advanceTimersByTimeAsync(999);
    expect(asked).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect((await created).name).toBe("patient");
    expect(asked).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

test("thirty concurrent calls each get their own result", async () => {
  const made = await Promise.all(Array.from({ length: 30 }, (_, i) => world.client.db.teams.create(`c${i}`, { name: `call ${i}` })));
  expect(made.map(({ id, name }) => [id, name])).toEqual(Array.from({ length: 30 }, (_, i) => [`c${i}`, `call ${i}`]));
});

test("odd but valid names work: branches with ~ and -, columns with dots", async () => {
  await world.api.branch.createBranch({ pathParams: { ...world.branchPath, dbBranchName: "failing:feat~1-x_Y" }, body: {} });
  const client = sdkClient(world.port, "failing", "feat~1-x_Y");
  const at = { ...world.branchPath, dbBranchName: "failing:feat~1-x_Y", tableName: "odd-table~1" };
  await world.api.table.createTable({ pathParams: at });
  await world.api.table.addTableColumn({ pathParams: at, body: { name: "a.b.c", type: "string" } });
  expect((await world.api.table.getColumn({ pathParams: { ...at, columnName: "a.b.c" } })).name).toBe("a.b.c");
  expect(await client.getConfig()).toMatchObject({ branch: "feat~1-x_Y" });
});
