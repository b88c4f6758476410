/**
 * Seeded clients over HTTP against one server, through any number of restarts. The clients of a cell share
 * keys, so that they interfere with each other. Keys are retired after some hundred operations, checked, and
 * audited from then on.
 */
import { LIMIT_MS } from "../../support/patience.ts";
import type { Action, Promotion } from "../checker/history.ts";
import { audit } from "./audit.ts";
import { GROUP_REQUESTS, readGroupBySql, searchGroup } from "./group-requests.ts";
import { Random } from "./random.ts";
import { COUNTER_REQUESTS, RECORD_REQUESTS, readCounter, readRecord, searchRecord } from "./record-requests.ts";
import { Recorder } from "./recorder.ts";
import { type ReplicaCounts, ReplicaSet } from "./replica-set.ts";
import { RequestContext } from "./requests.ts";

type Perform = (context: RequestContext, key: string) => Promise<Action | undefined>;
type Kind = "group" | "record" | "counter";

const REQUESTS: Record<Kind, readonly (readonly [number, Perform])[]> = {
  group: GROUP_REQUESTS,
  record: RECORD_REQUESTS,
  counter: COUNTER_REQUESTS,
};

/** Requests that show the state of a key for certain; the last one also asks the search store. */
const INSPECTIONS: Record<Kind, readonly Perform[]> = {
  group: [readGroupBySql, searchGroup("strong")],
  record: [readRecord, searchRecord],
  counter: [readCounter],
};

export interface WorkloadOptions {
  readonly seed: number;
  readonly clients: number;
  /** Clients that share keys. */
  readonly cellSize?: number;
  readonly operationsPerKey?: number;
  readonly lagLimitMs?: number;
  readonly leaving?: number;
  readonly mayFail?: () => boolean;
  /** Whether requests go to one server or, through a balancer, to any of several. */
  readonly servers?: "one" | "many";
  /** The servers hold search parts: an eventual search may show half of a transaction for a moment. */
  readonly parts?: boolean;
}

interface Slot {
  readonly kind: Kind;
  key: string;
}

const KINDS_OF_CELL: readonly Kind[] = ["group", "group", "record", "record", "record", "counter"];

export class Workload {
  readonly recorder: Recorder;
  readonly #options: Required<WorkloadOptions>;
  readonly #cells: Slot[][];
  readonly #randoms: Random[];
  readonly #retiring = new Map<string, Kind>();
  readonly #requests: Record<Kind, readonly (readonly [number, Perform])[]> = { ...REQUESTS };
  #replicas: ReplicaSet | undefined;
  #keysMade = 0;
  #stopped = true;

