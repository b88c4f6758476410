/**
 * One caller sends hostile but valid requests to a server that others use. Then checks: did the process
 * survive and keep within its memory, were the others served, was every refusal one of the documented kinds,
 * and did no error leave a change. Used by hostile.test.ts (each kind once) and `npm run soak:hostile`.
 */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestServer } from "../support/server.ts";
import { KeyedClient, type Outcome } from "./hostile/client.ts";
import { HOSTILE_KINDS, type HostileRequest, hostileRequest } from "./hostile/hostile-requests.ts";
import { type Latencies, Others, type Wait } from "./hostile/others.ts";
import { BRANCH, type KeyName, keyOf, prepareStage, type StageSize } from "./hostile/stage.ts";
import { Random } from "./workload/random.ts";

export interface HostileRunOptions {
  /** Must have been started with the keys of `writeKeyFile`. */
  readonly server: TestServer;
  /** How long; without it until each kind has been sent once, however long that takes. */
  readonly seconds?: number;
  /** Concurrent hostile requests, all with one key. */
  readonly attackers: number;
  readonly seed: number;
  readonly size: StageSize;
  readonly key?: KeyName;
  readonly kinds?: readonly string[];
  readonly onProgress?: (line: string) => void;
}

export interface HostileReport {
  readonly requests: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** For each kind: how often it got which status, and the longest time it took. */
  readonly kinds: Readonly<Record<string, { readonly statuses: Readonly<Record<string, number>>; readonly maxMs: number }>>;
  readonly others: Readonly<Record<string, Latencies>>;
  readonly longestWaits: readonly Wait[];
  readonly othersRefused: Readonly<Record<string, number>>;
  readonly peakRssMegabytes: number;
  /** Medians of the quarters of the run: what rises from each to the next is never given back. */
  readonly rssMegabytes: readonly number[];
  readonly longestPauseMs: number;
  readonly exits: readonly string[];
  /** Responses with a 5xx that is not 503 or 504 with Retry-After. */
  readonly wrongErrors: readonly string[];
  readonly behindErrors: readonly string[];
  readonly isReadyAfterwards: boolean;
}

const IDLE_SOCKETS = 150;
const IDLE_FOR_MS = 10_000;
const OTHERS = 3;

export async function hostileRun(options: HostileRunOptions): Promise<HostileReport> {
  const run = new HostileRun(options);
  return run.run();
}

class HostileRun {
  readonly #options: HostileRunOptions;
  readonly #server: TestServer;
  readonly #random: Random;
  readonly #statuses = new Map<string, number>();
  readonly #kinds = new Map<string, { statuses: Record<string, number>; maxMs: number }>();
  readonly #underWay = new Set<HostileRequest>();
  readonly #exits: string[] = [];
  readonly #wrongErrors: string[] = [];
  readonly #behindErrors: string[] = [];
  readonly #judge: KeyedClient;
  #deck: string[] = [];
  #requests = 0;
  /** In kB, one a second. */
  readonly #rss: number[] = [];
  #peakRss = 0;
  #longestPauseMs = 0;
  #isStopped = false;
  #restarting: Promise<void> | undefined;

  constructor(options: HostileRunOptions) {
    this.#options = options;
    this.#server = options.server;
    this.#random = new Random(options.seed);
    this.#judge = new KeyedClient(this.#server.port, keyOf("judge"), 8);
  }

