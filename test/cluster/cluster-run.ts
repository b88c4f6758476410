/**
 * Three servers on one PostgreSQL with a standby, behind nginx as it ships, while clients read and write.
 *
 * Servers are killed and restarted. The network is slow, loses packets, or is down. The standby is promoted:
 * while it is synchronous, and while it is asynchronous and lacks the last acknowledged writes. Then everything that the
 * clients saw is checked. Used by churn.test.ts (each once) and `npm run soak:cluster` (an hour).
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "../reliability/checker/history.ts";
import { Connection } from "../reliability/workload/connection.ts";
import { Random } from "../reliability/workload/random.ts";
import type { Recorder } from "../reliability/workload/recorder.ts";
import type { ReplicaCounts, ReplicaSet } from "../reliability/workload/replica-set.ts";
import type { RunOptions } from "../reliability/workload/run-options.ts";
import { createTables, ITEMS, searchBody } from "../reliability/workload/tables.ts";
import { Workload } from "../reliability/workload/workload.ts";
import { startNginx, type TestNginx } from "../support/nginx.ts";
import { until } from "../support/patience.ts";
import { freePort } from "../support/ports.ts";
import { TestServer } from "../support/server.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { DatabasePair } from "./database-pair.ts";
import { KnownCommits } from "./known-commits.ts";

const SERVERS = 3;
/** What the clients do while one server is away or slow. */
const AFFECTED_OPERATIONS = 30;
/** How many writes the asynchronous standby does not receive before it is promoted, at least: they are lost. */
const LOST_WRITES = 20;

/** The possible events, in the order of a round. */
const CLUSTER_EVENTS = [
  "kill",
  "restart",
  "replica",
  "page",
  "browser",
  "slow network",
  "lost packets",
  "outage",
  "promotion",
  "asynchronous promotion",
] as const;
export type ClusterEvent = (typeof CLUSTER_EVENTS)[number];

export interface ClusterRunOptions extends RunOptions<ClusterEvent> {
  /** Folders and programs, as describeWith passes them. */
  readonly postgresBin: string;
  readonly nginxBin: string;
  /** The servers hold search parts: one of them the first of two, the others the second. */
  readonly parts?: boolean;
  readonly outageSeconds: number;
  /** Replicas, which the clients read, too. */
  readonly replicas?: ReplicaCounts;
}

