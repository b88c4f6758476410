/**
 * One server in slow weather, while clients read and write: a tenth of a processor, a slow and a failing disk, no
 * descriptors, a full disk, greedy statements within little memory, kills at random moments, in slow weather and
 * during slow starts, and stops that must end the process. The history of all clients is checked, and the
 * records and the index are audited after each round. Used by weather.test.ts (each once) and `npm run
 * soak:weather` (an hour, on both engines).
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LIMIT_MS, until, within } from "../support/patience.ts";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { TestServer } from "../support/server.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import type { Fault } from "./checker/history.ts";
import { makeMemoryGroup } from "./weather/memory-group.ts";
import { type Clears, failingDisk, fullDisk, noDescriptors, slowDisk, slowProcessor } from "./weather/process-weather.ts";
import { mountSmallDisk } from "./weather/small-disk.ts";
import { Connection, type Reply } from "./workload/connection.ts";
import { Random } from "./workload/random.ts";
import type { Recorder } from "./workload/recorder.ts";
import type { RunOptions } from "./workload/run-options.ts";
import { BRANCH, createTables } from "./workload/tables.ts";
import { Workload } from "./workload/workload.ts";

const DISK_MEGABYTES = 600;
const GROUP_MEGABYTES = 1_024;
/** A statement that takes all the memory that a session may have. */
const GREEDY = "SELECT array_length(array_agg(repeat('x', 1000000) || g), 1) FROM generate_series(1, 2000) g";
const GREEDY_STATEMENTS = 3;

export type WeatherEvent = keyof typeof EVENTS;

export interface WeatherRunOptions extends RunOptions<WeatherEvent> {
  /** The folder of PostgreSQL's programs: the records are kept there. undefined: in the embedded database. */
  readonly postgresBin?: string | undefined;
  readonly strace: string;
  /** How long bad weather lasts. */
  readonly badSeconds: number;
  /** How far behind an eventual search may be. Default: as patient as tests are. */
  readonly lagLimitMs?: number;
}

export interface WeatherReport {
  readonly operations: number;
  readonly answered: Recorder["answered"];
  readonly unanswered: number;
  readonly keysJudged: number;
  readonly recordsAudited: number;
  /** How often each event came. */
  readonly events: Readonly<Record<string, number>>;
  /** What /readyz said during each. */
  readonly readiness: Readonly<Record<string, readonly string[]>>;
  /** From the end of an event, or the beginning of a start, until /readyz answers 200. */
  readonly longestUntilReadyMs: number;
  /** From SIGTERM to the end of the process, without those in slow weather. */
  readonly longestStopMs: number;
  /** Events that could not be made on this machine. */
  readonly leftOut: readonly string[];
  readonly faults: readonly Fault[];
  readonly unexpected: readonly string[];
}

export async function weatherRun(options: WeatherRunOptions): Promise<WeatherReport> {
  const station = new Station(options);
  try {
    return await station.run();
  } finally {
    await station.close();
  }
}

/** Each returns once it is over and the server should be well. */
const EVENTS = {
  "slow processor": (station: Station) => station.weather(async (pid) => slowProcessor(pid)),
  "slow disk": (station: Station) => station.weather((pid) => slowDisk(station.options.strace, pid)),
  "failing disk": (station: Station) => station.weather((pid) => failingDisk(station.options.strace, pid)),
  "no descriptors": (station: Station) => station.weather((pid) => noDescriptors(pid)),
  "full disk": (station: Station) => station.weather(() => fullDisk(station.disk!)),
  "greedy statements": (station: Station) => station.greedyStatements(),
  kill: (station: Station) => station.killed(),
  "kill in slow weather": (station: Station) => station.killed(true),
  "kills during starts": (station: Station) => station.killedWhileStarting(),
  stop: (station: Station) => station.stopped(),
  "stop in slow weather": (station: Station) => station.stopped(true),
  "database restarts": (station: Station) => station.databaseRestarts(),
  "database away": (station: Station) => station.databaseAway(),
} as const;

