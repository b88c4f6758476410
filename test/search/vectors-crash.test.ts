/** Vectors on disk through kill -9, at named points and at random times: what is on disk leads to the right answers, or the records are read. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import type { CrashPoint } from "../../src/files/fault-points.ts";

const LIFE = fileURLToPath(new URL("vectors-life.ts", import.meta.url));
const POINTS: readonly CrashPoint[] = [
  "search-apply",
  "snapshot-write",
  "vectors-flushed",
  "snapshot-written",
  "snapshot-placed",
  "journal-write",
  "journal-synced",
];

/** @returns the last step that it said to have finished. */
async function oneLife(folder: string, steps: number, env: NodeJS.ProcessEnv, killAfter: number): Promise<number> {
  const child = spawn(process.execPath, ["--import", "tsx", LIFE, folder, String(steps)], { env: { ...process.env, ...env } });
  let [last, left, errors] = [steps, killAfter, ""];
  child.stdout.on("data", (chunk: Buffer) => {
    for (const line of chunk.toString().trim().split("\n")) {
      last = Number(line);
      if (--left === 0) child.kill("SIGKILL");
    }
  });
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk;
  });
  const [code, signal] = await once(child, "close");
  expect({ code, signal, errors }, `after step ${steps}`).toMatchObject({ code: null, signal: "SIGKILL" });
  return last;
}

test("answers are right after a kill at each point, and at random times", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-vectors-crash-"));
  const random = seededRandom(7);
  const times = (count: number): number => 1 + Math.floor(count * random());
  let steps = 0;
  try {
    for (let round = 0; round < 2; round++) {
      for (const point of POINTS) {
        // A life knows of every step of the one before, also of the one that was under way.
        steps = 1 + (await oneLife(folder, steps, { LODESTONE_CRASH_AT: `${point}:${times(4)}` }, Number.POSITIVE_INFINITY));
        if (round === 1) steps = 1 + (await oneLife(folder, steps, {}, times(20)));
      }
    }
    await oneLife(folder, steps, {}, 1);
    expect(readdirSync(folder).filter((name) => name.endsWith(".vectors"))).toHaveLength(1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
