/**
 * Kills a server again and again (kill -9: at random times, and at each named point) while clients write, starts it again on the same directory, and looks
 * for everything that it had acknowledged, in the records and in the search store. Used by crash.test.ts (few cycles) and `npm run soak:crash` (many).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { CrashPoint } from "../../src/fault-points.ts";
import { TestServer } from "../support/server.ts";
import type { Fault } from "./checker/history.ts";
import { Connection } from "./workload/connection.ts";
import { Random } from "./workload/random.ts";
import { createTables } from "./workload/tables.ts";
import { Workload } from "./workload/workload.ts";

/** The server is on its way to readiness, or at work, when it passes these; each with how many passages to choose from. */
export const POINTS_AT_WORK: readonly (readonly [point: CrashPoint, passages: number])[] = [
  ["before-commit", 40],
  ["before-sync", 60],
  ["after-sync", 60],
  ["before-answer", 120],
  ["search-apply", 25],
  ["checkpoint", 6],
];

export const POINTS_OF_FIRST_START: readonly CrashPoint[] = ["first-start-building", "first-start-built", "first-start-placed"];

const READY_LIMIT_MS = 60_000;
const LIFE_LIMIT_MS = 4_000;

export interface CrashRunOptions {
  readonly kills: number;
  readonly seed: number;
  readonly clients: number;
  readonly onCycle?: (line: string) => void;
}

export interface CrashReport {
  kills: number;
  readonly killsByPoint: Record<string, number>;
  operations: number;
  unanswered: number;
  keysJudged: number;
  recordsAudited: number;
  readonly faults: readonly Fault[];
  readonly unexpected: readonly string[];
}

export async function crashRun(options: CrashRunOptions): Promise<CrashReport> {
  const random = new Random(options.seed);
  const killsByPoint: Record<string, number> = {};
  const unexpected: string[] = [];
  const count = (point: string): void => {
    killsByPoint[point] = (killsByPoint[point] ?? 0) + 1;
  };
  const kills = (): number => Object.values(killsByPoint).reduce((sum, n) => sum + n, 0);

  for (const point of POINTS_OF_FIRST_START) if (await survivesFirstStart(point, unexpected)) count(point);

  const env: Record<string, string> = { LODESTONE_LOG_LEVEL: "warn" };
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-crash-"));
  const server = new TestServer({ dataDir, env });
  const workload = new Workload({ seed: options.seed, clients: options.clients, operationsPerKey: 120, mayFail: () => !server.isRunning });
  try {
    for (let cycle = 0; kills() < options.kills && cycle < 2 * options.kills + 20; cycle++) {
      const planned = cycle % 3 === 2 ? undefined : POINTS_AT_WORK[Math.floor(cycle - cycle / 3) % POINTS_AT_WORK.length]!;
      if (planned === undefined) delete env.LODESTONE_CRASH_AT;
      else env.LODESTONE_CRASH_AT = `${planned[0]}:${1 + random.below(planned[1])}`;
      const point = await oneLife(server, workload, random, cycle === 0);
      count(point);
      options.onCycle?.(
        `${kills()} ${env.LODESTONE_CRASH_AT ?? "at a random time"} -> ${point}; ${workload.recorder.operations} operations, ${workload.recorder.faults.length} faults`,
      );
      if (workload.recorder.faults.length > 0) break;
    }
    delete env.LODESTONE_CRASH_AT;
    await server.start();
    await untilReady(server);
    await workload.finish(server.port);
    const stopped = await server.end("SIGTERM");
    if (stopped !== 0) unexpected.push(`the server ended with ${stopped} when it was asked to stop: ${server.log}`);
  } finally {
    await server.end("SIGKILL");
    rmSync(dataDir, { recursive: true, force: true });
  }
  const { operations, unanswered, keysJudged, recordsAudited, faults } = workload.recorder;
  unexpected.push(...workload.recorder.unexpected);
  return { kills: kills(), killsByPoint, operations, unanswered, keysJudged, recordsAudited, faults, unexpected };
}

/** From start to kill. @returns where it died. */
async function oneLife(server: TestServer, workload: Workload, random: Random, isFirst: boolean): Promise<string> {
  const point = (fallback: string): string => (server.isRunning ? fallback : "named point");
  try {
    await server.start();
    await untilReady(server);
  } catch (error) {
    if (server.isRunning) throw error;
    workload.serverEnded();
    return "named point, while starting";
  }
  if (isFirst) {
    const connection = new Connection(server.port);
    await createTables(connection).catch(() => {});
    connection.close();
  } else await workload.inspect(server.port);
  // A random time for a random kill; a limit for a point that is not passed often enough.
  const lifeMs = random.next() < 0.5 ? random.next() * 300 : random.next() * 1_500;
  const running = workload.run(server.port);
  await Promise.race([running, sleep(lifeMs + (isFirst ? LIFE_LIMIT_MS : 0))]);
  const where = point("random time");
  await server.end("SIGKILL");
  workload.serverEnded();
  await running;
  workload.serverEnded();
  return where;
}

async function untilReady(server: TestServer): Promise<void> {
  const deadline = performance.now() + READY_LIMIT_MS;
  const connection = new Connection(server.port);
  try {
    for (;;) {
      const reply = await connection.send("GET", "/readyz");
      if (reply !== null && reply !== "unsent" && reply.status === 200) return;
      if (!server.isRunning) throw new Error(`the server ended while starting: ${server.log}`);
      if (performance.now() > deadline) throw new Error(`the server was not ready within ${READY_LIMIT_MS} ms: ${server.log}`);
      await sleep(10);
    }
  } finally {
    connection.close();
  }
}

/** A kill during the very first start, then a start that must make a good database of what was left. */
async function survivesFirstStart(point: CrashPoint, unexpected: string[]): Promise<boolean> {
  const env: Record<string, string> = { LODESTONE_LOG_LEVEL: "warn", LODESTONE_CRASH_AT: point };
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-first-start-"));
  const server = new TestServer({ dataDir, env });
  try {
    const died = await server.start().then(
      () => false,
      () => !server.isRunning,
    );
    if (!died) {
      unexpected.push(`the server did not pass ${point} at its first start`);
      return false;
    }
    delete env.LODESTONE_CRASH_AT;
    await server.start();
    const connection = new Connection(server.port);
    await createTables(connection);
    connection.close();
    return true;
  } finally {
    await server.end("SIGKILL");
    rmSync(dataDir, { recursive: true, force: true });
  }
}
