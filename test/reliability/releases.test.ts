/** Upgrades: this release opens what earlier ones wrote, and serves one PostgreSQL database beside them. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import { runCommand, type ServerOptions, startServer, type TestServer } from "../support/server.ts";
import { RELEASES, type Release, unpackRelease, WRITTEN } from "./releases.ts";

const BRANCH = "/db/shop:main";
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const byId = (one: { id: string }, other: { id: string }): number => (one.id < other.id ? -1 : 1);

/** Of both branches, as far as every release answers it in the same form. */
async function expectWritten(server: TestServer, headers: Record<string, string>): Promise<void> {
  const ask = async (path: string, body: unknown) => {
    const answer = await server.post(path, body, headers);
    expect(answer, answer.text).toMatchObject({ status: 200 });
    return answer.body;
  };
  for (const branch of [BRANCH, "/db/shop:copy"]) {
    const records: { id: string }[] = [];
    for (let after: string | undefined; ; ) {
      const page = await ask(
        `${branch}/tables/items/query`,
        after === undefined ? { page: { size: 200 } } : { page: { size: 200, after } },
      );
      records.push(...page.records);
      if (page.meta.page.more !== true) break;
      after = page.meta.page.cursor;
    }
    expect(records.sort(byId)).toMatchObject(WRITTEN.toSorted(byId));
    const others = await ask(`${branch}/tables/others/query`, { sort: { id: "asc" } });
    expect(others.records.map(({ id, name }: { id: string; name: string }) => [id, name])).toEqual([
      ["o0", "other 0"],
      ["o1", "other 1"],
      ["o2", "by SQL"],
      ["o9", "by a transaction"],
    ]);
    const linked = WRITTEN.filter(({ other }) => other?.id === "o2");
    const counted = await ask(`${branch}/tables/items/aggregate`, { filter: { "other.name": "by SQL" }, aggs: { n: { count: "*" } } });
    expect(counted.aggs.n).toBe(linked.length);
    const vector = [3, 5, 2, 1];
    const found = await ask(`${branch}/tables/items/vectorSearch`, {
      column: "v",
      queryVector: vector,
      similarityFunction: "l2",
      size: 20,
      filter: { "other.name": "by SQL" },
      consistency: "strong",
    });
    // Squared: exact for these numbers.
    const distance = ({ v }: { v: number[] }): number => v.reduce((sum, x, i) => sum + (x - vector[i]!) ** 2, 0);
    const nearest = linked
      .map(distance)
      .sort((a, b) => a - b)
      .slice(0, 20);
    const vectors = new Map(linked.map((item) => [item.id, item]));
    expect(found.results.map(({ id }: { id: string }) => distance(vectors.get(id)!))).toEqual(nearest);
  }
  const statement = `SELECT count(*) AS n, sum("count") AS sum FROM "items"`;
  const { records } = await ask(`${BRANCH}/sql`, { statement });
  expect(Number(records[0].n)).toBe(WRITTEN.length);
  expect(Number(records[0].sum)).toBe(WRITTEN.reduce((sum, { count }) => sum + count, 0));
}

