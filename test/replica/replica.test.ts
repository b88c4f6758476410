/** Replicas of a real server's table: first load, changes, filters, restarts, and what they refuse. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { VectorIndex } from "../../src/core/vector-index.ts";
import { encodeFrame } from "../../src/frames/frames.ts";
import { FolderReplicaStore } from "../../src/library/replica/folder-replica-store.ts";
import { Replica } from "../../src/library/replica/replica.ts";
import type { ReplicaOptions, ReplicaStatus } from "../../src/library/replica/replica-options.ts";
import { TextColumns } from "../../src/library/text-columns.ts";
import { referenceSearch } from "../reference.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { startServer, type TestServer } from "../support/server.ts";

const TABLE = "/db/live:main/tables/things";

describe("a replica", () => {
  let server: TestServer;
  const open: Replica[] = [];
  beforeAll(async () => {
    server = await startServer();
    await server.put("/db/live:main");
    const columns = [
      { name: "v", type: "vector", vector: { dimension: 4 } },
      { name: "n", type: "int" },
      { name: "name", type: "string" },
      { name: "tags", type: "multiple" },
    ];
    expect((await server.put(TABLE, { columns })).status).toBe(201);
    const records = Array.from({ length: 500 }, (_, i) => recordOf(i));
    expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
  });
  afterAll(() => server.stop());
  afterEach(async () => {
    for (const replica of open.splice(0)) await replica.close();
  });

  const recordOf = (i: number) => ({
    id: `r${i}`,
    v: i % 10 === 0 ? null : [Math.sin(i), Math.cos(i), i / 100, 1],
    n: i,
    name: `thing ${i}`,
    tags: ["a", `t${i % 3}`],
  });
  const replicaOf = async (more: Partial<ReplicaOptions> = {}): Promise<Replica> => {
    // A server that is started again has another port.
    const toServer: typeof fetch = (input, init) => fetch(String(input).replace(/^http:\/\/127\.0\.0\.1:\d+/, server.url), init);
    const replica = await Replica.open({
      fetch: toServer,
      url: `${server.url}/db/live:main`,
      table: "things",
      columns: ["v", "n", "name", "tags"],
      ...more,
    });
    open.push(replica);
    return replica;
  };
  const query = [0.5, 0.1, 0.3, 1];

  /** What the server says, compared with the replica. */
  async function expectSame(replica: Replica, filter?: object): Promise<void> {
    await replica.current();
    for (const similarityFunction of ["cosineSimilarity", "l2", "l1"] as const) {
      const request = { column: "v", queryVector: query, similarityFunction, size: 20, consistency: "strong", ...(filter && { filter }) };
      const { body } = await server.post(`${TABLE}/vectorSearch`, request);
      const own = await replica.search(query, { k: 20, similarity: similarityFunction });
      expect(own).toEqual(body);
    }
  }

  it("holds what the server has, and follows inserts, updates and deletes", async () => {
    const replica = await replicaOf();
    expect(replica.size).toBe(500);
    expect(await replica.get("r7")).toEqual({ id: "r7", n: 7, name: "thing 7", tags: ["a", "t1"] });
    await expectSame(replica);
    await server.request("PATCH", `${TABLE}/data/r7`, { name: "seven", v: query });
    await server.request("DELETE", `${TABLE}/data/r8`);
    await server.put(`${TABLE}/data/new`, { v: [1, 1, 1, 1], n: 2 ** 53 });
    await expectSame(replica);
    expect(await replica.get("r7")).toMatchObject({ name: "seven" });
    expect(await replica.get("r8")).toBeUndefined();
    expect((await replica.search(query, { k: 1 })).results[0]!.id).toBe("r7");
    await server.post("/db/live:main/sql", { statement: 'DELETE FROM "things" WHERE "n" BETWEEN 100 AND 199' });
    await expectSame(replica);
    expect(replica.status.phase).toBe("current");
  });

  it("with the header of a write, has that write", async () => {
    const replica = await replicaOf();
    await replica.current();
    for (let i = 0; i < 20; i++) {
      const { headers } = await server.put(`${TABLE}/data/w${i}`, { v: [i, 0, 0, 1], n: i });
      expect(headers["lodestone-read"]).toMatch(/^[0-9a-f]{8}~\d+$/);
      await replica.current(headers["lodestone-read"] as string);
      expect(await replica.get(`w${i}`)).toMatchObject({ n: i });
    }
  });

  it("of a part: records come and go as they pass the filter", async () => {
    const filter = { tags: { $includes: "t2" }, n: { $lt: 400 } };
    const replica = await replicaOf({ filter });
    await expectSame(replica, filter);
    const before = replica.size;
    await server.request("PATCH", `${TABLE}/data/r2`, { tags: ["a"] });
    await server.request("PATCH", `${TABLE}/data/r3`, { tags: ["t2"] });
    await expectSame(replica, filter);
    expect([replica.size - before, await replica.get("r2"), (await replica.get("r3"))?.id]).toEqual([0, undefined, "r3"]);
  });

  it("is there at once at the next start, and fetches the difference, also from a server that was started again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lodestone-replica-"));
    try {
      const store = new FolderReplicaStore(folder);
      const first = await replicaOf({ store });
      await server.put(`${TABLE}/data/kept`, { v: [1, 2, 3, 4], n: 1 });
      await expectSame(first);
      await first.close();
      await server.put(`${TABLE}/data/meanwhile`, { v: [4, 3, 2, 1], n: 1 });
      const phases: ReplicaStatus[] = [];
      const second = await replicaOf({ store, onStatus: (status) => phases.push(status) });
      expect(await second.get("kept")).toBeDefined();
      await expectSame(second);
      expect(await second.get("meanwhile")).toBeDefined();
      expect(phases.map(({ phase }) => phase)).not.toContain("loading");
      await server.end("SIGTERM");
      await server.start();
      await server.put(`${TABLE}/data/later`, { v: [4, 3, 2, 1], n: 1 });
      await expect.poll(() => second.get("later"), { timeout: LIMIT_MS }).toBeDefined();
      await expectSame(second);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("keeps a change before it shows it, and nothing with a gap when the store fails", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lodestone-replica-"));
    try {
      const store = new FolderReplicaStore(folder);
      let isFull = false;
      const append = store.append.bind(store);
      const shown: (readonly string[])[] = [];
      let shownBefore = 0;
      store.append = async (...args) => {
        if (isFull) throw new Error("no room");
        shownBefore = shown.length;
        await append(...args);
      };
      const replica = await replicaOf({ store, onChange: ({ upserted }) => shown.push(upserted) });
      await server.put(`${TABLE}/data/shown`, { v: [1, 2, 3, 4], n: 1 });
      await expect.poll(() => shown.flat(), { timeout: LIMIT_MS }).toContain("shown");
      expect(shownBefore).toBe(shown.length - 1);
      isFull = true;
      await server.put(`${TABLE}/data/lost`, { v: [1, 2, 3, 4], n: 2 });
      await replica.current();
      isFull = false;
      // Kept alone, this would look like the whole table.
      await server.put(`${TABLE}/data/after`, { v: [1, 2, 3, 4], n: 3 });
      await replica.current();
      await replica.close();
      const phases: string[] = [];
      const next = await replicaOf({ store, onStatus: ({ phase }) => phases.push(phase) });
      expect(phases).toContain("loading");
      // The server has a snapshot from before them.
      expect([await next.get("lost"), await next.get("after")]).toMatchObject([{ n: 2 }, { n: 3 }]);
      await expectSame(next);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("does not go back when it has to begin anew, nor loads twice because the server was away meanwhile", async () => {
    const told: string[] = [];
    const shown: unknown[] = [];
    let replica: Replica | undefined;
    const changesOf = (init: { body?: string } | undefined) => JSON.parse(init?.body ?? "{}") as { position?: string; wait?: number };
    const restarting: typeof fetch = async (input, init) => {
      const { position, wait } = changesOf(init as { body?: string });
      const url = String(input).replace(/^http:\/\/127\.0\.0\.1:\d+/, server.url);
      if (position === undefined) {
        if (init?.method === undefined) told.push("snapshot");
        return fetch(url, init);
      }
      if (wait === undefined && told.length === 1) {
        told.push("restart");
        return new Response(encodeFrame({ type: "restart", reason: "The position is too old." }));
      }
      if (wait !== undefined && told.length === 3) {
        told.push("away");
        throw new TypeError("fetch failed");
      }
      return fetch(url, init);
    };
    await replicaOf();
    await server.put(`${TABLE}/data/seen`, { v: [1, 2, 3, 4], n: 5 });
    replica = await replicaOf({
      fetch: restarting,
      onStatus: ({ phase }) => replica !== undefined && phase === "behind" && shown.push(replica.get("seen")),
    });
    expect(await replica.get("seen")).toMatchObject({ n: 5 });
    await replica.current();
    await expect.poll(() => shown.length, { timeout: LIMIT_MS }).toBeGreaterThan(0);
    expect(await Promise.all(shown)).toMatchObject([{ n: 5 }]);
    expect(told).toEqual(["snapshot", "restart", "snapshot", "away"]);
    await expectSame(replica);
  });

  it("searches words, and words and a vector, also without a vector column", async () => {
    const stemmer = (word: string) => word.replace(/s$/, "");
    const [whole, words] = [await replicaOf({ words: { stemmer } }), await replicaOf({ words: true, columns: ["name", "n"] })];
    const columns = new TextColumns({ n: "int", name: "string", tags: "multiple" } as const);
    const index = await VectorIndex.create({ dimension: 4, columns });
    await server.request("PATCH", `${TABLE}/data/r11`, { name: "a rare word", n: 11 });
    await whole.current();
    await words.current();
    const { body } = await server.post(`${TABLE}/query`, { columns: ["v", "n", "name", "tags"], page: { size: 1000 } });
    for (const { id, v, n, name, tags } of body.records) {
      index.upsert(id, v ?? [0, 0, 0, 0], { n, name, tags });
    }
    expect((await words.search({ text: "rares words", fuzziness: 0 })).results).toEqual([]);
    expect((await words.search({ text: "rare", columns: ["n"] })).results).toMatchObject([{ id: "r11", columns: { n: 11 } }]);
    expect((await whole.search({ text: "rares words", fuzziness: 0 })).results.map(({ id }) => id)).toEqual(["r11"]);
    const request = { text: "thing 12", fuzziness: 1, k: 30, columns: ["name"] } as const;
    expect(await words.search(request)).toEqual(index.search({ ...request, target: ["name"] }));
    expect(await whole.search({ ...request, stemmer: undefined })).toEqual(index.search({ ...request, stemmer }));
    index.free();
  });

  it("begins anew when its columns are not those of the server any more", async () => {
    const replica = await replicaOf({ columns: ["v", "name"] });
    await server.request("PATCH", `${TABLE}/columns/name`, { name: "title" });
    await expect.poll(() => replica.status.phase, { timeout: LIMIT_MS }).toBe("failed");
    expect(replica.status.reason).toMatch(/has no column "name"/);
    await server.request("PATCH", `${TABLE}/columns/title`, { name: "name" });
  });

  it.each([
    [{ table: "nothing" }, /nothing/],
    [{ columns: ["v", "absent"] }, /columns\[1\]: table "things" has no column "absent"/],
    [{ columns: ["v", "v"] }, /named twice/],
    [{ filter: { absent: 1 } }, /absent/],
  ])("says why it cannot be opened: %j", async (more, message) => {
    await expect(replicaOf(more)).rejects.toThrow(message);
  });

  it("is an oracle's answer", async () => {
    const replica = await replicaOf();
    await replica.current();
    const { body } = await server.post(`${TABLE}/query`, { columns: ["v"], page: { size: 200 } });
    const vectors = body.records
      .filter(({ v }: { v: unknown }) => v !== null && v !== undefined)
      .map(({ id, v }: { id: string; v: number[] }) => [id, v]);
    const ids = new Set(vectors.map(([id]: [string]) => id));
    const filter = (id: string) => ids.has(id);
    const own = await replica.search(query, { k: 5, filter });
    expect(own.results).toEqual(referenceSearch(vectors, query, { k: 5, similarity: "cosineSimilarity" }).results);
  });
});
