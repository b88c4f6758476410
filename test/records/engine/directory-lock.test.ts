import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DirectoryLock, isDirectoryHeld } from "../../../src/files/directory-lock.ts";
import { ownIdentity } from "../../../src/files/process-identity.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";

const CHILD = fileURLToPath(new URL("./crash-child.mjs", import.meta.url));

describe("the lock on a data directory", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "lodestone-lock-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const lockFile = (): string => join(directory, readdirSync(directory).find((name) => name.startsWith("lodestone.lock."))!);
  const leaveLock = (content: object): void =>
    writeFileSync(
      join(directory, "lodestone.lock.7"),
      JSON.stringify({ state: "held", token: "left", since: "2026-01-01T00:00:00.000Z", ...content }),
    );
  /**
   * Processes that race for the lock: what each reports once it was told to go, which happens when all are
   * ready.
   */
  async function race(processes: number): Promise<string[]> {
    const children = Array.from({ length: processes }, () =>
      spawn(process.execPath, [CHILD, "lock", directory], { stdio: ["pipe", "pipe", "inherit"] }),
    );
    const outputs = children.map(() => "");
    const ready = children.map(
      (child, i) =>
        new Promise<void>((resolve) => {
          child.stdout.on("data", (chunk: Buffer) => {
            outputs[i] += chunk.toString();
            if (outputs[i]!.startsWith("ready\n")) resolve();
          });
        }),
    );
    const closed = children.map((child) => once(child, "close"));
    await Promise.all(ready);
    for (const child of children) child.stdin.write("go\n");
    await Promise.all(closed);
    return outputs.map((output) => output.slice("ready\n".length).trim());
  }

  test("refuses a second opener in the same process, and names the first", async () => {
    const engine = await openEngine({ dataDir: directory });
    await expect(openEngine({ dataDir: directory })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringMatching(new RegExp(`^The data directory ${directory} is in use by process ${process.pid} \\(since `)),
    });
    expect((await engine.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
    await engine.close();
    const again = await openEngine({ dataDir: directory });
    await again.close();
  });

  test("is taken over when its holder was killed, by only one at a time of many processes that race for it", async () => {
    // The pid of a process that no longer exists.
    leaveLock({ ...ownIdentity(), pid: 2 ** 22 - 3, startTime: "1" });
    for (let round = 0; round < 3; round++) {
      const answers = await race(5);
      // On a slow machine one may come after another has released it; never two at once (`refused EEXIST`).
      expect(answers).toContain("got");
      expect(answers.filter((answer) => answer !== "got" && answer !== "refused UNAVAILABLE")).toEqual([]);
    }
  });

  test("is taken over when its pid was since given to another process", async () => {
    leaveLock({ ...ownIdentity(), startTime: "12345" });
    const lock = await DirectoryLock.acquire(directory, () => {});
    expect(lockFile()).toMatch(/lodestone\.lock\.8$/);
    lock.release();
  });

  test("left by another boot or container is respected while it is refreshed, and taken over when it stops changing", async () => {
    leaveLock({ pid: 1, startTime: "1", realm: "another" });
    const refresh = setInterval(() => utimesSync(join(directory, "lodestone.lock.7"), new Date(), new Date()), 200);
    await expect(DirectoryLock.acquire(directory, () => {})).rejects.toMatchObject({ code: "UNAVAILABLE" });
    clearInterval(refresh);
    const lock = await DirectoryLock.acquire(directory, () => {});
    lock.release();
  });

  test("that is damaged does not lock the owner out for ever", async () => {
    writeFileSync(join(directory, "lodestone.lock.3"), "{");
    const lock = await DirectoryLock.acquire(directory, () => {});
    lock.release();
  });

  /** Acquires the lock with a quick heartbeat. What it says is told in order: "fault …", "recovery …", "lost". */
  async function acquireAndListen() {
    const said: string[] = [];
    let wake = (): void => {};
    const say = (sentence: string): void => {
      said.push(sentence);
      wake();
    };
    const lock = await DirectoryLock.acquire(directory, () => say("lost"), {
      heartbeatMs: 10,
      onFault: (error) => say(`fault ${(error as Error).message}`),
      onRecovery: (sentence) => say(`recovery ${sentence}`),
    });
    const next = async (): Promise<string> => {
      if (said.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      return said.shift()!;
    };
    return { lock, next, said };
  }

  test("that cannot be read is neither lost nor free: the holder says so once, and again when it can be read", async () => {
    const { lock, next, said } = await acquireAndListen();
    const file = lockFile();
    renameSync(file, join(directory, "aside"));
    mkdirSync(file);
    expect(await next()).toMatch(/^fault The heartbeat of the lock on .* fails: EISDIR/);
    await expect(DirectoryLock.acquire(directory, () => {})).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("cannot be read"),
    });
    expect(() => isDirectoryHeld(directory)).toThrow(/cannot be read/);
    rmdirSync(file);
    renameSync(join(directory, "aside"), file);
    expect(await next()).toMatch(/^recovery The heartbeat of the lock on .* works again/);
    expect(said).toEqual([]);
    await expect(DirectoryLock.acquire(directory, () => {})).rejects.toMatchObject({ message: expect.stringContaining("is in use by") });
    lock.release();
    expect(isDirectoryHeld(directory)).toBe(false);
  });

  test("is kept by a process that has no descriptor left, which says so and goes on", async () => {
    const child = spawn("sh", ["-c", 'ulimit -n 64; exec "$@"', "sh", process.execPath, CHILD, "lock-without-descriptors", directory], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    await once(child, "close");
    const [fault, recovery, end] = output.trim().split("\n");
    expect(fault).toMatch(/^fault The heartbeat of the lock on .* fails: EMFILE/);
    expect(recovery).toMatch(/^recovery The heartbeat of the lock on .* works again/);
    expect(end).toBe("released");
  });

  test("that was removed by hand is written again, so that nobody else comes in", async () => {
    const { lock, said } = await acquireAndListen();
    rmSync(lockFile());
    await expect.poll(() => readdirSync(directory)).toEqual(["lodestone.lock.1"]);
    await expect(DirectoryLock.acquire(directory, () => {})).rejects.toMatchObject({ message: expect.stringContaining("is in use by") });
    lock.release();
    expect(isDirectoryHeld(directory)).toBe(false);
    expect(said).toEqual([]);
  });

  test("is lost when it was removed and another process took the directory, whatever the number of its file", async () => {
    for (const generation of [1, 2, 9]) {
      const { lock, next, said } = await acquireAndListen();
      const other = join(directory, `lodestone.lock.${generation}`);
      writeFileSync(
        `${other}.draft`,
        JSON.stringify({ state: "held", token: "other", since: "2026-01-01T00:00:00.000Z", ...ownIdentity() }),
      );
      renameSync(`${other}.draft`, other);
      for (const name of readdirSync(directory)) if (name !== `lodestone.lock.${generation}`) rmSync(join(directory, name));
      expect(await next()).toBe("lost");
      lock.release();
      expect([readdirSync(directory), said]).toEqual([[`lodestone.lock.${generation}`], []]);
      rmSync(other);
    }
  });

  test("that was taken by another process makes the engine stop", async () => {
    const engine = await openEngine({ dataDir: directory });
    const stolen = { ...(JSON.parse(readFileSync(lockFile(), "utf8")) as object), token: "thief" };
    writeFileSync(`${lockFile()}.draft`, JSON.stringify(stolen));
    renameSync(`${lockFile()}.draft`, lockFile());
    await expect
      .poll(() =>
        engine.query("SELECT 1").then(
          () => "served",
          (error: { code: string; message: string }) => `${error.code} ${error.message}`,
        ),
      )
      .toContain("UNAVAILABLE Another process took over");
    await engine.close();
  });
});
