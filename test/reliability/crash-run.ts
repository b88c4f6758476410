/**
 * Kills a server again and again (kill -9: at random times, and at each named point) while clients write.
 * Restarts it on the same directory, and looks for everything that it had acknowledged, in the records and in
 * the search store. Used by crash.test.ts (few cycles) and `npm run soak:crash` (many).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CrashPoint } from "../../src/files/fault-points.ts";
import { until } from "../support/patience.ts";
import { TestServer } from "../support/server.ts";
import { copyTemplate } from "../support/server-template.ts";
import type { Fault } from "./checker/history.ts";
import { Connection } from "./workload/connection.ts";
import { Random } from "./workload/random.ts";
import type { Recorder } from "./workload/recorder.ts";
import { createTables } from "./workload/tables.ts";
import { Workload } from "./workload/workload.ts";

/** Points that a server passes while starting or working; for each, from how many passages to choose. */
export const POINTS_AT_WORK: readonly (readonly [point: CrashPoint, passages: number])[] = [
  ["before-commit", 12],
  ["before-sync", 20],
  ["after-sync", 20],
  ["sync-deferred", 5],
  ["before-answer", 60],
  ["search-apply", 8],
  ["snapshot-write", 10],
  ["snapshot-written", 3],
  ["journal-write", 20],
  ["journal-synced", 5],
  ["checkpoint", 4],
];

export const POINTS_OF_FIRST_START: readonly CrashPoint[] = ["first-start-building", "first-start-built", "first-start-placed"];

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
  answered: Recorder["answered"];
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

  const env: Record<string, string> = { LODESTONE_LOG_LEVEL: "warn", LODESTONE_SNAPSHOT_INTERVAL: "0.3", LODESTONE_JOURNAL_SIZE: "16KB" };
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-crash-"));
  copyTemplate(dataDir);
  const server = new TestServer({ dataDir, env });
  const workload = new Workload({ seed: options.seed, clients: options.clients, operationsPerKey: 120, mayFail: () => !server.isRunning });
  try {
    const points = POINTS_AT_WORK.map(([point, passages]) => ({ point, passages }));
    let hasTables = false;
    for (let cycle = 0; kills() < options.kills - POINTS_OF_FIRST_START.length; cycle++) {
      const planned = cycle % 3 === 2 ? undefined : points.shift();
      if (planned === undefined) delete env.LODESTONE_CRASH_AT;
      else env.LODESTONE_CRASH_AT = `${planned.point}:${1 + random.below(planned.passages)}`;
      const where = await oneLife(server, workload, {
        // The clients of the first life find their tables, however long it takes to make these.
        prepare: async () => {
          if (hasTables) await workload.inspect(server.port);
          else hasTables = await makeTables(server);
          return hasTables;
        },
        operations: planned === undefined ? 1 + random.below(random.of([100, 500])) : undefined,
      });
      const point = planned === undefined ? where : planned.point;
      count(point);
      if (planned !== undefined) points.push(planned);
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
  for (const point of POINTS_OF_FIRST_START) if (await survivesFirstStart(point, unexpected)) count(point);
  const { operations, answered, unanswered, keysJudged, recordsAudited, faults } = workload.recorder;
  unexpected.push(...workload.recorder.unexpected);
  return { kills: kills(), killsByPoint, operations, answered, unanswered, keysJudged, recordsAudited, faults, unexpected };
}

/**
 * One life, from start to kill.
 * @param operations  after which it is killed; undefined: it ends at a named point.
 * @returns whether a named point ended it, or the kill.
 */
async function oneLife(
  server: TestServer,
  workload: Workload,
  { prepare, operations }: { prepare: () => Promise<boolean>; operations: number | undefined },
): Promise<"at the point" | "at a random time"> {
  try {
    await server.start();
    await untilReady(server);
  } catch (error) {
    if (server.isRunning) throw error;
    workload.serverEnded();
    return "at the point";
  }
  if (await prepare()) {
    const running = workload.run(server.port);
    const enough = workload.recorder.operations + (operations ?? Number.POSITIVE_INFINITY);
    await until(
      () => `the life of the server ends: ${server.log}`,
      () => !server.isRunning || workload.recorder.operations >= enough,
      1,
    );
    const where = server.isRunning ? "at a random time" : "at the point";
    await server.end("SIGKILL");
    workload.stop();
    await running;
    workload.serverEnded();
    return where;
  }
  await server.end("SIGKILL");
  workload.serverEnded();
  return "at the point";
}

async function makeTables(server: TestServer): Promise<boolean> {
  const connection = new Connection(server.port);
  const made = await createTables(connection).then(
    () => true,
    () => false,
  );
  connection.close();
  return made;
}

async function untilReady(server: TestServer): Promise<void> {
  const connection = new Connection(server.port);
  try {
    await until(
      () => `the server is ready: ${server.log}`,
      async () => {
        const reply = await connection.send("GET", "/readyz");
        if (!server.isRunning) throw new Error(`the server ended while starting: ${server.log}`);
        return reply !== null && reply !== "unsent" && reply.status === 200;
      },
    );
  } finally {
    connection.close();
  }
}

/** A kill during the very first start, then a start that must make a good database from what was left. */
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
