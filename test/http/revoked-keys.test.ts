import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type AccessKey, hashKey, Keyring } from "../../src/http/keys/access-keys.ts";
import type { RunningServer } from "../../src/http/server.ts";
import { ENDLESS, untilEndlessRuns } from "../support/endless-statement.ts";
import { until } from "../support/patience.ts";
import { type Log, RealStores, Talk } from "./real-app.ts";

/** What becomes of requests whose key is revoked while they run. */

const LENGTH = 12_000_000;
const REF = { database: "r", branch: "main" };
const TABLE = "/db/r:main/tables/t";

let stores: RealStores;
beforeAll(async () => {
  stores = await RealStores.open();
  await stores.records.createBranch(REF);
  await stores.records.createTable(REF, "t", [
    { name: "s", type: "text" },
    { name: "v", type: "vector", vector: { dimension: 2_000 } },
  ]);
  await stores.records.insertRecord(REF, "t", { id: "large", s: "x".repeat(LENGTH) });
  for (let page = 0; page < 2; page++)
    await stores.records.insertRecords(
      REF,
      "t",
      Array.from({ length: 1_000 }, (_, i) => ({ id: `v${page}-${i}`, v: Array.from({ length: 2_000 }, (_, n) => n + i) })),
    );
});
afterAll(() => stores?.close());

const key = (name: string, scope: AccessKey["scope"] = "write"): AccessKey => ({ name, hash: hashKey(name), scope });
const request = (name: string, method: string, path: string, body?: string, length = body?.length, headers = ""): string =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${name}\r\n${headers}` +
  (body === undefined ? "\r\n" : `Content-Type: application/json\r\nContent-Length: ${length}\r\nExpect: 100-continue\r\n\r\n${body}`);
const CONTINUE = /^HTTP\/1\.1 100 Continue\r\n\r\n/;

/** With both keys, the first of which `revoke` takes away. */
const withKeys = (work: (server: RunningServer, log: Log, revoke: () => void) => Promise<void>) => {
  const keyring = new Keyring([key("leaked"), key("good")]);
  return stores.withServer({ shutdownIdleMs: 10 }, (server, log) => work(server, log, () => keyring.replace([key("good")])), { keyring });
};

it.each([
  ["a long answer", "GET", `${TABLE}/data/large`, undefined],
  ["a stream of vectors", "POST", `${TABLE}/vectors`, '{"column":"v"}'],
])("%s ends, and the log says why; another key's goes on", async (_, method, path, body) => {
  await withKeys(async (server, log, revoke) => {
    const talks = ["leaked", "good"].map((name) => {
      const talk = new Talk(server);
      talk.socket.pause();
      talk.send(request(name, method, path, body, body?.length, "Connection: close\r\n"));
      return talk;
    });
    for (const talk of talks) {
      // Reads the beginning and no more.
      const answered = talk.answered(/HTTP\/1\.1 200 /);
      talk.socket.resume();
      await answered;
      talk.socket.pause();
    }
    revoke();
    const [leaked, good] = talks as [Talk, Talk];
    leaked.socket.resume();
    await leaked.closed;
    expect(leaked.text.length).toBeLessThan(LENGTH);
    expect(leaked.text).not.toMatch(/\r\n0\r\n\r\n$/);
    expect(log).toEqual([expect.objectContaining({ key: "leaked", msg: expect.stringContaining("key was revoked") })]);
    good.socket.resume();
    await good.closed;
    expect(good.text.length).toBeGreaterThan(LENGTH);
    expect(good.text).toMatch(/\r\n0\r\n\r\n$/);
  });
});

it("a statement that runs, and a body that is still on its way, are answered 401; the connection can be used with another key", async () => {
  await withKeys(async (server, _log, revoke) => {
    const statement = new Talk(server);
    statement.send(request("leaked", "POST", "/db/r:main/sql", JSON.stringify({ statement: ENDLESS })));
    await untilEndlessRuns(stores.dataDir);
    const incomplete = new Talk(server);
    incomplete.send(request("leaked", "POST", `${TABLE}/data`, '{"s": ', 12));
    await incomplete.answered(CONTINUE);
    revoke();
    for (const talk of [statement, incomplete]) {
      await talk.answered(/HTTP\/1\.1 401 [\s\S]*"message":"The API key was revoked while this request ran\."/);
      talk.text = "";
    }
    statement.send(request("good", "POST", "/db/r:main/sql", '{"statement":"SELECT 1 AS n"}'));
    await statement.answered(/HTTP\/1\.1 200 [\s\S]*"n":1/);
    statement.socket.destroy();
    incomplete.socket.destroy();
  });
});

it("a backup ends, and nothing is left of it; that of a client who has left is completed", async () => {
  const backupDir = mkdtempSync(join(tmpdir(), "lodestone-revoked-backups-"));
  const keyring = new Keyring([key("leaked", "admin"), key("good", "admin")]);
  const backups = () => readdirSync(backupDir);
  const copied = () => readdirSync(backupDir, { recursive: true }).length;
  const begin = async (server: RunningServer, name: string): Promise<Talk> => {
    const talk = new Talk(server);
    talk.send(request(name, "POST", "/backups"));
    // Some of the thousand files are there, and most are not.
    await until("files are copied", () => copied() > 20, 0);
    return talk;
  };
  try {
    await stores.withServer(
      {},
      async (server, log) => {
        const talk = await begin(server, "leaked");
        keyring.replace([key("good", "admin")]);
        await talk.answered(/\}$/);
        expect(talk.text).toMatch(/^HTTP\/1\.1 401 [\s\S]*"message":"The API key was revoked while this request ran\."/);
        expect(backups()).toEqual([]);
        expect(log).toEqual([expect.objectContaining({ key: "leaked", msg: expect.stringContaining("key was revoked") })]);
        talk.socket.destroy();
        (await begin(server, "good")).socket.destroy();
        await until("the backup is complete", () => backups().some((name) => name.endsWith("Z")));
        expect(backups()).toHaveLength(1);
      },
      { keyring, backupDir },
    );
  } finally {
    rmSync(backupDir, { recursive: true });
  }
});

it("a key that stays as it is keeps its requests, whatever happens to others; one that may do less does not", () => {
  const keyring = new Keyring([key("a"), key("b"), key("c")]);
  const [a, b] = ["a", "b"].map((name) => keyring.authenticate(`Bearer ${name}`));
  const revoked: string[][] = [];
  keyring.onRevoked((callers) => revoked.push([...callers].map(({ name }) => name)));
  keyring.replace([key("b"), { ...key("a"), scope: "read" }, key("d")]);
  expect(revoked).toEqual([["a", "c"]]);
  expect(keyring.authenticate("Bearer b")).toBe(b);
  expect(keyring.authenticate("Bearer a")).not.toBe(a);
  keyring.replace([key("b"), { ...key("a"), scope: "read", databases: ["x"] }, key("d"), key("e")]);
  expect(revoked.slice(1)).toEqual([["a"]]);
});
