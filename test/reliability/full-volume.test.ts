/**
 * An embedded server whose whole volume is filled by others, down to the last byte: it reads, searches and says why it
 * does not write, also after a kill, and writes again by itself when there is room.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { TestServer } from "../support/server.ts";
import { copyTemplate } from "../support/server-template.ts";

const TABLE = "/db/full:main/tables/things";
const ROWS = 300;

describeWith("containers", "an embedded server whose volume is full", () => {
  let volume: string;
  let server: TestServer;
  beforeAll(async () => {
    volume = mkdtempSync(join(tmpdir(), "lodestone-volume-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=320m", "tmpfs", volume]);
    const dataDir = join(volume, "data");
    copyTemplate(dataDir);
    server = new TestServer({ dataDir });
    await server.start();
    await server.put("/db/full:main");
    const columns = [
      { name: "n", type: "int" },
      { name: "filler", type: "text" },
      { name: "vector", type: "vector", vector: { dimension: 2 } },
    ];
    expect((await server.put(TABLE, { columns })).status).toBe(201);
    const records = Array.from({ length: ROWS }, (_, n) => ({ id: `r${n}`, n, filler: "x".repeat(2_000), vector: [n, 0] }));
    expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
  });
  afterAll(async () => {
    await server.end("SIGKILL");
    execFileSync("umount", [volume]);
    rmSync(volume, { recursive: true, force: true });
  });

  const freeBytes = (): number => {
    const { bavail, bsize } = statfsSync(volume);
    return bavail * bsize;
  };
  const fill = (): void => {
    const names = [2 ** 22, 2 ** 12];
    for (const size of names) {
      try {
        for (let n = 0; ; n++) writeFileSync(join(volume, `others-${size}-${n}`), Buffer.alloc(size, 1));
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
      }
    }
    expect(freeBytes()).toBe(0);
  };
  const makeRoom = (): void => void execFileSync("find", [volume, "-maxdepth", "1", "-name", "others-*", "-delete"]);
  const insert = (id: string) => server.put(`${TABLE}/data/${id}?createOnly=true`, { n: -1, filler: "new", vector: [-1, 0] });
  const timesLogged = (text: string): number => server.log.split("\n").filter((line) => line.includes(text)).length;

  async function expectReads(rows: number): Promise<void> {
    const counted = await server.post("/db/full:main/sql", { statement: 'SELECT count(*) AS n, sum(length("filler")) AS l FROM "things"' });
    expect([counted.status, Number(counted.body.records[0].n)]).toEqual([200, rows]);
    const page = await server.post(`${TABLE}/query`, { sort: { n: "desc" }, page: { size: 20 } });
    expect([page.status, page.body.records[0].n]).toEqual([200, ROWS - 1]);
    const search = { column: "vector", queryVector: [200, 0], similarityFunction: "l2", size: 1, consistency: "strong" };
    const found = await server.post(`${TABLE}/vectorSearch`, search);
    expect([found.status, found.body.results?.[0].id]).toEqual([200, "r200"]);
  }

  it("reads, searches, and says why it does not write; then writes again", async () => {
    let rows = ROWS;
    fill();
    const statuses: number[] = [];
    for (let attempt = 0; attempt < 5; attempt++) {
      const { status, body } = await insert(`new${attempt}`);
      statuses.push(status);
      expect(body.message).toMatch(/^The disk of the database has less than 64 MB left, so nothing is written/);
    }
    expect(statuses).toEqual([503, 503, 503, 503, 503]);
    expect((await server.put("/db/full:other")).status).toBe(503);
    expect((await server.post("/db/full:main/sql", { statement: "DELETE FROM things" })).status).toBe(503);
    for (let round = 0; round < 3; round++) await expectReads(rows);
    const ready = await server.get("/readyz");
    expect([ready.status, ready.body.status, ready.body.message]).toEqual([200, "read only", expect.stringContaining("less than 64 MB")]);
    expect(timesLogged("Writing to the disk of the embedded database fails")).toBe(1);

    // A kill, and a start with nothing but what the reserve held.
    await server.end("SIGKILL");
    await server.start();
    await expectReads(rows);
    fill();
    await expectReads(rows);
    expect((await insert("after-kill")).status).toBe(503);

    makeRoom();
    await expect.poll(async () => (await server.get("/readyz")).body.status).toBe("ready");
    expect((await insert("again")).status).toBe(201);
    rows++;
    await expectReads(rows);
    expect(timesLogged("Writing to the disk of the embedded database works again")).toBe(1);
    expect(await server.end("SIGTERM")).toBe(0);
    await server.start();
    await expectReads(rows);
  });
});
