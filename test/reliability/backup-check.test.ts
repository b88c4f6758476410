/**
 * `lodestone backup` of a running server, `restore` into a new directory, and `check` of both; data
 * directories of this format, and of a future one.
 */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runHere } from "../support/run-here.ts";
import { runCommand, startServer, TestServer } from "../support/server.ts";

const TABLE = "/db/kept:main/tables/things";
const COUNT = 1_200; // enough that the search store writes a snapshot

describe("A data directory", () => {
  let server: TestServer;
  let root: string;
  let restored: string;
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), "lodestone-kept-"));
    restored = join(root, "restored");
    server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
    await server.put("/db/kept:main");
    await server.put(TABLE, {
      columns: [
        { name: "n", type: "int" },
        { name: "v", type: "vector", vector: { dimension: 3 } },
      ],
    });
    for (let from = 0; from < COUNT; from += 600) {
      const records = Array.from({ length: 600 }, (_, i) => ({ id: `r${from + i}`, n: from + i, v: [from + i, 1, 0] }));
      expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
    }
  });
  afterAll(async () => {
    await server.stop();
    rmSync(root, { recursive: true, force: true });
  });

  it("is backed up while it serves, and the backup is restored with everything acknowledged before it", async () => {
    const backup = await runCommand(["backup", "--url", server.url]);
    expect(backup).toMatchObject({ code: 0 });
    const path = backup.stdout.trim();
    expect((await server.delete(`${TABLE}/data/r7`)).status).toBe(204);

    expect(await runCommand(["restore", path, "--data-dir", restored])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 branch into"),
    });
    const copy = new TestServer({ dataDir: restored, env: { LODESTONE_LOG_LEVEL: "warn" } });
    try {
      await copy.start();
      expect((await copy.get(`${TABLE}/data/r7`)).body).toMatchObject({ id: "r7", n: 7, v: [7, 1, 0] });
      const request = { column: "v", queryVector: [7, 1, 0], similarityFunction: "l2", size: 1, consistency: "strong" };
      expect((await copy.post(`${TABLE}/vectorSearch`, request)).body).toEqual({ totalCount: COUNT, results: [{ id: "r7", score: 1 }] });
    } finally {
      await copy.end("SIGTERM");
    }
    const again = await runCommand(["restore", path, "--data-dir", restored]);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("is not empty") });
    expect(await runCommand(["restore", root, "--data-dir", join(root, "x")])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is not a backup"),
    });
    expect(existsSync(join(root, "x"))).toBe(false);
  });

  it("is independent once restored: search snapshots of the original are not trusted", async () => {
    const original = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
    const copy = new TestServer({ dataDir: join(root, "second-life"), env: { LODESTONE_LOG_LEVEL: "warn" } });
    const nearest = (to: number) => ({ column: "v", queryVector: [to, 1, 0], similarityFunction: "l2", size: 3, consistency: "strong" });
    const insert = async (server: TestServer, prefix: string, from: number, count: number) => {
      const records = Array.from({ length: count }, (_, i) => ({ id: `${prefix}${i}`, n: from + i, v: [from + i, 1, 0] }));
      const inserted = await server.post(`${TABLE}/bulk`, { records });
      expect(inserted.status).toBe(200);
    };
    try {
      await original.put("/db/kept:main");
      const columns = [
        { name: "n", type: "int" },
        { name: "v", type: "vector", vector: { dimension: 3 } },
      ];
      await original.put(TABLE, { columns });
      await insert(original, "a", 0, 1_000);
      await insert(original, "b", 1_000, 200);
      const backup = (await runCommand(["backup", "--url", original.url])).stdout.trim();
      // Records that only the original has, and records that only it has lost; its snapshot contains both.
      await insert(original, "only-original", 5_000, 10);
      expect((await original.delete(`${TABLE}/data/a7`)).status).toBe(204);
      await original.post(`${TABLE}/vectorSearch`, nearest(0));
      await original.end("SIGTERM");

      expect(await runCommand(["restore", backup, "--data-dir", copy.dataDir])).toMatchObject({ code: 0 });
      // The copy runs until its transactions have passed the position of that snapshot.
      await copy.start();
      for (let i = 0; i < 30; i++) expect((await copy.put(`${TABLE}/data/a${i}`, { n: -i, v: [-100 - i, 1, 0] })).status).toBe(200);
      await copy.end("SIGKILL");
      rmSync(join(copy.dataDir, "search"), { recursive: true, force: true });
      cpSync(join(original.dataDir, "search"), join(copy.dataDir, "search"), { recursive: true });
      await copy.start();
      expect((await copy.post(`${TABLE}/vectorSearch`, nearest(5_003))).body).toMatchObject({
        totalCount: COUNT,
        results: [{ id: "b199" }, { id: "b198" }, { id: "b197" }],
      });
      expect((await copy.post(`${TABLE}/vectorSearch`, nearest(-107))).body.results).toEqual([
        { id: "a7", score: 1 },
        { id: "a6", score: 0.5 },
        { id: "a8", score: 0.5 },
      ]);
    } finally {
      await copy.end("SIGTERM");
      await original.stop();
    }
  });

  it("is checked, including its search snapshot; a damaged snapshot is detected and not used", async () => {
    expect(await runCommand(["check", "--data-dir", server.dataDir])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is in use"),
    });
    await server.end("SIGTERM");
    const check = await runCommand(["check", "--data-dir", server.dataDir]);
    expect(check.stderr).toBe("");
    expect(check.stdout).toBe(`kept:main: 1 table, ${COUNT - 1} records; search snapshot: sound\nEverything is as it should be.\n`);
    expect(check.code).toBe(0);

    const folder = join(server.dataDir, "search");
    const file = join(folder, readdirSync(folder).find((name) => name.endsWith(".snapshot"))!);
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1]! ^= 0x10;
    writeFileSync(file, bytes);
    const damaged = await runCommand(["check", "--data-dir", server.dataDir]);
    expect(damaged.stdout).toContain("search snapshot: damaged (");
    await server.start();
    const request = { column: "v", queryVector: [7, 1, 0], similarityFunction: "l2", size: 1, consistency: "strong" };
    expect((await server.post(`${TABLE}/vectorSearch`, request)).body).toEqual({
      totalCount: COUNT - 1,
      results: [{ id: "r6", score: 0.5 }],
    });
    await server.end("SIGTERM");
  });

  it("carries its format: this one opens, a newer one is refused and left as it is", async () => {
    const marker = join(restored, "lodestone.json");
    const written = readFileSync(marker, "utf8");
    expect(JSON.parse(written)).toMatchObject({ format: 1 });
    const newer = `${JSON.stringify({ ...JSON.parse(written), format: 2 })}\n`;
    writeFileSync(marker, newer);
    const refused = await runCommand(["serve", "--port", "0", "--data-dir", restored]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/has format 2; this version of Lodestone reads format 1/) });
    expect(readFileSync(marker, "utf8")).toBe(newer);
    writeFileSync(marker, written);
    expect(await runCommand(["check", "--data-dir", restored])).toMatchObject({ code: 0 });
  });

  it("is not restored into itself, into a data directory, or from a directory in use", async () => {
    await server.start();
    const backup = (await runCommand(["backup", "--url", server.url])).stdout.trim();
    const link = join(root, "link");
    symlinkSync(server.dataDir, link);
    const before = readdirSync(server.dataDir, { recursive: true }).filter((name) => !String(name).includes("pg_wal"));
    for (const [from, to, why] of [
      [backup, join(backup, "x"), "contain each other"],
      [backup, join(backup, "postgres", "base", "x"), "contain each other"],
      [backup, join(server.dataDir, "x"), "inside the data directory"],
      [backup, join(server.dataDir, "postgres", "x"), "inside the data directory"],
      [backup, join(link, "deep", "er"), "inside the data directory"],
      [server.dataDir, join(root, "of-live"), "running server"],
    ] as const) {
      const refused = await runHere(["restore", from, "--data-dir", to]);
      expect([to, refused.code, refused.stderr]).toEqual([to, 1, expect.stringContaining(why)]);
      expect(existsSync(to)).toBe(false);
    }
    expect(readdirSync(server.dataDir, { recursive: true }).filter((name) => !String(name).includes("pg_wal"))).toEqual(before);
    await server.end("SIGTERM");
  });

  it("is checked to the end when some of its pages are damaged: the fault is named, and intact records are counted", async () => {
    const damaged = await startServer();
    const dataDir = join(root, "damaged");
    try {
      for (const branch of ["hurt", "sound"]) {
        await damaged.put(`/db/pages:${branch}`);
        for (const table of ["a", "b"]) {
          await damaged.put(`/db/pages:${branch}/tables/${table}`, { columns: [{ name: "s", type: "text" }] });
          const records = Array.from({ length: 200 }, () => ({ s: `${branch}-${table} ${"filler ".repeat(20)}` }));
          await damaged.post(`/db/pages:${branch}/tables/${table}/bulk`, { records });
        }
      }
      await damaged.end("SIGTERM");
      cpSync(damaged.dataDir, dataDir, { recursive: true });
    } finally {
      await damaged.stop();
    }
    const file = readdirSync(join(dataDir, "postgres", "base"), { recursive: true })
      .map((name) => join(dataDir, "postgres", "base", String(name)))
      .find((path) => statSync(path).isFile() && readFileSync(path).includes("hurt-a filler"))!;
    const bytes = readFileSync(file);
    bytes.fill(0xa5, 8192, 8192 + 64);
    writeFileSync(file, bytes);
    const check = await runCommand(["check", "--data-dir", dataDir]);
    expect(check.stdout).toMatch(/fault: a The table cannot be read completely: invalid page in block 1/);
    expect(check.stdout).toMatch(/^pages:sound: 2 tables, 400 records/m);
    expect(check.stderr).toMatch(/^lodestone: \d faults? w(as|ere) found\.\n$/);
    expect(check.code).toBe(1);
    // Even when the catalog itself, or the database's control file, is lost, there is one clear message.
    writeFileSync(join(dataDir, "postgres", "global", "pg_control"), Buffer.alloc(8192, 0xa5));
    const lost = await runCommand(["check", "--data-dir", dataDir]);
    expect(lost.stderr).toMatch(/^lodestone: The database cannot be opened: [^\n]*\n$/);
    expect(lost.code).toBe(1);
  });
});
