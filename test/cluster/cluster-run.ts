/**
 * Three servers on one PostgreSQL with a standby, behind nginx as it ships, while clients read and write.
 *
 * Servers are killed and restarted. The network is slow, loses packets, or is down. The standby is promoted:
 * while it is synchronous, and while it is asynchronous and lacks the last acknowledged writes. Then everything that the clients saw is checked. Used by churn.test.ts (a minute) and `npm run
 * soak:cluster` (an hour).
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Fault } from "../reliability/checker/history.ts";
import { Connection } from "../reliability/workload/connection.ts";
import { Random } from "../reliability/workload/random.ts";
import { createTables, ITEMS, searchBody } from "../reliability/workload/tables.ts";
import { Workload } from "../reliability/workload/workload.ts";
import { startNginx, type TestNginx } from "../support/nginx.ts";
import { freePort } from "../support/ports.ts";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { TestServer } from "../support/server.ts";
import { startStandby, type TestStandby } from "../support/standby.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { KnownCommits } from "./known-commits.ts";

const SERVERS = 3;
/** The standby's name to the primary. */
const STANDBY = "sync1";
/** How long the asynchronous standby receives nothing before it is promoted: what is written then is lost. */
const LOST_MS = 1_500;
const READY_LIMIT_MS = 120_000;
/**
 * PostgreSQL checks once a second whether the client of a statement is still connected. After this time, a
 * request without a response can have no more effect.
 */
const SETTLED_MS = 3_000;

/** The possible events, in the order of a round. */
const CLUSTER_EVENTS = ["kill", "restart", "slow network", "lost packets", "outage", "promotion", "asynchronous promotion"] as const;
export type ClusterEvent = (typeof CLUSTER_EVENTS)[number];

export interface ClusterRunOptions {
  /** Folders and programs, as describeWith passes them. */
  readonly postgresBin: string;
  readonly nginxBin: string;
  /** Rounds of events. */
  readonly rounds: number;
  /** After this time no new round begins. Default: no limit. */
  readonly minutes?: number;
  /** Default: all. */
  readonly events?: readonly ClusterEvent[];
  /** The servers hold search parts: one of them the first of two, the others the second. */
  readonly parts?: boolean;
  readonly outageSeconds: number;
  readonly pauseSeconds: number;
  readonly clients: number;
  readonly seed: number;
  readonly onEvent?: (line: string) => void;
}

export interface ClusterReport {
  readonly operations: number;
  readonly keysJudged: number;
  /** Those whose final state was certain: every audit must find it again. */
  readonly keysAudited: number;
  readonly recordsAudited: number;
  readonly events: readonly string[];
  /** Acknowledged writes that asynchronous promotions have certainly lost. */
  readonly lostWrites: number;
  /** From the return of the database until all servers are ready and have written. */
  readonly recoveriesMs: readonly number[];
  readonly faults: readonly Fault[];
  readonly unexpected: readonly string[];
}

export async function clusterRun(options: ClusterRunOptions): Promise<ClusterReport> {
  const cluster = await Cluster.start(options);
  try {
    return await cluster.run();
  } finally {
    await cluster.stop();
  }
}

class Cluster {
  readonly #options: ClusterRunOptions;
  readonly #random: Random;
  readonly #events: string[] = [];
  readonly #recoveriesMs: number[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), "lodestone-cluster-"));
  #primary!: TestPostgres | TestStandby;
  #standby!: TestStandby;
  #nginx!: TestNginx;
  #databasePort = 0;
  readonly #proxies: TcpProxy[] = [];
  readonly #servers: TestServer[] = [];
  #workload!: Workload;

  private constructor(options: ClusterRunOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
  }