  constructor(options: WorkloadOptions) {
    this.#options = {
      cellSize: 8,
      operationsPerKey: 300,
      // Tests do not depend on the clock; a soak on a quiet machine gives a limit.
      lagLimitMs: LIMIT_MS,
      leaving: 0.005,
      mayFail: () => false,
      servers: "one",
      parts: false,
      ...options,
    };
    this.recorder = new Recorder(this.#options.servers);
    const cells = Math.ceil(options.clients / this.#options.cellSize);
    this.#cells = Array.from({ length: cells }, () => KINDS_OF_CELL.map((kind) => ({ kind, key: this.#newKey(kind) })));
    this.#randoms = Array.from({ length: options.clients }, (_, client) => new Random(options.seed * 1_000 + client));
  }

  /** From now on clients read replicas, too. They are the caller's to close. */
  async openReplicas(url: string, counts: ReplicaCounts): Promise<ReplicaSet> {
    const replicas = await ReplicaSet.open(url, counts);
    this.#replicas = replicas;
    for (const kind of ["group", "record"] as const)
      this.#requests[kind] = [...REQUESTS[kind], [14, replicas.read("eventual")], [6, replicas.read("current")]];
    return replicas;
  }

  /** Runs all clients until `stop`, or until their server is gone. */
  async run(port: number): Promise<void> {
    this.#stopped = false;
    await Promise.all(this.#randoms.map((random, client) => this.#runClient(port, random, client)));
  }

  stop(): void {
    this.#stopped = true;
  }

  /** The server that `run` spoke to has ended. */
  serverEnded(): void {
    this.stop();
    this.recorder.settle();
  }

  /** An asynchronous standby has become the primary: keys whose last writes may be lost are inspected once more. */
  promoted(promotion: Omit<Promotion, "wholeMs">): void {
    for (const key of this.recorder.promoted(promotion)) this.#retiring.set(key, kindOf(key));
  }

  /**
   * Reads every key from the records and from the search store. Retired keys must be as they were left. For a
   * server that nobody else uses.
   */
  async inspect(port: number): Promise<void> {
    const context = this.#contextOf(port, this.#randoms[0]!, 0);
    const kinds = new Map(this.#cells.flat().map(({ key, kind }) => [key, kind]));
    for (const [key, kind] of [...kinds, ...this.#retiring]) await this.#inspectKey(context, key, kind);
    const items = await audit(context);
    if (items !== undefined) await this.#replicas?.audit(context, items);
    context.close();
  }

  /** Inspects and checks what has not been checked yet. */
  async finish(port: number): Promise<void> {
    await this.inspect(port);
    for (const key of this.recorder.keys) this.recorder.judge(key);
    this.#retiring.clear();
  }

  async #runClient(port: number, random: Random, client: number): Promise<void> {
    const context = this.#contextOf(port, random, this.#options.leaving);
    const cell = this.#cells[Math.floor(client / this.#options.cellSize)]!;
    while (!this.#stopped && !context.serverIsGone) {
      const slot = random.of(cell);
      const before = this.recorder.operationsOn(slot.key);
      if (before >= this.#options.operationsPerKey) {
        this.#retiring.set(slot.key, slot.kind);
        slot.key = this.#newKey(slot.kind);
      }
      await this.#perform(context, client, slot.key, draw(this.#requests[slot.kind], random));
      await this.#retireIdle(context, client);
    }
    context.close();
  }

  /** One client at a time handles keys on which nobody starts anything any more. */
  async #retireIdle(context: RequestContext, client: number): Promise<void> {
    if (client % this.#options.cellSize !== 0) return;
    for (const [key, kind] of this.#retiring) {
      if (this.recorder.isBusy(key)) continue;
      this.#retiring.delete(key);
      await this.#inspectKey(context, key, kind);
      if (context.serverIsGone) this.#retiring.set(key, kind);
      else this.recorder.judge(key);
      break;
    }
  }

  async #inspectKey(context: RequestContext, key: string, kind: Kind): Promise<void> {
    for (const inspection of INSPECTIONS[kind]) await this.#perform(context, -1, key, inspection);
  }

  async #perform(context: RequestContext, client: number, key: string, perform: Perform): Promise<void> {
    await this.recorder.record(client, key, async () => {
      try {
        return await perform(context, key);
      } catch (error) {
        context.report(`${key}: ${String(error)}`);
        return undefined;
      }
    });
  }

  #contextOf(port: number, random: Random, leaving: number): RequestContext {
    const { lagLimitMs, mayFail, parts } = this.#options;
    return new RequestContext({ port, recorder: this.recorder, random, lagLimitMs, mayTear: parts, leaving, mayFail });
  }

  #newKey(kind: Kind): string {
    return `${kind[0]}${this.#keysMade++}`;
  }
}

function kindOf(key: string): Kind {
  return KINDS_OF_CELL.find((kind) => kind[0] === key[0])!;
}

function draw(requests: readonly (readonly [number, Perform])[], random: Random): Perform {
  let at = random.next() * requests.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, perform] of requests) {
    at -= weight;
    if (at < 0) return perform;
  }
  return requests[0]![1];
}
