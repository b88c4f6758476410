/**
 * An embedded database that takes long to open, or to close, while maintenance looks all the time: the directory has
 * one thread at most, kills in between lose nothing, and the process ends when it is told to.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { constants, type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UNINTERRUPTIBLE } from "../records/sql/attacks.ts";
import { TestServer } from "../support/server.ts";

/** A URL: a path with a space would be two words in NODE_OPTIONS. */
const COUNTING = new URL("../support/count-database-threads.mjs", import.meta.url).href;
const TABLE = "/db/slow:main/tables/things";

describe("a server whose database is slow", () => {
  let folder: string;
  let pipe: string;
  let server: TestServer | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "lodestone-slow-"));
    pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
  });
  afterEach(async () => {
    await server?.end("SIGKILL");
    rmSync(server?.dataDir ?? folder, { recursive: true, force: true });
    rmSync(folder, { recursive: true, force: true });
  });

  const serverAt = (point: string, args: readonly string[] = []): TestServer =>
    new TestServer({ args, env: { NODE_OPTIONS: `--import ${COUNTING}`, LODESTONE_HOLD_AT: `${point}:${pipe}` } });

  /** Resolves when a thread has reached the point; it goes on when the handle is closed. */
  async function reached(): Promise<FileHandle> {
    let handle: FileHandle | undefined;
    // Without a reader the pipe cannot be opened; a call that waited for one could not be given up.
    const tryOpening = async (): Promise<boolean> => {
      handle = await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => undefined);
      return handle !== undefined;
    };
    await expect.poll(tryOpening).toBe(true);
    return handle!;
  }

  const threadCounts = (): number[] => [...server!.log.matchAll(/database threads: (\d)/g)].map(([, count]) => Number(count));

  const turns = (): number => server!.log.split("a hundred turns").length;

  it("has one database thread at a time, and keeps what it acknowledged through kills", async () => {
    server = serverAt("session-opening");
    let rows = 0;
    for (let life = 0; life < 3; life++) {
      const started = server.start();
      const held = await reached();
      const before = turns();
      await expect.poll(turns).toBeGreaterThan(before + 3);
      // The one that opens; maintenance has not begun.
      expect(threadCounts()).toEqual([1]);
      expect(server.log).not.toContain("maintenance begins");
      await held.close();
      await started;
      expect(server.log.match(/maintenance begins/g)).toHaveLength(1);
      if (life === 0) {
        await server.put("/db/slow:main");
        expect((await server.put(TABLE, { columns: [{ name: "n", type: "int" }] })).status).toBe(201);
      }
      const counted = await server.post(`${TABLE}/summarize`, { summaries: { all: { count: "*" } } });
      expect(counted.body.summaries[0].all).toBe(rows);
      const records = Array.from({ length: 500 }, (_, n) => ({ n }));
      expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
      rows += records.length;
      expect(threadCounts()).toEqual([1]);
      await server.end("SIGKILL");
    }
  });

  it("says what it is doing while it starts, at once and again, and what it recovers", async () => {
    server = serverAt("session-opening");
    for (const words of ["opening the database", "recovering the database, which was not shut down, from up to"]) {
      const started = server.start();
      const held = await reached();
      expect(server.log).toContain(`"msg":"starting: ${words}`);
      expect(server.log).not.toContain("starting: reading the catalog");
      await expect.poll(() => server!.log.split(`"msg":"starting: ${words}`).length).toBeGreaterThan(2);
      await held.close();
      await started;
      expect(server.log).toContain("starting: reading the catalog");
      await server.untilReady();
      await expect.poll(() => server!.log).toContain('"msg":"ready"');
      await server.end("SIGKILL");
    }
    expect(server.log).not.toContain("starting: making the database");
  });

  it("refuses what waits for a database that is opened again for longer than a statement may take, and serves it then", async () => {
    server = serverAt("session-opening", ["--statement-timeout", "1"]);
    const started = server.start();
    await (await reached()).close();
    await started;
    await server.put("/db/slow:main");
    const ended = server.post("/db/slow:main/sql", { statement: UNINTERRUPTIBLE });
    const held = await reached();
    expect((await ended).status).toBe(504);
    const late = await server.get("/db/slow:main");
    expect([late.status, late.body.message]).toEqual([503, expect.stringContaining("this takes longer than usual")]);
    await held.close();
    await expect.poll(async () => (await server!.get("/db/slow:main")).status).toBe(200);
  });

  it("ends at the shutdown deadline with exit code other than 0, and says so, when its database thread hangs", async () => {
    server = serverAt("session-closing", ["--shutdown-timeout", "1"]);
    await server.start();
    const ended = server.end("SIGTERM");
    const held = await reached();
    expect(await ended).not.toBe(0);
    expect(server.log).toContain("not stopped in time: ending the process");
    expect(server.log).not.toContain('"msg":"stopped"');
    await held.close();
  });

  it("ends at the second signal although its database thread hangs", async () => {
    server = serverAt("session-closing", ["--shutdown-timeout", "3600"]);
    await server.start();
    const ended = server.end("SIGTERM");
    const held = await reached();
    process.kill(server.pid, "SIGTERM");
    expect(await ended).not.toBe(0);
    await held.close();
  });

  it("ends at once when it is told to while its database opens", async () => {
    server = serverAt("session-opening");
    const started = expect(server.start()).rejects.toThrow("instead of listening");
    const held = await reached();
    expect(await server.end("SIGTERM")).not.toBe(0);
    expect(server.log).toContain("ending the process at once, while starting");
    await held.close();
    await started;
  });

  it("ends with exit code 0 once it has said that it stopped", async () => {
    server = serverAt("session-closing");
    await server.start();
    const ended = server.end("SIGTERM");
    await (await reached()).close();
    expect(await ended).toBe(0);
    expect(server.log).toContain('"msg":"stopped"');
    expect(threadCounts()).toEqual([1, 0]);
  });
});
