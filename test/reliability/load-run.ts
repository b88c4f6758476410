/**
 * Many clients on one server for a while: concurrent searches, inserts, deletes, transactions and SQL; some
 * clients disconnect. Their history is checked. The server's own metrics give its memory, the longest pause
 * of its event loop and the lag of searches. Used by load.test.ts (seconds) and `npm run soak:load`
 * (minutes).
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { TestServer } from "../support/server.ts";
import type { Fault } from "./checker/history.ts";
import { Connection } from "./workload/connection.ts";
import { createTables } from "./workload/tables.ts";
import { Workload } from "./workload/workload.ts";

export interface LoadRunOptions {
  readonly server: TestServer;
  readonly clients: number;
  /** How long, or how many operations at least, however long they take. */
  readonly duration: { readonly seconds: number } | { readonly operations: number };
  readonly seed: number;
  /** How old an eventual answer may be. */
  readonly lagLimitMs?: number;
  readonly sampleEveryMs?: number;
  readonly onSample?: (sample: LoadSample) => void;
}

export interface LoadSample {
  readonly seconds: number;
  readonly operations: number;
  readonly residentMegabytes: number;
  /** The longest one since the previous sample. */
  readonly eventLoopPauseMs: number;
  readonly lagP99Ms: number;
}

export interface LoadReport {
  readonly operations: number;
  readonly operationsPerSecond: number;
  readonly unanswered: number;
  readonly refusedForLoad: number;
  readonly keysJudged: number;
  readonly recordsAudited: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly samples: readonly LoadSample[];
  readonly faults: readonly Fault[];
  readonly unexpected: readonly string[];
}

export async function loadRun(options: LoadRunOptions): Promise<LoadReport> {
  const { server, clients, duration, seed, lagLimitMs, sampleEveryMs = 5_000, onSample } = options;
  const connection = new Connection(server.port);
  await createTables(connection);
  const workload = new Workload({ seed, clients, ...(lagLimitMs === undefined ? {} : { lagLimitMs }) });
  const { recorder } = workload;
  const samples: LoadSample[] = [];
  const startedMs = performance.now();
  const running = workload.run(server.port);
  const isOver = (): boolean =>
    "seconds" in duration ? performance.now() - startedMs >= duration.seconds * 1_000 : recorder.operations >= duration.operations;
  while (!isOver()) {
    const nextMs = performance.now() + sampleEveryMs;
    while (!isOver() && performance.now() < nextMs) await sleep(100);
    const metrics = await readMetrics(connection);
    const sample: LoadSample = {
      seconds: Math.round((performance.now() - startedMs) / 1_000),
      operations: recorder.operations,
      residentMegabytes: Math.round(total(metrics, "process_resident_memory_bytes") / 1e6),
      eventLoopPauseMs: Math.round(total(metrics, "nodejs_eventloop_lag_max_seconds") * 1_000),
      lagP99Ms: Math.round(total(metrics, "lodestone_search_lag_p99_seconds") * 1_000),
    };
    samples.push(sample);
    onSample?.(sample);
  }
  workload.stop();
  await running;
  const elapsedSeconds = (performance.now() - startedMs) / 1_000;
  const { operations } = recorder;
  await workload.finish(server.port);
  const statuses = statusCounts(await readMetrics(connection));
  connection.close();
  return {
    operations,
    operationsPerSecond: Math.round(operations / elapsedSeconds),
    unanswered: recorder.unanswered,
    refusedForLoad: recorder.refusedForLoad,
    keysJudged: recorder.keysJudged,
    recordsAudited: recorder.recordsAudited,
    statuses,
    samples,
    faults: recorder.faults,
    unexpected: recorder.unexpected,
  };
}

/** Lines of Prometheus' text format: the name with its labels, and the value. */
async function readMetrics(connection: Connection): Promise<[series: string, value: number][]> {
  const reply = await connection.send("GET", "/metrics");
  if (reply === null || reply === "unsent") throw new Error("the server is gone");
  return (reply.text as string)
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]);
}

const total = (metrics: readonly [string, number][], name: string): number =>
  metrics.reduce((sum, [series, value]) => (series === name || series.startsWith(`${name}{`) ? sum + value : sum), 0);

function statusCounts(metrics: readonly [string, number][]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [series, value] of metrics) {
    const status = /^lodestone_http_requests_total\{.*status="(\d+)"/.exec(series)?.[1];
    if (status !== undefined) counts[status] = (counts[status] ?? 0) + value;
  }
  return counts;
}