const ONLY_EMBEDDED: readonly WeatherEvent[] = ["slow disk", "failing disk", "full disk"];
const ONLY_POSTGRESQL: readonly WeatherEvent[] = ["database restarts", "database away"];

class Station {
  readonly options: WeatherRunOptions;
  readonly #random: Random;
  readonly #dataDir: string;
  readonly #smallDisk = mountSmallDisk(DISK_MEGABYTES);
  readonly #memoryGroup = makeMemoryGroup(`lodestone-weather-${randomUUID()}`, GROUP_MEGABYTES);
  readonly #counts: Record<string, number> = {};
  readonly #readiness = new Map<string, Set<string>>();
  readonly #unexpected: string[] = [];
  #postgres: TestPostgres | undefined;
  #proxy: TcpProxy | undefined;
  #server!: TestServer;
  #workload!: Workload;
  #running: Promise<void> = Promise.resolve();
  #isBad = false;
  #longestUntilReadyMs = 0;
  #longestStopMs = 0;

  constructor(options: WeatherRunOptions) {
    this.options = options;
    this.#random = new Random(options.seed);
    this.#dataDir = join(this.#smallDisk?.folder ?? mkdtempSync(join(tmpdir(), "lodestone-weather-")), "data");
  }

  /** The small file system of the server's files; undefined where there is none to be had. */
  get disk(): string | undefined {
    return this.#smallDisk?.folder;
  }

