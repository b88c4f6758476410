import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { partIndexOf } from "../../src/records/feed/part.ts";
import { encodeCall } from "../../src/search/parts/part-messages.ts";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import { runCommand, type TestServer } from "../support/server.ts";
import { PartsCluster, SECRET } from "./parts-cluster.ts";

const TABLE = "/db/db:main/tables/t";
const SEARCH = `${TABLE}/vectorSearch`;
const ASK = { column: "v", queryVector: [1, 0], size: 100 };
const RECORDS = 40;

async function fill(server: TestServer): Promise<void> {
  await server.put("/db/db:main");
  const columns = [
    { name: "v", type: "vector", vector: { dimension: 2 } },
    { name: "n", type: "int" },
  ];
  expect((await server.put(TABLE, { columns })).status).toBe(201);
  const records = Array.from({ length: RECORDS }, (_, n) => ({ id: `r${n}`, v: [1, n], n }));
  expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
}

describeWith("postgresql", "Search parts on bad days", (bin) => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres(bin);
  });
  afterAll(() => postgres.stop());

  describe("a part on two servers", () => {
    let cluster: PartsCluster;
    let asked: TestServer;
    let replicas: readonly TestServer[];
    beforeAll(async () => {
      cluster = await PartsCluster.start(postgres, { replicas: [1, 2] });
      asked = cluster.parts[0]![0]!;
      replicas = cluster.parts[1]!;
      await fill(asked);
    });
    afterAll(() => cluster.stop());

    const both = () => Promise.all([asked.post(SEARCH, ASK), asked.post(SEARCH, { ...ASK, consistency: "strong" })]);
    const whole = async (): Promise<string> => (await cluster.whole.post(SEARCH, { ...ASK, consistency: "strong" })).text;

    it("one of which is killed: the other answers", async () => {
      const expected = await whole();
      await expect.poll(async () => (await asked.post(SEARCH, ASK)).text).toBe(expected);
      await replicas[0]!.end("SIGKILL");
      for (let n = 0; n < 5; n++) for (const { status, text } of await both()) expect([status, text]).toEqual([200, expected]);
    });

    it("both of which are killed: 503, never a partial result, and everything else continues", async () => {
      await replicas[1]!.end("SIGKILL");
      for (const { status, headers, body } of await both()) {
        expect([status, body.message]).toEqual([503, expect.stringContaining("Part 1/2 of the vectors cannot be searched")]);
        expect(Number(headers["retry-after"])).toBeGreaterThan(0);
      }
      expect((await asked.get(`${TABLE}/data/r1`)).status).toBe(200);
      expect((await asked.put(`${TABLE}/data/later`, { v: [1, 1], n: 1 })).status).toBe(201);
      await expect.poll(async () => (await asked.get("/readyz")).body.part).toEqual({ index: 0, of: 2, missing: [1] });
      expect((await asked.get("/metrics")).text).toMatch(/^lodestone_search_parts_missing 1$/m);
      expect(asked.log).not.toContain(SECRET);
    });

    it("one of which comes back: it has what was written meanwhile", async () => {
      await replicas[0]!.start();
      await cluster.untilReady([replicas[0]!]);
      const expected = await whole();
      expect(JSON.parse(expected).totalCount).toBe(RECORDS + 1);
      for (const { status, text } of await both()) expect([status, text]).toEqual([200, expected]);
    });

    it("one of which hangs: the other answers, within the time limit", async () => {
      await replicas[1]!.start();
      await cluster.untilReady([replicas[1]!]);
      const expected = await whole();
      process.kill(replicas[0]!.pid, "SIGSTOP");
      try {
        for (const { status, text } of await both()) expect([status, text]).toEqual([200, expected]);
        // Both hang: no complete result is possible.
        process.kill(replicas[1]!.pid, "SIGSTOP");
        for (const { status } of await both()) expect(status).toBe(503);
      } finally {
        for (const { pid } of replicas) process.kill(pid, "SIGCONT");
      }
      await expect.poll(async () => (await both()).map(({ text }) => text)).toEqual([expected, expected]);
    });
  });

  describe("strong searches while records change", () => {
    let cluster: PartsCluster;
    beforeAll(async () => {
      cluster = await PartsCluster.start(postgres, { replicas: [1, 1, 1] });
      await fill(cluster.all[0]!);
    });
    afterAll(() => cluster.stop());

    it("are of one position: what one transaction changed in several parts is seen completely or not at all", async () => {
      // Each transaction gives all records of all parts the same number.
      const ids = new Set(Array.from({ length: RECORDS }, (_, n) => partIndexOf(`r${n}`, 3)));
      expect(ids.size).toBe(3);
      let isWriting = true;
      let written = 0;
      const write = async (): Promise<void> => {
        while (isWriting) {
          const answer = await cluster.whole.post("/db/db:main/sql", { statement: 'UPDATE "t" SET "n" = $1', params: [1_000 + written] });
          expect(answer.status).toBe(200);
          written++;
        }
      };
      const writing = write();
      try {
        await expect.poll(() => written).toBeGreaterThan(0);
        for (let round = 0; round < 10; round++) {
          const answers = await Promise.all(
            cluster.all.map(async (server) => {
              const least = 1_000 + written - 1;
              const filter = { n: { $ge: least } };
              const { status, body } = await server.post(SEARCH, { ...ASK, filter, consistency: "strong" });
              return { status, count: body.totalCount as number };
            }),
          );
          for (const { status, count } of answers) {
            expect(status).toBe(200);
            // Acknowledged before the request, so seen by all parts.
            expect(count).toBe(RECORDS);
          }
          // A transaction that was not acknowledged yet: seen in all records or in none.
          const next = 1_000 + written;
          const { body } = await cluster.all[round % 3]!.post(SEARCH, { ...ASK, filter: { n: next }, consistency: "strong" });
          expect([0, RECORDS]).toContain(body.totalCount);
        }
      } finally {
        isWriting = false;
        await writing;
      }
      expect(written).toBeGreaterThan(10);
    });

    it("see each write that was acknowledged before them, whichever server handled it", async () => {
      for (let n = 0; n < 15; n++) {
        const [writer, reader] = [cluster.all[n % 3]!, cluster.all[(n + 1) % 3]!];
        await writer.put(`${TABLE}/data/w${n}`, { v: [1, 0], n: -1 - n });
        const { body } = await reader.post(SEARCH, { ...ASK, filter: { n: -1 - n }, consistency: "strong" });
        expect(body.results.map(({ id }: { id: string }) => id)).toEqual([`w${n}`]);
      }
    });
  });

  describe("strangers", () => {
    let cluster: PartsCluster;
    let server: TestServer;
    const KEY = "an-ordinary-key-of-an-administrator-0123456789";
    beforeAll(async () => {
      cluster = await PartsCluster.start(postgres, { replicas: [1, 1], args: ["--api-key", KEY] });
      server = cluster.all[0]!;
      const keyed = { authorization: `Bearer ${KEY}` };
      await server.put("/db/db:main", undefined, keyed);
      const columns = [{ name: "v", type: "vector", vector: { dimension: 2 } }];
      await server.put(TABLE, { columns }, keyed);
    });
    afterAll(() => cluster.stop());

    const part = { index: 0, of: 2 };
    const search = {
      ref: { database: "db", branch: "main" },
      table: "t",
      request: { column: "v" },
      queries: new Float32Array([1, 0]),
      count: 1,
      maxBytes: 1e6,
      caller: "x",
    };
    const peer = { authorization: `Lodestone-Part ${SECRET}` };
    const ask = (body: Buffer | string, headers: object = peer) => server.post("/internal/part/search", body, { ...headers });

    it("get in neither with a key nor, where keys are required, with the secret", async () => {
      const call = encodeCall({ part, searches: [search] }, 1_000);
      await cluster.untilReady([server]);
      await expect.poll(async () => (await ask(call)).status).toBe(200);
      for (const authorization of [
        undefined,
        `Bearer ${KEY}`,
        `Bearer ${SECRET}`,
        `Lodestone-Part ${KEY}`,
        `Lodestone-Part ${SECRET}x`,
        "Lodestone-Part",
      ]) {
        const headers = authorization === undefined ? {} : { authorization };
        expect((await ask(call, headers)).status).toBe(401);
        expect((await server.get("/internal/part", headers)).status).toBe(401);
      }
      expect((await server.get("/internal/part", peer)).body).toMatchObject({ part, ready: true });
      expect((await server.get("/dbs", peer)).status).toBe(401);
      expect((await server.get("/dbs", { authorization: `Bearer ${SECRET}` })).status).toBe(401);
      expect((await server.get("/openapi.json")).text).not.toContain("internal");
      expect(server.log).not.toContain(SECRET);
      // A server without parts does not have this endpoint at all.
      expect((await cluster.whole.get("/internal/part", { authorization: `Bearer ${KEY}` })).status).toBe(404);
    });

    it("who have the secret get 400 for invalid calls, and the server continues", async () => {
      const header = (change: object): Buffer => {
        const valid = { protocol: 1, limitMs: 1_000, part, searches: [{ ...search, queries: undefined, dimension: 2 }] };
        const json = Buffer.from(JSON.stringify({ ...valid, ...change }));
        const length = Buffer.alloc(4);
        length.writeUInt32LE(json.length);
        return Buffer.concat([length, json, Buffer.alloc(8, 1)]);
      };
      const one = (change: object): object => ({ searches: [{ ...search, queries: undefined, dimension: 2, ...change }] });
      const deep = `${"[".repeat(500)}${"]".repeat(500)}`;
      const hostile: (Buffer | string)[] = [
        "",
        "x",
        Buffer.from([255, 255, 255, 255, 0]),
        Buffer.from([4, 0, 0, 0, 110, 117, 108, 108]),
        header({ protocol: 2 }),
        header({ limitMs: 1e9 }),
        header({ part: { index: 1, of: 2 } }),
        header({ part: { index: 0, of: 3 } }),
        header({ searches: [] }),
        header({ searches: Array(65).fill({}) }),
        header(one({ count: 0 })),
        header(one({ count: 101 })),
        header(one({ dimension: 3 })),
        header(one({ dimension: 1e9, count: 100 })),
        header(one({ dimension: 1 })),
        header(one({ request: { column: "v", filter: JSON.parse(deep) } })),
        header({ snapshot: { id: "'; DROP SCHEMA lodestone CASCADE; --", position: "1:1:" } }),
        header({ snapshot: { id: "00000003-0000001B-1", position: "x" } }),
        header({ snapshot: { id: 1, position: [] } }),
      ];
      for (const body of hostile) {
        const { status, body: answer } = await ask(body);
        // A well-formed request for something unavailable (such as a snapshot that does not exist) gets such
        // an answer; nothing is a fault of the server.
        expect([200, 400, 503]).toContain(status);
        if (status === 400) expect(answer.message).toEqual(expect.any(String));
      }
      expect((await server.request("POST", "/internal/part/search", undefined, { ...peer, "content-length": 100_000_000 })).status).toBe(
        413,
      );
      expect((await server.request("DELETE", "/internal/part", undefined, peer)).status).toBe(405);
      expect((await ask(encodeCall({ part, searches: [search] }, 1_000))).status).toBe(200);
      expect(server.log).not.toContain('"level":50');
    });
  });

  it("a server with invalid settings does not start, and says why", async () => {
    const databaseUrl = await postgres.createDatabase();
    const peers = "http://127.0.0.1:1,http://127.0.0.1:2";
    const wrong: [string[], RegExp][] = [
      [["--search-part", "2/2"], /Expected a part such as 0\/4/],
      [["--search-part", "0/2"], /needs --search-peers/],
      [["--search-peers", peers], /needs --search-part/],
      [["--search-part", "0/3", "--search-peers", peers], /names the servers of 2 parts; --search-part says 3/],
      [["--search-part", "0/2", "--search-peers", "http://user:pw@a,http://b"], /Expected URLs such as/],
      [["--search-part", "0/2", "--search-peers", peers], /needs --search-secret-file/],
      [["--search-part", "0/2", "--search-peers", peers, "--search-secret-file", "/dev/null"], /at least 32 visible/],
    ];
    const tried = wrong.map(async ([args, message]) => {
      const { code, stderr } = await runCommand(["serve", "--port", "0", "--database-url", databaseUrl, ...args]);
      expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
    });
    await Promise.all(tried);
    const { stderr } = await runCommand(["serve", "--port", "0", "--search-part", "0/2", "--search-peers", peers]);
    expect(stderr).toMatch(/needs --database-url/);
  });
});