  async run(): Promise<HostileReport> {
    const { seconds, attackers, seed, size } = this.#options;
    await prepareStage(this.#judge, size, seed);
    const others = new Others(
      seed,
      () => [...this.#underWay].map(({ kind }) => kind),
      ({ kind, elapsedMs, endedAtMs, beside }) =>
        this.#options.onProgress?.(`WAIT ${Math.round(endedAtMs / 1_000)} s: ${kind} took ${elapsedMs} ms beside ${beside.join("; ")}`),
    );
    others.start(this.#server.port, OTHERS);
    const beside = [this.#watch(), this.#openIdleSockets()];
    const attacking = Promise.all(Array.from({ length: attackers }, () => this.#attack()));
    await (seconds === undefined ? attacking : sleep(seconds * 1_000));
    this.#isStopped = true;
    await Promise.all([attacking, ...beside]);
    await others.stop();
    this.#sampleMemory();
    const isReadyAfterwards = await this.#server.untilReady().then(
      () => true,
      () => false,
    );
    this.#judge.close();
    return {
      requests: this.#requests,
      statuses: Object.fromEntries([...this.#statuses].sort()),
      kinds: Object.fromEntries([...this.#kinds].sort()),
      others: others.latencies(),
      longestWaits: others.longestWaits,
      othersRefused: others.refused,
      peakRssMegabytes: Math.round(this.#peakRss / 1024),
      rssMegabytes: this.#rssOfQuarters(),
      longestPauseMs: this.#longestPauseMs,
      exits: this.#exits,
      wrongErrors: this.#wrongErrors,
      behindErrors: this.#behindErrors,
      isReadyAfterwards,
    };
  }

  async #attack(): Promise<void> {
    const client = new KeyedClient(this.#server.port, keyOf(this.#options.key ?? "hostile"));
    while (!this.#isStopped) {
      const request = this.#next();
      if (request === undefined) break;
      this.#underWay.add(request);
      // Half of the answers are compressed.
      const headers = { ...request.options?.headers, ...(this.#requests % 2 === 0 && { "accept-encoding": "gzip" }) };
      const body = request.method === "GET" ? undefined : request.body;
      const outcome = await client.send(request.method, request.path, body, { ...request.options, headers });
      this.#underWay.delete(request);
      this.#note(request, outcome);
      if (request.mark !== undefined) await this.#judgeWrite(request, outcome);
      // A client that is refused temporarily waits: the soak should get past the refusal.
      if (outcome.status === 429) await sleep(200 + this.#random.below(300));
      if (outcome.status === null) await this.#surviveExit(request);
    }
    client.close();
  }

  /** All kinds in a new order, repeatedly if the run has a time. */
  #next(): HostileRequest | undefined {
    if (this.#deck.length === 0) {
      if (this.#options.seconds === undefined && this.#requests > 0) return undefined;
      this.#deck = [...(this.#options.kinds ?? HOSTILE_KINDS)];
      for (let i = this.#deck.length - 1; i > 0; i--) {
        const j = this.#random.below(i + 1);
        [this.#deck[i], this.#deck[j]] = [this.#deck[j]!, this.#deck[i]!];
      }
    }
    return hostileRequest(this.#deck.pop()!, this.#random, `mark-${this.#options.seed}-${this.#requests++}`);
  }

  #note({ kind }: HostileRequest, { status, headers, head, elapsedMs }: Outcome): void {
    const told = String(status ?? "unanswered");
    this.#statuses.set(told, (this.#statuses.get(told) ?? 0) + 1);
    const entry = this.#kinds.get(kind) ?? { statuses: {}, maxMs: 0 };
    entry.statuses[told] = (entry.statuses[told] ?? 0) + 1;
    entry.maxMs = Math.max(entry.maxMs, Math.round(elapsedMs));
    this.#kinds.set(kind, entry);
    if (status === null || status < 500) return;
    if ((status === 503 || status === 504) && headers["retry-after"] !== undefined) return;
    this.#wrongErrors.push(`${status} to "${kind}": ${head.slice(0, 300)}`);
    this.#options.onProgress?.(`WRONG ${this.#wrongErrors.at(-1)}`);
  }

  async #judgeWrite({ kind, mark }: HostileRequest, { status, head }: Outcome): Promise<void> {
    const count = await this.#askUntilAnswered<{ records?: { n: number }[] }>({
      statement: 'SELECT count(*)::int AS n FROM "written" WHERE "mark" = $1',
      params: [mark],
    });
    const found = count?.records?.[0]?.n ?? 0;
    if (status !== null && status >= 400 && found > 0) {
      this.#behindErrors.push(`${status} to "${kind}", and ${found} records are there: ${head.slice(0, 300)}`);
      this.#options.onProgress?.(`BEHIND ${this.#behindErrors.at(-1)}`);
    }
    if (status !== null && status < 300 && found === 0 && count !== undefined)
      this.#behindErrors.push(`${status} to "${kind}", and nothing is there`);
    if (found > 0) await this.#askUntilAnswered({ statement: 'DELETE FROM "written" WHERE "mark" = $1', params: [mark] });
  }

  /** The checks may be refused temporarily like any request. undefined: the server does not recover. */
  async #askUntilAnswered<Body>(body: object): Promise<Body | undefined> {
    for (let attempt = 0; attempt < 100; attempt++) {
      const answer = await this.#judge.ask<Body>("POST", `${BRANCH}/sql`, body).catch(() => undefined);
      if (answer?.status === 200) return answer.body;
      await this.#restarting;
      await sleep(200);
    }
    return undefined;
  }

  /** Connections that announce a body and send none of it. */
  async #openIdleSockets(): Promise<void> {
    while (!this.#isStopped) {
      const sockets: Socket[] = Array.from({ length: IDLE_SOCKETS }, () => {
        const socket = connect(this.#server.port, "127.0.0.1");
        socket.on("error", () => {});
        socket.write(
          `POST ${BRANCH}/tables/others/query HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${keyOf(this.#options.key ?? "hostile")}\r\n` +
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        return socket;
      });
      for (let waitedMs = 0; waitedMs < IDLE_FOR_MS && !this.#isStopped; waitedMs += 500) await sleep(500);
      for (const socket of sockets) socket.destroy();
      for (let waitedMs = 0; waitedMs < IDLE_FOR_MS && !this.#isStopped; waitedMs += 500) await sleep(500);
    }
  }

  async #watch(): Promise<void> {
    for (let second = 1; !this.#isStopped; second++) {
      await sleep(1_000);
      this.#sampleMemory();
      if (!this.#server.isRunning) await this.#surviveExit();
      if (second % 5 === 0) await this.#samplePause();
      if (second % 30 === 0)
        this.#options.onProgress?.(
          `${second} s: ${this.#requests} hostile requests, RSS ${this.#rssOfQuarters().join(", ")} MB, peak ${Math.round(this.#peakRss / 1024)}, pause ${this.#longestPauseMs} ms`,
        );
    }
  }

  #sampleMemory(): void {
    try {
      const status = readFileSync(`/proc/${this.#server.pid}/status`, "utf8");
      const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0);
      this.#peakRss = Math.max(this.#peakRss, kilobytes("VmHWM"));
      this.#rss.push(kilobytes("VmRSS"));
    } catch {
      // The server has ended, which is noticed elsewhere.
    }
  }

  #rssOfQuarters(): number[] {
    const quarter = Math.ceil(this.#rss.length / 4);
    return [0, 1, 2, 3].flatMap((n) => {
      const sorted = this.#rss.slice(n * quarter, (n + 1) * quarter).toSorted((a, b) => a - b);
      return sorted.length === 0 ? [] : [Math.round(sorted[sorted.length >> 1]! / 1024)];
    });
  }

  async #samplePause(): Promise<void> {
    const client = new KeyedClient(this.#server.port, keyOf("judge"));
    const response = await fetch(`${this.#server.url}/metrics`, { headers: { authorization: `Bearer ${keyOf("judge")}` } }).catch(
      () => undefined,
    );
    client.close();
    const seconds = /^nodejs_eventloop_lag_max_seconds (\S+)/m.exec((await response?.text().catch(() => "")) ?? "")?.[1];
    this.#longestPauseMs = Math.max(this.#longestPauseMs, Math.round(Number(seconds ?? 0) * 1_000));
  }

  /** A server that has ended is restarted, and the run continues: one fault must not hide the next. */
  async #surviveExit(last?: HostileRequest): Promise<void> {
    await sleep(50);
    if (this.#server.isRunning) return;
    this.#restarting ??= this.#restart(last).finally(() => {
      this.#restarting = undefined;
    });
    await this.#restarting;
  }

  async #restart(last: HostileRequest | undefined): Promise<void> {
    const words = this.#server.log.split("\n").filter((line) => line !== "" && !line.startsWith('{"level":30'));
    this.#exits.push(`beside "${last?.kind ?? "?"}": ${words.slice(-6).join(" | ").slice(-800)}`);
    this.#options.onProgress?.(`EXIT ${this.#exits.at(-1)}`);
    await this.#server.start(["--port", String(this.#server.port)]);
  }
}
