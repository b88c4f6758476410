import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runHere } from "../support/run-here.ts";
import { runCommand, startServer, type TestServer } from "../support/server.ts";

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

const folder = mkdtempSync(join(tmpdir(), "lodestone-keys-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("keys given on the command line", () => {
  const KEY = "a-very-secret-key";
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ args: ["--api-key", KEY, "--api-key", "another-key"], env: { LODESTONE_LOG_LEVEL: "debug" } });
  });
  afterAll(() => server?.stop());

  it.each([
    ["none", {}],
    ["a wrong one", bearer("wrong")],
    ["a prefix of it", bearer(KEY.slice(0, -1))],
    ["it with more behind", bearer(`${KEY}x`)],
    ["it in another scheme", { authorization: `Basic ${Buffer.from(KEY).toString("base64")}` }],
    ["an empty one", bearer("")],
  ])("%s is refused (401), whatever is asked for", async (_what, headers) => {
    for (const [method, path] of [
      ["GET", "/dbs"],
      ["GET", "/db/a:b"],
      ["PUT", "/db/a:b"],
      ["POST", "/db/a:b/sql"],
      ["GET", "/metrics"],
      ["GET", "/nothing"],
    ] as const) {
      const answer = await server.request(method, path, method === "POST" ? { statement: "SELECT 1" } : undefined, headers);
      expect(answer).toMatchObject({ status: 401, body: { id: answer.headers["x-request-id"], message: expect.stringContaining("key") } });
      expect(answer.headers["www-authenticate"]).toMatch(/^Bearer/);
    }
    expect((await server.get("/dbs", bearer(KEY))).body).toEqual({ databases: [] });
  });

  it("each of them is accepted", async () => {
    expect((await server.get("/dbs", bearer(KEY))).status).toBe(200);
    expect((await server.get("/dbs", { authorization: "bearer another-key" })).status).toBe(200);
  });

  it("health and the API's description need no key", async () => {
    for (const path of ["/livez", "/openapi.json"]) expect((await server.get(path)).status).toBe(200);
  });

  it("appear in no log, error or metric", async () => {
    await server.get("/dbs", bearer(KEY));
    const metrics = (await server.get("/metrics", bearer(KEY))).text;
    for (const text of [server.log, server.stdout, metrics]) {
      expect(text).not.toContain(KEY);
      expect(text).not.toContain("another-key");
    }
    expect(server.log).toContain('"key":"--api-key 1"');
  });

  it("are listed by name, and are not changed by a request", async () => {
    const { body } = await server.get("/keys", bearer(KEY));
    const entry = { scope: "admin", databases: null, createdAt: null };
    expect(body).toEqual({ keys: ["--api-key 1", "--api-key 2"].map((name) => ({ name, ...entry })), hasFile: false });
    for (const answer of [
      await server.post("/keys", { name: "x", scope: "read" }, bearer(KEY)),
      await server.delete("/keys/x", bearer(KEY)),
    ]) {
      expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining("--key-file") } });
    }
  });
});