  async run(): Promise<WeatherReport> {
    const { options } = this;
    let databaseUrl: string | undefined;
    if (options.postgresBin !== undefined) {
      this.#postgres = await startPostgres(options.postgresBin, ["max_connections=60"]);
      this.#proxy = await startTcpProxy(this.#postgres.port);
      databaseUrl = this.#proxy.url(await this.#postgres.createDatabase());
    }
    this.#server = new TestServer({
      dataDir: this.#dataDir,
      args: ["--max-memory", "512MB", "--snapshot-interval", "5", ...(databaseUrl === undefined ? [] : ["--data-dir", this.#dataDir])],
      env: { LODESTONE_LOG_LEVEL: "warn" },
      ...(databaseUrl === undefined ? {} : { databaseUrl }),
    });
    this.#workload = new Workload({
      seed: options.seed,
      clients: options.clients,
      operationsPerKey: 150,
      ...(options.lagLimitMs === undefined ? {} : { lagLimitMs: options.lagLimitMs }),
      mayFail: () => this.#isBad || !this.#server.isRunning,
    });
    await this.#start();
    const connection = new Connection(this.#server.port);
    await createTables(connection);
    connection.close();

    const events = this.#possibleEvents();
    const startedMs = performance.now();
    const { recorder } = this.#workload;
    let said = 0;
    for (
      let round = 0;
      round < options.rounds && performance.now() - startedMs < (options.minutes ?? Number.POSITIVE_INFINITY) * 60_000;
      round++
    ) {
      for (const event of this.#shuffled(events)) {
        this.#work();
        const enough = recorder.operations + options.calmOperations;
        await until(
          () => `clients get answers before "${event}": ${this.#server.log.slice(-4_000)}`,
          () => recorder.operations >= enough,
        );
        await this.#during(event);
        await this.#rest(event);
        this.#counts[event] = (this.#counts[event] ?? 0) + 1;
        for (const message of this.#allUnexpected.slice(said)) options.onEvent?.(`unexpected: ${message}`);
        said = this.#allUnexpected.length;
        options.onEvent?.(`${event}: ${recorder.operations} operations, ${recorder.faults.length} faults, ${said} unexpected`);
        if (recorder.faults.length > 0) return this.#report();
      }
      this.#isBad = false;
      await this.#workload.inspect(this.#server.port);
    }
    await this.#workload.finish(this.#server.port);
    await this.#stop();
    return this.#report();
  }

  async close(): Promise<void> {
    this.#workload?.stop();
    await this.#server?.end("SIGKILL");
    await this.#proxy?.close();
    await this.#postgres?.stop();
    this.#memoryGroup?.remove();
    this.#smallDisk?.remove();
    if (this.#smallDisk === undefined) rmSync(join(this.#dataDir, ".."), { recursive: true, force: true });
  }

  get #allUnexpected(): string[] {
    return [...this.#unexpected, ...(this.#workload?.recorder.unexpected ?? [])];
  }

  #leftOut(): WeatherEvent[] {
    return this.#smallDisk === undefined ? ["full disk"] : [];
  }

  #possibleEvents(): WeatherEvent[] {
    const notHere: readonly WeatherEvent[] = this.#postgres === undefined ? ONLY_POSTGRESQL : ONLY_EMBEDDED;
    const impossible = [...notHere, ...this.#leftOut()];
    return (this.options.events ?? (Object.keys(EVENTS) as WeatherEvent[])).filter((event) => !impossible.includes(event));
  }

  #shuffled(events: readonly WeatherEvent[]): WeatherEvent[] {
    return events
      .map((event) => ({ event, at: this.#random.next() }))
      .sort((a, b) => a.at - b.at)
      .map(({ event }) => event);
  }

  /** The event, with what /readyz says meanwhile. The process may end only where the event ends it. */
  async #during(event: WeatherEvent): Promise<void> {
    this.#isBad = true;
    const states = this.#readiness.get(event) ?? new Set();
    this.#readiness.set(event, states);
    let isOver = false;
    const watching = (async () => {
      while (!isOver) {
        states.add(describeReadiness(await this.#ask("/readyz")));
        await sleep(500);
      }
    })();
    const logStart = this.#server.log.length;
    await EVENTS[event](this);
    await this.#untilReady(event);
    isOver = true;
    await this.#within(watching, `a request for /readyz during "${event}" ends`);
    const log = this.#server.log.slice(Math.min(logStart, this.#server.log.length));
    if (/took over the data directory/.test(log)) this.#unexpected.push(`during "${event}" the server believed that its lock was taken`);
  }

  /** Bad weather for a running server, which must live through it and be well afterwards. */
  async weather(begin: (pid: number) => Promise<Clears>): Promise<void> {
    const clear = await begin(this.#server.pid);
    try {
      await sleep(this.options.badSeconds * 1_000);
    } finally {
      await clear();
    }
  }

  async greedyStatements(): Promise<void> {
    const connection = new Connection(this.#server.port);
    for (let statement = 0; statement < GREEDY_STATEMENTS; statement++) {
      const reply = await connection.send("POST", `${BRANCH}/sql`, { statement: GREEDY });
      if (reply !== null && reply !== "unsent" && reply.status === 200 && this.#postgres === undefined)
        this.#unexpected.push("a statement was allowed more memory than a session has");
    }
    connection.close();
  }

  async killed(isSlow = false): Promise<void> {
    const clear = isSlow ? slowProcessor(this.#server.pid) : undefined;
    await sleep(this.#random.next() * this.options.badSeconds * 1_000);
    await this.#kill();
    await clear?.();
    await this.#start();
  }

  /** Starts that take ten times as long, each killed at some moment; then one that is not. */
  async killedWhileStarting(): Promise<void> {
    await this.#kill();
    for (let start = 0; start < 3; start++) {
      const starting = this.#launch().catch(() => {});
      const clear = slowProcessor(this.#server.pid);
      await Promise.race([starting, sleep(this.#random.next() * this.options.badSeconds * 2_000)]);
      await this.#server.end("SIGKILL");
      await clear();
      await starting;
    }
    const starting = this.#launch();
    const clear = slowProcessor(this.#server.pid);
    await starting.finally(clear);
  }

  async stopped(isSlow = false): Promise<void> {
    const clear = isSlow ? slowProcessor(this.#server.pid) : undefined;
    if (isSlow) await sleep(1_000);
    await this.#stop(!isSlow);
    await clear?.();
    await this.#start();
  }

  async databaseRestarts(): Promise<void> {
    await this.#postgres!.restart();
  }

  async databaseAway(): Promise<void> {
    await this.#proxy!.refuse();
    await sleep(this.options.badSeconds * 1_000);
    await this.#proxy!.forward();
  }

  async #stop(isTimed = false): Promise<void> {
    const startedMs = performance.now();
    const code = await this.#within(this.#server.end("SIGTERM"), "the process ends after SIGTERM");
    if (isTimed) this.#longestStopMs = Math.max(this.#longestStopMs, performance.now() - startedMs);
    if (code !== 0) this.#unexpected.push(`the server ended with ${code} when it was asked to stop: ${this.#server.log.slice(-2_000)}`);
    this.#workload.serverEnded();
  }

  async #kill(): Promise<void> {
    await this.#server.end("SIGKILL");
    this.#workload.stop();
    await this.#within(this.#running, "clients notice that their server is gone");
    this.#workload.serverEnded();
  }

  #launch(): Promise<void> {
    const starting = this.#server.start();
    this.#memoryGroup?.add(this.#server.pid);
    return starting;
  }

  async #start(): Promise<void> {
    await this.#launch();
    await this.#untilReady("a start");
  }

  #work(): void {
    this.#isBad = false;
    this.#running = this.#workload.run(this.#server.port);
  }

  /** Clients may have given up, and come back in calm weather for a moment; then they rest. */
  async #rest(event: WeatherEvent): Promise<void> {
    this.#workload.stop();
    await this.#within(this.#running, "all clients get their answers");
    if (this.#server.isRunning) return;
    this.#unexpected.push(`the server ended by itself around "${event}": ${this.#server.log.slice(-2_000)}`);
    this.#workload.serverEnded();
    await this.#start();
  }

  async #untilReady(event: string): Promise<void> {
    const startedMs = performance.now();
    for (let last = ""; performance.now() - startedMs < LIMIT_MS && this.#server.isRunning; await sleep(50)) {
      last = describeReadiness(await this.#ask("/readyz"));
      if (last !== "ready") continue;
      this.#longestUntilReadyMs = Math.max(this.#longestUntilReadyMs, performance.now() - startedMs);
      return;
    }
    if (this.#server.isRunning) throw new Error(`after "${event}" the server did not get ready again: ${this.#server.log.slice(-4_000)}`);
  }

  async #ask(path: string): Promise<Reply | "unsent" | null> {
    const connection = new Connection(this.#server.port);
    const reply = await this.#within(connection.send("GET", path), `GET ${path} is answered`);
    connection.close();
    return reply;
  }

  #within<Result>(result: Promise<Result>, what: string): Promise<Result> {
    return within(result, () => `${what}: ${this.#server.log.slice(-4_000)}`);
  }

  #report(): WeatherReport {
    const { operations, answered, unanswered, keysJudged, recordsAudited, faults } = this.#workload.recorder;
    return {
      operations,
      answered,
      unanswered,
      keysJudged,
      recordsAudited,
      events: this.#counts,
      readiness: Object.fromEntries([...this.#readiness].map(([event, states]) => [event, [...states].sort()])),
      longestUntilReadyMs: Math.round(this.#longestUntilReadyMs),
      longestStopMs: Math.round(this.#longestStopMs),
      leftOut: this.#leftOut(),
      faults,
      unexpected: this.#allUnexpected,
    };
  }
}

function describeReadiness(reply: Reply | "unsent" | null): string {
  if (reply === null) return "no answer";
  if (reply === "unsent") return "not listening";
  const { status, message } = (reply.body ?? {}) as { status?: string; message?: string };
  return [status ?? String(reply.status), ...(message === undefined ? [] : [message.replaceAll(/[\d.]+/g, "N")])].join(": ");
}
