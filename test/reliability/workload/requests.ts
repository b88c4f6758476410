/**
 * The context of a workload's request, and how responses are classified: carried out, known not to be, or
 * unknown.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Connection, type Reply } from "./connection.ts";
import type { Random } from "./random.ts";
import type { Recorder } from "./recorder.ts";

export type Sent =
  | ({ readonly kind: "answered" } & Reply)
  /** Carried out or not: there was no response, or one that does not tell. */
  | { readonly kind: "unknown" }
  /** Refused for lack of capacity, or never sent: certainly not carried out. */
  | { readonly kind: "refused" };

export interface ContextOptions {
  readonly port: number;
  readonly recorder: Recorder;
  readonly random: Random;
  /** How far behind a search may be. */
  readonly lagLimitMs: number;
  /** An eventual search may show half of a transaction for a moment: it asks several servers. */
  readonly mayTear: boolean;
  /** Share of requests whose client disconnects before the response. */
  readonly leaving: number;
  /** True while the test makes the server fail: then a 5xx is an unknown outcome, not a fault. */
  readonly mayFail: () => boolean;
}

export class RequestContext {
  readonly recorder: Recorder;
  readonly random: Random;
  readonly lagLimitMs: number;
  readonly mayTear: boolean;
  readonly #options: ContextOptions;
  readonly #connection: Connection;
  #lostInARow = 0;

  constructor(options: ContextOptions) {
    this.recorder = options.recorder;
    this.random = options.random;
    this.lagLimitMs = options.lagLimitMs;
    this.mayTear = options.mayTear;
    this.#options = options;
    this.#connection = new Connection(options.port);
  }

  async send(method: string, path: string, body?: unknown): Promise<Sent> {
    const leaves = this.random.next() < this.#options.leaving;
    const reply = await this.#connection.send(method, path, body, leaves ? this.random.next() * 10 : undefined);
    if (reply === "unsent" || (reply === null && !leaves)) this.#lostInARow++;
    else this.#lostInARow = 0;
    if (reply === "unsent") return { kind: "refused" };
    if (reply === null) return { kind: "unknown" };
    if (reply.status === 429) {
      const resetSeconds = Number(reply.headers["x-ratelimit-reset"]);
      if (!(resetSeconds >= 1)) this.report(`429 with X-RateLimit-Reset ${reply.headers["x-ratelimit-reset"]}`);
      this.recorder.refusedForLoad++;
      return { kind: "refused" };
    }
    if (reply.status >= 500) {
      if (!this.#options.mayFail()) this.report(`${method} ${path} answers ${reply.status} ${JSON.stringify(reply.body)}`);
      // A client that retries at once would only get the same response.
      await sleep(20 + this.random.below(60));
      return reply.status === 503 && /Nothing was changed/.test(reply.text) ? { kind: "refused" } : { kind: "unknown" };
    }
    return { kind: "answered", ...reply };
  }

  /** False, and recorded, if the response has none of the possible statuses. */
  expect(reply: Reply, ...statuses: number[]): boolean {
    if (statuses.includes(reply.status)) return true;
    this.report(`expected ${statuses.join(" or ")}, got ${reply.status} ${JSON.stringify(reply.body)}`);
    return false;
  }

  report(message: string): void {
    this.recorder.unexpected.push(message);
  }

  /** One connection may break; several in a row mean that the server is gone. */
  get serverIsGone(): boolean {
    return this.#lostInARow >= 2;
  }

  close(): void {
    this.#connection.close();
  }
}