export interface ClusterReport {
  readonly operations: number;
  readonly answered: Recorder["answered"];
  readonly keysJudged: number;
  /** Those whose final state was certain: every audit must find it again. */
  readonly keysAudited: number;
  readonly recordsAudited: number;
  readonly events: readonly string[];
  /** Acknowledged writes that asynchronous promotions have certainly lost. */
  readonly lostWrites: number;
  /** Each phase that a replica was in, and how often. */
  readonly replicaPhases: Readonly<Record<string, number>>;
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
  #database!: DatabasePair;
  #nginx!: TestNginx;
  readonly #proxies: TcpProxy[] = [];
  readonly #servers: TestServer[] = [];
  #workload!: Workload;
  #replicas: ReplicaSet | undefined;
  #running: Promise<void> = Promise.resolve();

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
    this.#database = await DatabasePair.start(this.#options.postgresBin);
    const ports = await Promise.all(Array.from({ length: SERVERS }, freePort));
    for (const [n, port] of ports.entries()) {
      const proxy = await startTcpProxy(this.#database.port);
      this.#proxies.push(proxy);
      const args = [
        "--port",
        String(port),
        "--database-connections",
        "6",
        "--sql-connections",
        "4",
        "--snapshot-interval",
        "5",
        "--cors-origin",
        "*",
      ];
      const dataDir = join(this.#directory, String(n));
      const server = new TestServer({
        databaseUrl: proxy.url(this.#database.url),
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
    await this.#replicas?.close();
    await this.#nginx?.stop();
    for (const server of this.#servers) await server.end("SIGKILL");
    for (const proxy of this.#proxies) await proxy.close();
    await this.#database?.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async run(): Promise<ClusterReport> {
    const { clients, seed, rounds } = this.#options;
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
    if (this.#options.replicas !== undefined)
      this.#replicas = await workload.openReplicas(`http://127.0.0.1:${this.#nginx.port}`, this.#options.replicas);
    const endsAt = performance.now() + 60_000 * (this.#options.minutes ?? Number.POSITIVE_INFINITY);
    for (let round = 0; round < rounds && performance.now() < endsAt; round++) {
      for (const event of this.#options.events ?? CLUSTER_EVENTS) {
        await this.#beCalm();
        await this.#happen(event);
        await Promise.all(this.#servers.map((server) => server.untilReady()));
        await this.#settle();
        if (workload.recorder.faults.length > 0) round = rounds;
      }
    }
    await this.#beCalm();
    await this.#settle();
    // Each server by itself: its answers against the records.
    for (const server of this.#servers) await workload.inspect(server.port);
    await workload.finish(this.#nginx.port);
    const { operations, answered, keysJudged, retired, recordsAudited, lostWrites, faults, unexpected } = workload.recorder;
    const seen = { operations, answered, keysJudged, keysAudited: retired.size, recordsAudited, lostWrites, faults, unexpected };
    return { ...seen, events: this.#events, recoveriesMs: this.#recoveriesMs, replicaPhases: this.#replicas?.phases ?? {} };
  }

  async #beCalm(): Promise<void> {
    this.#running = this.#workload.run(this.#nginx.port);
    await this.#work(this.#options.calmOperations);
  }

  /** Without clients, until no server and no database works on anything: requests without an answer have no more effect. */
  async #settle(): Promise<void> {
    this.#workload.stop();
    await this.#running;
    for (const server of this.#servers)
      await until("the server works on nothing", async () =>
        (await server.get("/metrics")).text.includes("lodestone_http_requests_in_progress 0\n"),
      );
    await this.#database.untilNothingIsOlder();
    this.#workload.recorder.settle();
  }

  /** Until the clients have got so many more answers. */
  async #work(answers: number): Promise<void> {
    const { recorder } = this.#workload;
    const enough = recorder.operations + answers;
    await until(`${answers} more operations`, () => recorder.operations >= enough);
  }

  #happen(event: ClusterEvent): Promise<void> {
    switch (event) {
      case "kill":
        return this.#kill();
      case "restart":
        return this.#restart();
      case "replica":
        return this.#restartReplica();
      case "page":
        return this.#killPage();
      case "browser":
        return this.#killBrowser();
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
    await this.#work(AFFECTED_OPERATIONS);
    await this.#servers[n]!.start();
  }

  async #restart(): Promise<void> {
    const n = this.#random.below(SERVERS);
    this.#tell(`server ${n} is stopped and started`);
    await this.#servers[n]!.end("SIGTERM");
    await this.#servers[n]!.start();
  }

  async #restartReplica(): Promise<void> {
    const programs = this.#replicas?.programs ?? 0;
    if (programs === 0) return;
    const n = this.#random.below(programs);
    this.#tell(`replica ${n} is closed and opened`);
    await this.#replicas!.restartProgram(n);
  }

  async #killPage(): Promise<void> {
    const pages = this.#replicas?.pages ?? 0;
    if (pages === 0) return;
    const n = this.#random.below(pages);
    this.#tell(`page ${n} is killed`);
    await this.#replicas!.killPage(n);
  }

  async #killBrowser(): Promise<void> {
    if ((this.#replicas?.pages ?? 0) === 0) return;
    this.#tell("the browser is killed");
    await this.#replicas!.killBrowser();
  }

  async #slowNetwork(): Promise<void> {
    const n = this.#random.below(SERVERS);
    this.#tell(`the network of server ${n} is slow`);
    await this.#proxies[n]!.forward(this.#database.port, 30);
    await this.#work(AFFECTED_OPERATIONS);
    await this.#proxies[n]!.forward(this.#database.port);
  }

  async #lostPackets(): Promise<void> {
    const n = this.#random.below(SERVERS);
    this.#tell(`the network of server ${n} loses every packet`);
    await this.#proxies[n]!.swallow();
    await until("the server notices", async () => (await this.#servers[n]!.get(`${ITEMS}/data/nobody`)).status === 503);
    await this.#proxies[n]!.forward(this.#database.port);
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
    await this.#database.promote();
    await this.#recover();
    await this.#database.renewStandby();
  }

  /** What the standby had not received is lost, and the history says where that begins. */
  async #promoteAsynchronous(): Promise<void> {
    this.#tell("the asynchronous standby is promoted");
    await this.#database.makeAsynchronous();
    const commits = await KnownCommits.start(this.#database.port);
    try {
      await commits.untilReceivedBy(this.#database.standby.port);
      await this.#database.standby.link.refuse();
      await commits.untilMore();
      const { recorder } = this.#workload;
      // One of each client may have begun before.
      const enough = recorder.answeredWrites + this.#options.clients + LOST_WRITES;
      await until("the standby lacks writes", () => recorder.answeredWrites >= enough);
    } finally {
      await commits.stop();
    }
    const cutOffMs = performance.now();
    for (const proxy of this.#proxies) await proxy.refuse();
    await this.#database.promote();
    this.#workload.promoted({ ...(await commits.endOn(this.#database.port)), cutOffMs, reachedMs: performance.now() });
    await this.#recover();
    await this.#untilAllFollow();
    this.#workload.recorder.whole();
    await this.#database.renewStandby();
  }

  /** A strong search of a server that holds whole tables, or its part of them, needs its index to be of the new primary. */
  async #untilAllFollow(): Promise<void> {
    for (const server of this.#servers)
      while ((await server.post(`${ITEMS}/vectorSearch`, searchBody("nobody", "strong"))).status !== 200) await sleep(50);
    await this.#replicas?.untilCurrent();
  }

  async #recover(): Promise<void> {
    for (const proxy of this.#proxies) await proxy.forward(this.#database.port);
    const startedAt = performance.now();
    const sinceThen = (): number => Math.round(performance.now() - startedAt);
    const statement = 'UPDATE "ballast" SET "embedding" = "embedding" WHERE "id" = $1';
    const instants = await Promise.all(
      this.#servers.map(async (server) => {
        await server.untilReady();
        const readyMs = sinceThen();
        while ((await server.post("/db/soak:main/sql", { statement, params: ["x"] })).status !== 200) await sleep(50);
        return { readyMs, writtenMs: sinceThen() };
      }),
    );
    this.#recoveriesMs.push(sinceThen());
    const each = instants.map(({ readyMs, writtenMs }) => `${readyMs} and ${writtenMs}`).join(", ");
    this.#tell(`whole again after ${this.#recoveriesMs.at(-1)} ms (each server ready, and has written, after ${each})`);
  }

  #tell(event: string): void {
    this.#events.push(event);
    this.#options.onEvent?.(event);
  }
}
