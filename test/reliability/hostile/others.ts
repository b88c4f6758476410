/**
 * Ordinary users of the server beside the hostile one: small requests with a key of their own, each measured.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../workload/random.ts";
import { KeyedClient, type Outcome } from "./client.ts";
import { BRANCH, keyOf, VECTOR } from "./stage.ts";

/** One of the longest waits. */
export interface Wait {
  readonly kind: string;
  readonly elapsedMs: number;
  /** Since the others began. */
  readonly endedAtMs: number;
  /** The hostile requests under way when it ended. */
  readonly beside: readonly string[];
}

const LONGEST_WAITS = 12;
const LONG_WAIT_MS = 2_000;
const TABLE = `${BRANCH}/tables/others`;

export interface Latencies {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export class Others {
  readonly #clients: KeyedClient[] = [];
  readonly #random: Random;
  readonly #pauseMs: number;
  readonly #latencies = new Map<string, number[]>();
  readonly #refused = new Map<string, number>();
  readonly #beside: () => readonly string[];
  readonly #onLongWait: (wait: Wait) => void;
  readonly #startedAt = performance.now();
  #longest: Wait[] = [];
  #isStopped = false;
  #running: Promise<unknown> = Promise.resolve();

  /** @param onLongWait  told of each wait of more than LONG_WAIT_MS, when it has ended. */
  constructor(seed: number, beside: () => readonly string[] = () => [], onLongWait: (wait: Wait) => void = () => {}, pauseMs = 30) {
    this.#beside = beside;
    this.#onLongWait = onLongWait;
    this.#random = new Random(seed);
    this.#pauseMs = pauseMs;
  }

  start(port: number, clients: number): void {
    this.#running = Promise.all(
      Array.from({ length: clients }, (_, i) => {
        const client = new KeyedClient(port, keyOf("others"));
        this.#clients.push(client);
        return this.#work(client, i);
      }),
    );
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    for (const client of this.#clients) client.close();
  }

  /** Status and kind of requests that failed, with counts. */
  get refused(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#refused);
  }

  get longestWaits(): readonly Wait[] {
    return this.#longest;
  }

  /** For each kind, and for all together. */
  latencies(): Readonly<Record<string, Latencies>> {
    const all = [...this.#latencies.values()].flat();
    return Object.fromEntries([...this.#latencies, ["all", all] as const].map(([kind, list]) => [kind, summary(list)]));
  }

  async #work(client: KeyedClient, number: number): Promise<void> {
    for (let round = 0; !this.#isStopped; round++) {
      const id = `o${this.#random.below(500)}`;
      await this.#measure("get", client.send("GET", `${TABLE}/data/${id}`));
      const queryVector = Array.from({ length: VECTOR.others }, () => this.#random.next());
      await this.#measure("search", client.send("POST", `${TABLE}/vectorSearch`, JSON.stringify({ column: "v", queryVector, size: 5 })));
      await this.#measure(
        "insert",
        client.send("PUT", `${TABLE}/data/new${number}-${round % 100}`, JSON.stringify({ n: round, v: queryVector })),
      );
      await this.#measure(
        "query",
        client.send("POST", `${TABLE}/query`, JSON.stringify({ filter: { n: { $gt: 400 } }, page: { size: 20 } })),
      );
      await sleep(this.#pauseMs);
    }
  }

  async #measure(kind: string, sent: Promise<Outcome>): Promise<void> {
    const { status, elapsedMs, head } = await sent;
    const list = this.#latencies.get(kind) ?? [];
    this.#latencies.set(kind, list);
    list.push(elapsedMs);
    const isAmongLongest = this.#longest.length < LONGEST_WAITS || elapsedMs > this.#longest.at(-1)!.elapsedMs;
    if (isAmongLongest || elapsedMs > LONG_WAIT_MS) {
      const endedAtMs = Math.round(performance.now() - this.#startedAt);
      const wait = { kind, elapsedMs: Math.round(elapsedMs), endedAtMs, beside: this.#beside() };
      this.#longest = [...this.#longest, wait].toSorted((a, b) => b.elapsedMs - a.elapsedMs).slice(0, LONGEST_WAITS);
      if (elapsedMs > LONG_WAIT_MS) this.#onLongWait(wait);
    }
    if (status !== null && status < 300) return;
    const what = `${kind} ${status ?? "unanswered"} ${(/"message":"([^"]{0,120})/.exec(head)?.[1] ?? "").replace(/\d+/g, "n")}`;
    this.#refused.set(what, (this.#refused.get(what) ?? 0) + 1);
  }
}

function summary(list: readonly number[]): Latencies {
  const sorted = list.toSorted((a, b) => a - b);
  const at = (quantile: number): number => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))] ?? 0);
  return { count: list.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
}