  static async start(options: ClusterRunOptions): Promise<Cluster> {
    const cluster = new Cluster(options);
    try {
      await cluster.#start();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  async #start(): Promise<void> {
    const primary = await startPostgres(this.#options.postgresBin, ["wal_level=replica", "max_wal_senders=8"]);
    this.#primary = primary;
    this.#databasePort = primary.port;
    const databaseUrl = await primary.createDatabase();
    await this.#addStandby();
    const ports = await Promise.all(Array.from({ length: SERVERS }, freePort));
    for (const [n, port] of ports.entries()) {
      const proxy = await startTcpProxy(this.#databasePort);
      this.#proxies.push(proxy);
      const args = ["--port", String(port), "--database-connections", "6", "--sql-connections", "4", "--snapshot-interval", "5"];
      const dataDir = join(this.#directory, String(n));
      const server = new TestServer({
        databaseUrl: proxy.url(databaseUrl),
        dataDir,
        args: [...args, "--data-dir", dataDir, ...this.#partArgs(n, ports)],
        env: { LODESTONE_LOG_LEVEL: "warn" },
      });
      this.#servers.push(server);
    }
    // Parts are ready once the others are.
    await Promise.all(this.#servers.map((server) => server.start()));
    const upstream = ports.map((port) => `server 127.0.0.1:${port} max_fails=1 fail_timeout=1s;`).join("\n");
    this.#nginx = await startNginx(this.#options.nginxBin, "balancer.conf", (text) =>
      text.replace(/( *server lodestone-\d:8787[^\n]*\n)+/, `${upstream}\n`),
    );
  }

  #partArgs(server: number, ports: readonly number[]): string[] {
    if (this.#options.parts !== true) return [];
    const secretFile = join(this.#directory, "secret");
    writeFileSync(secretFile, "a-secret-of-more-than-thirty-two-characters\n", { mode: 0o600 });
    const [first, ...others] = ports.map((port) => `http://127.0.0.1:${port}`);
    const peers = `${first},${others.join("|")}`;
    return ["--search-part", `${server === 0 ? 0 : 1}/2`, "--search-peers", peers, "--search-secret-file", secretFile];
  }

  async stop(): Promise<void> {
    await this.#nginx?.stop();
    for (const server of this.#servers) await server.end("SIGKILL");
    for (const proxy of this.#proxies) await proxy.close();
    await this.#standby?.stop();
    await this.#primary?.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async run(): Promise<ClusterReport> {
    const { clients, seed, rounds, pauseSeconds } = this.#options;
    const connection = new Connection(this.#nginx.port);
    await createTables(connection);
    connection.close();
    const workload = new Workload({
      seed,
      clients,
      // Short histories: the effect of many of these requests is unknown, and each makes more orders
      // possible.
      operationsPerKey: 50,
      leaving: 0,
      // Longer than any outage: nobody can write then, but a single server can be cut off.
      lagLimitMs: 600_000,
      mayFail: () => true,
      servers: "many",
      parts: this.#options.parts ?? false,
    });
    this.#workload = workload;
    const running = workload.run(this.#nginx.port);
    const endsAt = performance.now() + 60_000 * (this.#options.minutes ?? Number.POSITIVE_INFINITY);
    for (let round = 0; round < rounds && performance.now() < endsAt; round++) {
      for (const event of this.#options.events ?? CLUSTER_EVENTS) {
        await sleep(1_000 * pauseSeconds);
        await this.#happen(event);
        await this.#untilReady();
        const beforeMs = performance.now();
        await sleep(SETTLED_MS);
        await this.#untilNothingIsOlder();
        workload.recorder.settle(beforeMs);
        if (workload.recorder.faults.length > 0) round = rounds;
      }
    }
    await sleep(1_000 * pauseSeconds);
    workload.stop();
    await running;
    // Each server by itself: its answers against the records.
    for (const server of this.#servers) await workload.inspect(server.port);
    await workload.finish(this.#nginx.port);
    const { operations, keysJudged, retired, recordsAudited, lostWrites, faults, unexpected } = workload.recorder;
    const seen = { operations, keysJudged, keysAudited: retired.size, recordsAudited, lostWrites, faults, unexpected };
    return { ...seen, events: this.#events, recoveriesMs: this.#recoveriesMs };
  }

  #happen(event: ClusterEvent): Promise<void> {
    switch (event) {
      case "kill":
        return this.#kill();
      case "restart":
        return this.#restart();
      case "slow network":
        return this.#slowNetwork();
      case "lost packets":
        return this.#lostPackets();
      case "outage":
        return this.#outage();
      case "promotion":
        return this.#promote();
      case "asynchronous promotion":
        return this.#promoteAsynchronous();
    }
  }

  async #kill(): Promise<void> {
    const n = this.#random.below(SERVERS);
    this.#tell(`server ${n} is killed`);
    await this.#servers[n]!.end("SIGKILL");
    await sleep(500);
    await this.#servers[n]!.start();
  }

  async #restart(): Promise<void> {
    const n = this.#random.below(SERVERS);
    this.#tell(`server ${n} is stopped and started`);
    await this.#servers[n]!.end("SIGTERM");
    await this.#servers[n]!.start();
  }

  async #slowNetwork(): Promise<void> {
    const n = this.#random.below(SERVERS);
    this.#tell(`the network of server ${n} is slow`);
    await this.#proxies[n]!.forward(this.#databasePort, 30);
    await sleep(3_000);
    await this.#proxies[n]!.forward(this.#databasePort);
  }

  async #lostPackets(): Promise<void> {
    const n = this.#random.below(SERVERS);
    this.#tell(`the network of server ${n} loses every packet`);
    await this.#proxies[n]!.swallow();
    await sleep(8_000);
    await this.#proxies[n]!.forward(this.#databasePort);
  }

  async #outage(): Promise<void> {
    this.#tell(`no server reaches the database for ${this.#options.outageSeconds} s`);
    for (const proxy of this.#proxies) await proxy.refuse();
    await sleep(1_000 * this.#options.outageSeconds);
    await this.#recover();
  }

  async #promote(): Promise<void> {
    this.#tell("the synchronous standby is promoted");
    for (const proxy of this.#proxies) await proxy.refuse();
    await this.#takeOver();
  }

  /** What the standby had not received is lost, and the history says where that begins. */
  async #promoteAsynchronous(): Promise<void> {
    this.#tell("the asynchronous standby is promoted");
    await this.#administer("ALTER SYSTEM SET synchronous_standby_names = ''");
    const commits = await KnownCommits.start(this.#databasePort);
    try {
      await commits.untilReceivedBy(this.#standby.port);
      await this.#standby.link.refuse();
      await sleep(LOST_MS);
    } finally {
      await commits.stop();
    }
    const cutOffMs = performance.now();
    for (const proxy of this.#proxies) await proxy.refuse();
    await this.#takeOver(async () => {
      const ends = await commits.endOn(this.#databasePort);
      this.#workload.promoted({ ...ends, cutOffMs, reachedMs: performance.now() });
    });
    await this.#untilAllFollow();
    this.#workload.recorder.whole();
  }

  /** @param beforeReached  runs when the new primary is there and nobody has reached it yet. */
  async #takeOver(beforeReached = async (): Promise<void> => {}): Promise<void> {
    await this.#standby.promote();
    const former = this.#primary;
    this.#primary = this.#standby;
    this.#databasePort = this.#primary.port;
    await beforeReached();
    await this.#recover();
    await former.stop();
    await this.#addStandby();
  }

  /** A strong search of a server that holds whole tables, or its part of them, needs its index to be of the new primary. */
  async #untilAllFollow(): Promise<void> {
    for (const server of this.#servers)
      while ((await server.post(`${ITEMS}/vectorSearch`, searchBody("nobody", "strong"))).status !== 200) await sleep(50);
  }

  async #addStandby(): Promise<void> {
    this.#standby = await startStandby(this.#options.postgresBin, this.#databasePort, STANDBY);
    await this.#administer(`ALTER SYSTEM SET synchronous_standby_names = '${STANDBY}'`);
  }

  async #recover(): Promise<void> {
    for (const proxy of this.#proxies) await proxy.forward(this.#databasePort);
    const startedAt = performance.now();
    await this.#untilReady();
    const written = async (server: TestServer): Promise<boolean> =>
      (
        await server.post("/db/soak:main/sql", {
          statement: 'UPDATE "ballast" SET "embedding" = "embedding" WHERE "id" = $1',
          params: ["x"],
        })
      ).status === 200;
    for (const server of this.#servers) while (!(await written(server))) await sleep(50);
    this.#recoveriesMs.push(Math.round(performance.now() - startedAt));
    this.#tell(`whole again after ${this.#recoveriesMs.at(-1)} ms`);
  }

  async #untilReady(): Promise<void> {
    const deadline = performance.now() + READY_LIMIT_MS;
    for (const server of this.#servers) {
      for (;;) {
        const ready = await server.get("/readyz").catch(() => undefined);
        if (ready?.status === 200) break;
        if (performance.now() > deadline) throw new Error(`a server is not ready: ${ready?.text}\n${server.log}`);
        await sleep(25);
      }
    }
  }

  /**
   * Waits until the database has ended every statement that it is working on now: a commit may wait for the
   * standby for longer than SETTLED_MS.
   */
  async #untilNothingIsOlder(): Promise<void> {
    const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${this.#databasePort}/postgres` });
    await client.connect();
    try {
      const { rows } = await client.query<{ now: string }>("SELECT now()::text AS now");
      const running = "backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid() AND xact_start < $1";
      const isRunning = async (): Promise<boolean> =>
        (await client.query(`SELECT 1 FROM pg_stat_activity WHERE ${running} LIMIT 1`, [rows[0]!.now])).rows.length > 0;
      while (await isRunning()) await sleep(50);
    } finally {
      await client.end();
    }
  }

  async #administer(statement: string): Promise<void> {
    const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${this.#databasePort}/postgres` });
    await client.connect();
    await client.query(statement);
    await client.query("SELECT pg_reload_conf()");
    await client.end();
  }

  #tell(event: string): void {
    this.#events.push(event);
    this.#options.onEvent?.(event);
  }
}
