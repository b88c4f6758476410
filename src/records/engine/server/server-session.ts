/** A pooled connection, held for one unit of work. */

import type { ClientBase, PoolClient, QueryResult } from "pg";
import { VECTORS_IN_PROTOCOL } from "../../binary-arrays.ts";
import { runBounded } from "../bounded-query.ts";
import { copyOut } from "../copy-out.ts";
import type { BoundedQuery, BoundedResult, QueryOptions, TransactionConnection } from "../engine.ts";
import { SessionReadings } from "../reading.ts";
import { querySession } from "../session-query.ts";
import { destroyConnection, streamOf } from "./database-watch.ts";

/** What the first statements on a connection found; see sessionStatements. */
export interface SessionStart {
  readonly processId: number;
  readonly state: string;
}

const starts = new WeakMap<ClientBase, SessionStart>();

export const rememberStart = (client: ClientBase, start: SessionStart): unknown => starts.set(client, start);

export class ServerSession implements TransactionConnection {
  readonly vectors = VECTORS_IN_PROTOCOL;
  readonly #client: PoolClient;
  readonly #readings = new SessionReadings();
  #failure: Error | null = null;
  readonly #onError = (error: Error): void => {
    this.#failure ??= error;
  };

  /** Runs before the driver gets the bytes and assembles a row that may be too large for memory. */
  readonly #onData = (chunk: Buffer): void => {
    const reading = this.#readings.current;
    if (reading !== null && !reading.received(chunk)) this.end(reading.refusal!);
  };

  constructor(client: PoolClient) {
    this.#client = client;
    client.on("error", this.#onError);
    streamOf(client).prependListener("data", this.#onData);
  }

  /** Why the connection cannot be used again; null while it can. */
  get failure(): Error | null {
    return this.#failure;
  }

  query<Row extends object>(text: string, values?: readonly unknown[], options: QueryOptions = {}): Promise<QueryResult<Row>> {
    return this.#send(() => querySession(this.#client, this.#readings, text, values, options));
  }

  queryBounded(query: BoundedQuery): Promise<BoundedResult> {
    return this.#send(() => this.#readings.run(query.budget, false, () => runBounded(this.#client, query)));
  }

  copyOut(select: string): Promise<Buffer> {
    return this.#send(() => this.#readings.run(undefined, false, () => copyOut(this.#client, select)));
  }

  async #send<Result>(run: () => Promise<Result>): Promise<Result> {
    if (this.#failure !== null) throw this.#failure;
    try {
      return await run();
    } catch (error) {
      throw this.#failure ?? error;
    }
  }

  /** undefined for a connection that was not prepared. */
  get processId(): number | undefined {
    return starts.get(this.#client)?.processId;
  }

  /** Everything that fails from now on fails for this reason. */
  invalidate(reason: Error): void {
    this.#failure ??= reason;
  }

  /**
   * Undoes what users' statements have left in the session, so that the next ones find it as these did. If
   * that fails, the connection is ended.
   *
   * @param reset  see resetStatements.
   */
  async discard(reset: string, reason: Error): Promise<void> {
    try {
      await this.#client.query("DISCARD ALL");
      const results = (await this.#client.query(reset)) as unknown as QueryResult<{ state: string }>[];
      if (results.at(-1)?.rows[0]?.state === starts.get(this.#client)?.state) return;
    } catch {
      // Ended below.
    }
    this.end(reason);
  }

  /**
   * Breaks the connection off. The server notices (client_connection_check_interval) and rolls back. What is
   * in flight rejects with `reason`.
   */
  end(reason: Error): void {
    this.#failure ??= reason;
    destroyConnection(this.#client);
  }

  release(): void {
    this.#client.off("error", this.#onError);
    streamOf(this.#client).off("data", this.#onData);
    this.#client.release(this.#failure ?? false);
  }
}