describe.each(RELEASES)("what release %s wrote", (commit) => {
  let release: Release;
  beforeAll(() => {
    release = unpackRelease(commit);
  });
  afterAll(() => release.remove());

  test("an embedded data directory and its keys; it is checked, written and opened again", async () => {
    const dataDir = join(release.folder, "data");
    expect(await runCommand(["check", "--data-dir", dataDir])).toMatchObject({ code: 0 });
    const server = await startServer({ dataDir, args: ["--key-file", join(release.folder, "keys.json")] });
    try {
      expect(await server.get(BRANCH)).toMatchObject({ status: 401 });
      expect(await server.get("/access", bearer(release.keys.writer))).toMatchObject({ body: { keyName: "writer", scope: "write" } });
      const headers = bearer(release.keys.owner);
      await expectWritten(server, headers);
      expect(await server.put(`${BRANCH}/tables/others/data/new`, { name: "written since" }, headers)).toMatchObject({ status: 201 });
      await server.end("SIGTERM");
      await server.start();
      expect(await server.get(`${BRANCH}/tables/others/data/new`, headers)).toMatchObject({ body: { name: "written since" } });
      await server.delete(`${BRANCH}/tables/others/data/new`, headers);
      await expectWritten(server, headers);
    } finally {
      await server.end("SIGTERM");
    }
    expect(await runCommand(["check", "--data-dir", dataDir])).toMatchObject({ code: 0 });
  });

  test("a backup", async () => {
    const backups = join(release.folder, "data", "backups");
    const dataDir = join(release.folder, "restored");
    const [backup] = readdirSync(backups);
    const restored = await runCommand(["restore", join(backups, backup!), "--data-dir", dataDir]);
    expect(restored, restored.stderr).toMatchObject({ code: 0 });
    const server = await startServer({ dataDir });
    try {
      await expectWritten(server, {});
    } finally {
      await server.end("SIGTERM");
    }
  });

  describeWith("postgresql", "on PostgreSQL", (bin) => {
    test("a database is opened, and served by both releases at once, whichever of them writes", async () => {
      const postgres = await startPostgres(bin);
      const servers: TestServer[] = [];
      const start = async (options: ServerOptions): Promise<TestServer> => {
        const server = await startServer(options);
        servers.push(server);
        return server;
      };
      try {
        const databaseUrl = await postgres.createDatabase();
        const dump = join(release.folder, "dump.sql");
        // A dump of one database has no roles, so its GRANTs fail. The server that opens it makes the roles again.
        execFileSync(join(bin, "psql"), ["--quiet", "--file", dump, databaseUrl], { stdio: "ignore" });
        const before = await start({ databaseUrl, main: release.main, args: ["--data-dir", join(release.folder, "server-data")] });
        const now = await start({ databaseUrl, args: ["--data-dir", join(release.folder, "snapshots-of-its-own")] });
        for (const server of [now, before]) await expectWritten(server, {});
        const strong = { column: "v", queryVector: [900, 900, 900, 900], similarityFunction: "l2", size: 1, consistency: "strong" };
        for (const [n, [writer, reader]] of (
          [
            [before, now],
            [now, before],
          ] as const
        ).entries()) {
          const id = `both${n}`;
          const record = { v: [900, 900, 900, 900], title: id, count: 1, other: "o9" };
          expect(await writer.put(`${BRANCH}/tables/items/data/${id}`, record)).toMatchObject({ status: 201 });
          expect(await reader.get(`${BRANCH}/tables/items/data/${id}`)).toMatchObject({ body: { title: id, other: { id: "o9" } } });
          expect((await reader.post(`${BRANCH}/tables/items/vectorSearch`, strong)).body.results).toMatchObject([{ id }]);
          expect(await reader.patch(`${BRANCH}/tables/items/data/${id}`, { count: { $increment: 1 } })).toMatchObject({ status: 200 });
          expect(await writer.get(`${BRANCH}/tables/items/data/${id}`)).toMatchObject({ body: { count: 2 } });
          expect(await writer.post(`${BRANCH}/tables/items/columns`, { name: `by${n}`, type: "int" })).toMatchObject({ status: 200 });
          await expect.poll(async () => (await reader.patch(`${BRANCH}/tables/items/data/${id}`, { [`by${n}`]: 7 })).status).toBe(200);
          expect((await writer.post(`${BRANCH}/tables/items/query`, { filter: { [`by${n}`]: 7 } })).body.records).toMatchObject([{ id }]);
          expect((await reader.delete(`${BRANCH}/tables/items/data/${id}`)).status).toBe(204);
          expect((await writer.post(`${BRANCH}/tables/items/vectorSearch`, strong)).body.results).not.toMatchObject([{ id }]);
        }
        for (const server of [now, before]) await expectWritten(server, {});
      } finally {
        for (const server of servers) await server.stop();
        await postgres.stop();
      }
    });
  });
});