describe("a key file", () => {
  const file = join(folder, "keys.json");
  let server: TestServer;
  const keys: Record<string, string> = {};
  beforeAll(async () => {
    for (const [name, scope, ...databases] of [
      ["boss", "admin"],
      ["writer", "write"],
      ["reader", "read"],
      ["shop", "write", "shop"],
    ] as [string, string, ...string[]][]) {
      const created = await runHere([
        "keys",
        "create",
        name,
        "--scope",
        scope,
        "--file",
        file,
        ...databases.flatMap((d) => ["--database", d]),
      ]);
      expect(created.code).toBe(0);
      keys[name] = created.stdout.trim();
    }
    server = await startServer({ args: ["--key-file", file] });
    const boss = bearer(keys.boss as string);
    for (const database of ["shop", "other"]) {
      await server.put(`/db/${database}:main`, {}, boss);
      await server.put(
        `/db/${database}:main/tables/t`,
        {
          columns: [
            { name: "n", type: "int" },
            { name: "v", type: "vector", vector: { dimension: 2 } },
          ],
        },
        boss,
      );
      await server.put(`/db/${database}:main/tables/t/data/a`, { n: 1, v: [1, 0] }, boss);
    }
  });
  afterAll(() => server?.stop());

  const as = (name: string) => bearer(keys[name] as string);

  it("holds hashes only, and is readable by its owner only", () => {
    const text = readFileSync(file, "utf8");
    for (const key of Object.values(keys)) expect(text).not.toContain(key);
    expect(statSync(file).mode & 0o077).toBe(0);
  });

  it("is listed without keys and hashes", async () => {
    const { stdout } = await runHere(["keys", "list", "--file", file]);
    expect(stdout).toMatch(/^boss\tadmin\tall databases\t\d{4}-/);
    expect(stdout).toMatch(/^shop\twrite\tshop\t/m);
    expect(stdout).not.toMatch(/[0-9a-f]{64}|lds_/);
  });

  it("a read key can read, query, search and SELECT, and nothing else", async () => {
    const path = "/db/shop:main";
    const reads = [
      await server.get("/dbs", as("reader")),
      await server.get(path, as("reader")),
      await server.get(`${path}/tables/t/data/a`, as("reader")),
      await server.post(`${path}/tables/t/query`, {}, as("reader")),
      await server.post(`${path}/tables/t/vectorSearch`, { column: "v", queryVector: [1, 0], consistency: "strong" }, as("reader")),
      await server.post(`${path}/sql`, { statement: 'SELECT "n" FROM "t"' }, as("reader")),
      await server.post(`${path}/transaction`, { operations: [{ get: { table: "t", id: "a" } }] }, as("reader")),
    ];
    expect(reads.map(({ status }) => status)).toEqual(reads.map(() => 200));
    const writes = [
      await server.put(`${path}/tables/t/data/b`, {}, as("reader")),
      await server.post(`${path}/tables/t/data`, {}, as("reader")),
      await server.post(`${path}/tables/t/bulk`, { records: [] }, as("reader")),
      await server.patch(`${path}/tables/t/data/a`, { n: 2 }, as("reader")),
      await server.delete(`${path}/tables/t/data/a`, as("reader")),
      await server.post(`${path}/sql`, { statement: 'DELETE FROM "t"' }, as("reader")),
      await server.post(`${path}/sql`, { statement: 'WITH d AS (DELETE FROM "t" RETURNING 1) SELECT * FROM d' }, as("reader")),
      await server.post(`${path}/sql`, { statement: 'UPDATE "t" SET "n" = 5' }, as("reader")),
      await server.post(`${path}/transaction`, { operations: [{ delete: { table: "t", id: "a" } }] }, as("reader")),
      await server.put(`${path}/tables/u`, {}, as("reader")),
      await server.delete(path, as("reader")),
    ];
    expect(writes.map(({ status }) => status)).toEqual(writes.map(() => 403));
    expect(writes[0]?.body.message).toContain('"write"');
    expect((await server.get(`${path}/tables/t/data/a`, as("boss"))).body).toMatchObject({ n: 1, xata: { version: 0 } });
  });

  it("a write key can write records, but not change the schema", async () => {
    const path = "/db/other:main";
    expect((await server.put(`${path}/tables/t/data/w`, { n: 1 }, as("writer"))).status).toBe(201);
    expect((await server.delete(`${path}/tables/t/data/w`, as("writer"))).status).toBe(204);
    expect((await server.post(`${path}/sql`, { statement: 'UPDATE "t" SET "n" = 1' }, as("writer"))).status).toBe(200);
    for (const answer of [
      await server.put(`${path}/tables/u`, {}, as("writer")),
      await server.delete(`${path}/tables/t`, as("writer")),
      await server.post(`${path}/tables/t/columns`, { name: "x", type: "int" }, as("writer")),
      await server.put("/db/other:dev", {}, as("writer")),
      await server.delete(path, as("writer")),
    ]) {
      expect(answer).toMatchObject({ status: 403, body: { message: expect.stringContaining('"admin"') } });
    }
  });

  it("a key of one database sees no other database", async () => {
    expect((await server.get("/dbs", as("shop"))).body.databases.map(({ name }: { name: string }) => name)).toEqual(["shop"]);
    expect((await server.get("/db/shop:main/tables/t/data/a", as("shop"))).status).toBe(200);
    for (const path of ["/dbs/other", "/db/other:main", "/db/other:main/tables/t/data/a", "/db/nothing:main"]) {
      expect(await server.get(path, as("shop"))).toMatchObject({
        status: 403,
        body: { message: expect.stringContaining("not for the database") },
      });
    }
  });

  it("revoking or making a key takes effect in the running server", async () => {
    const made = (await runCommand(["keys", "create", "late", "--scope", "read", "--file", file])).stdout.trim();
    const eventually = (key: string, status: number) =>
      expect.poll(async () => (await server.get("/dbs", bearer(key))).status).toBe(status);
    await eventually(made, 200);
    expect((await runCommand(["keys", "revoke", "late", "--file", file])).code).toBe(0);
    await eventually(made, 401);
    expect((await server.get("/dbs", as("boss"))).status).toBe(200);
  });

  it("an administrator makes, lists and revokes keys while the server runs, with effect at once", async () => {
    const made = await server.post("/keys", { name: "robot", scope: "write", databases: ["shop"] }, as("boss"));
    expect(made).toMatchObject({ status: 201, body: { name: "robot", scope: "write", databases: ["shop"] } });
    const { key } = made.body as { key: string };
    expect((await server.get("/db/shop:main", bearer(key))).status).toBe(200);
    expect((await server.get("/db/other:main", bearer(key))).status).toBe(403);
    const listed = await server.get("/keys", as("boss"));
    expect(listed.body.hasFile).toBe(true);
    expect(listed.body.keys.map(({ name }: { name: string }) => name)).toEqual(["boss", "writer", "reader", "shop", "robot"]);
    expect(listed.body.keys[4]).toEqual({ name: "robot", scope: "write", databases: ["shop"], createdAt: expect.any(String) });
    expect(listed.text).not.toMatch(/[0-9a-f]{64}|lds_/);
    expect(readFileSync(file, "utf8") + server.log).not.toContain(key);
    expect((await server.delete("/keys/robot", as("boss"))).status).toBe(204);
    expect((await server.get("/db/shop:main", bearer(key))).status).toBe(401);
  });

  it.each([
    ["a name that is taken", { name: "reader", scope: "read" }, 422, "already"],
    ["a name that is none", { name: "a b", scope: "read" }, 400, "name"],
    ["a scope that is none", { name: "x", scope: "root" }, 400, "scope"],
    ["no scope", { name: "x" }, 400, "scope"],
    ["an empty list of databases", { name: "x", scope: "read", databases: [] }, 400, "databases"],
    ["too many databases", { name: "x", scope: "read", databases: Array.from({ length: 1_001 }, (_, i) => `d${i}`) }, 400, "at most 1,000"],
    ["more than it takes", { name: "x", scope: "read", key: "mine" }, 400, "key"],
  ])("a key with %s is not made", async (_what, body, status, said) => {
    const before = readFileSync(file, "utf8");
    const answer = await server.post("/keys", body, as("boss"));
    expect(answer).toMatchObject({ status, body: { message: expect.stringContaining(said) } });
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("only an administrator of all databases sees keys, and nobody can revoke the key of the request itself", async () => {
    const limited = (await server.post("/keys", { name: "limited", scope: "admin", databases: ["shop"] }, as("boss"))).body.key as string;
    for (const headers of [as("reader"), as("writer"), bearer(limited)]) {
      expect((await server.get("/keys", headers)).status).toBe(403);
      expect((await server.post("/keys", { name: "x", scope: "admin" }, headers)).status).toBe(403);
      expect((await server.delete("/keys/boss", headers)).status).toBe(403);
      expect((await server.get("/backups", headers)).status).toBe(403);
    }
    expect(await server.delete("/keys/boss", as("boss"))).toMatchObject({
      status: 422,
      body: { message: expect.stringContaining("used for this request") },
    });
    expect((await server.delete("/keys/nobody", as("boss"))).status).toBe(404);
    expect((await server.delete("/keys/limited", as("boss"))).status).toBe(204);
  });

  it("the number of keys is limited to a thousand", async () => {
    const text = readFileSync(file, "utf8");
    const { keys: stored } = JSON.parse(text) as { keys: object[] };
    const filled = Array.from({ length: 1_000 - stored.length }, (_, i) => ({ ...stored[0], name: `filler-${i}` }));
    writeFileSync(file, JSON.stringify({ version: 1, keys: [...stored, ...filled] }));
    expect(await server.post("/keys", { name: "x", scope: "read" }, as("boss"))).toMatchObject({
      status: 422,
      body: { message: expect.stringContaining("1000 keys") },
    });
    writeFileSync(file, text);
    const made = await server.post("/keys", { name: "x", scope: "read" }, as("boss"));
    expect(made.status).toBe(201);
    await server.delete("/keys/x", as("boss"));
  });

  it("backups are listed, newest first, and nothing else in the folder", async () => {
    expect((await server.get("/backups", as("boss"))).body).toEqual({ backups: [], isRunning: false });
    expect(await server.post("/backups", { path: "/tmp/mine" }, as("boss"))).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining("path") },
    });
    expect((await server.get("/backups", as("boss"))).body.backups).toEqual([]);
    const { path } = (await server.post("/backups", undefined, as("boss"))).body as { path: string };
    mkdirSync(join(path, "..", "backup-2020-01-02T03-04-05-678Z"));
    mkdirSync(join(path, "..", "backup-2021-01-02T03-04-05-678Z.part-x"));
    const { backups } = (await server.get("/backups", as("boss"))).body as { backups: { name: string; createdAt: string }[] };
    expect(backups).toEqual([
      { name: basename(path), createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) },
      { name: "backup-2020-01-02T03-04-05-678Z", createdAt: "2020-01-02T03:04:05.678Z" },
    ]);
  });

  it("an unreadable key file leaves the keys as they were", async () => {
    const text = readFileSync(file, "utf8");
    writeFileSync(file, "{ half");
    await expect.poll(() => server.log).toContain("key file cannot be read");
    expect((await server.get("/dbs", as("boss"))).status).toBe(200);
    expect((await server.get("/dbs")).status).toBe(401);
    writeFileSync(file, text);
  });

  it("errors of the commands are reported", async () => {
    expect(await runHere(["keys", "create", "boss", "--scope", "read", "--file", file])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("already"),
    });
    expect(await runHere(["keys", "create", "x", "--scope", "root", "--file", file])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("read, write, admin"),
    });
    const databases = Array.from({ length: 1_001 }, (_, i) => ["--database", `d${i}`]).flat();
    expect(await runHere(["keys", "create", "x", "--scope", "read", ...databases, "--file", file])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("limited to 1000 at most"),
    });
    expect(await runHere(["keys", "revoke", "nobody", "--file", file])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("nobody"),
    });
    expect(await runHere(["keys", "list", "--file", join(folder, "none.json")])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("none.json"),
    });
  });
});
