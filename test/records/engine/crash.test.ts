import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { runs } from "../../support/random-runs.ts";
import { describeLater, describeOnce } from "../../support/requirements.ts";

const CHILD = fileURLToPath(new URL("./crash-child.mjs", import.meta.url));
const RANDOM_KILLS = runs(5);

interface Child {
  readonly process: ChildProcess;
  readonly lines: string[];
  readonly exited: Promise<void>;
  said(line: string): Promise<void>;
}

function start(mode: string, dataDir: string): Child {
  const child = spawn(process.execPath, [CHILD, mode, dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  const waiting: { line: string; resolve: () => void }[] = [];
  createInterface({ input: child.stdout! }).on("line", (line) => {
    lines.push(line);
    for (const wait of waiting) if (line.startsWith(wait.line)) wait.resolve();
  });
  return {
    process: child,
    lines,
    exited: new Promise((resolve) => child.once("close", () => resolve())),
    said: (line) => new Promise((resolve) => waiting.push({ line, resolve })),
  };
}

/** Every acknowledged pair is whole, every acknowledged delete is final, and nothing is there by half. */
async function expectWhole(dataDir: string, lines: readonly string[]): Promise<void> {
  const engine = await openEngine({ dataDir });
  try {
    const { rows } = await engine.query<{ n: number; halves: string }>(
      "SELECT n, string_agg(half, '' ORDER BY half) AS halves FROM pairs GROUP BY n ORDER BY n",
    );
    const present = new Map(rows.map(({ n, halves }) => [n, halves]));
    expect([...present.values()].filter((halves) => halves !== "ab")).toEqual([]);
    const deletesBegun = new Set(numbers(lines, "deleting"));
    const lost = numbers(lines, "inserted").filter((n) => !present.has(n) && !deletesBegun.has(n));
    expect(lost).toEqual([]);
    expect(numbers(lines, "deleted").filter((n) => present.has(n))).toEqual([]);
  } finally {
    await engine.close();
  }
}

const numbers = (lines: readonly string[], verb: string): number[] =>
  lines.filter((line) => line.startsWith(`${verb} `)).map((line) => Number(line.slice(verb.length + 1)));

const directories: string[] = [];
const freshDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-crash-"));
  directories.push(directory);
  return directory;
};
afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

describe("kill -9", () => {
  test(`at ${RANDOM_KILLS} random moments, again and again on one directory, loses no acknowledged write and brings no deleted row back`, async () => {
    const dataDir = freshDirectory();
    const lines: string[] = [];
    for (let round = 0; round < RANDOM_KILLS; round++) {
      const child = start("write", dataDir);
      // In the middle of something, after a random number of acknowledged statements.
      const count = 1 + Math.floor(Math.random() * 60);
      await expect.poll(() => child.lines.length, { interval: 1 + Math.floor(Math.random() * 30) }).toBeGreaterThan(count);
      child.process.kill("SIGKILL");
      await child.exited;
      lines.push(...child.lines);
      await expectWhole(dataDir, lines);
    }
    expect(numbers(lines, "inserted").length).toBeGreaterThan(0);
  });

  test.each(["before-commit", "after-commit", "during-checkpoint"])(
    "at the point %s leaves all or nothing of what was not acknowledged",
    async (point) => {
      const dataDir = freshDirectory();
      const child = start(point, dataDir);
      await child.exited;
      const inserted = numbers(child.lines, "inserted");
      expect(inserted.length).toBeGreaterThanOrEqual(20);
      await expectWhole(dataDir, child.lines);
      const engine = await openEngine({ dataDir });
      const { rows } = await engine.query<{ n: number }>("SELECT count(*)::int4 AS n FROM pairs WHERE n > $1", [inserted.length]);
      // Killed before the commit there is nothing; after it, both halves.
      if (point === "before-commit") expect(rows[0]!.n).toBe(0);
      if (point === "after-commit") expect(rows[0]!.n).toBe(2);
      await engine.close();
    },
  );
});

describeLater("a full disk", () => {
  test.each([
    // A data file reaches the limit: the statement fails ("file too large" has no SQLSTATE of its own), and
    // the service continues.
    { limitMiB: 24, expected: /^failed XX000/, readable: true },
    // The log itself reaches it: PostgreSQL stops, and returns when there is room.
    { limitMiB: 9, expected: /^failed UNAVAILABLE/, readable: false },
  ])(
    "a disk that refuses what goes beyond $limitMiB MiB of a file loses nothing and leaves nothing half done",
    async ({ limitMiB, expected, readable }) => {
      const dataDir = freshDirectory();
      await (await openEngine({ dataDir })).close();
      const lines = execFileSync(
        "bash",
        ["-c", `trap '' XFSZ; ulimit -f ${limitMiB * 1024}; exec "$0" "$@"`, process.execPath, CHILD, "fill", dataDir],
        {
          encoding: "utf8",
          stdio: ["ignore", "pipe", "inherit"],
        },
      ).split("\n");
      expect(numbers(lines, "inserted").length).toBeGreaterThan(0);
      expect(lines.filter((line) => line.startsWith("failed")).join("\n")).toMatch(expected);
      expect(lines.some((line) => line.startsWith("read "))).toBe(readable);
      await expectWhole(dataDir, lines);
    },
  );
});

describeOnce("kill -9", () => {
  test("during the very first start leaves a directory that the next start can use", async () => {
    const dataDir = freshDirectory();
    for (const delayMs of [150, 600, 1_500]) {
      const child = start("hold", dataDir);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      child.process.kill("SIGKILL");
      await child.exited;
    }
    const engine = await openEngine({ dataDir });
    expect((await engine.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
    await engine.close();
    expect(existsSync(join(dataDir, "postgres"))).toBe(true);
    expect(readdirSync(dataDir).filter((name) => name.startsWith("postgres.new-"))).toEqual([]);
  });
});
