/** A connection of a pool for the time of one unit of work. */
import type { PoolClient, QueryResult } from "pg";
import { runBounded } from "../bounded-query.ts";
import type { BoundedQuery, BoundedResult, QueryOptions, TransactionConnection } from "../engine.ts";
import { PARSED_TYPES, RAW_TYPES } from "../pg-types.ts";
import { destroyConnection } from "./database-watch.ts";

export class ServerSession implements TransactionConnection {
  readonly #client: PoolClient;
  #failure: Error | null = null;
  readonly #onError = (error: Error): void => {
    this.#failure ??= error;
  };

  readonly #onRelease: () => void;

  constructor(client: PoolClient, onRelease: () => void = () => {}) {
    this.#client = client;
    this.#onRelease = onRelease;
    client.on("error", this.#onError);
  }

  /** Why the connection cannot be used again; null while it can. */
  get failure(): Error | null {
    return this.#failure;
  }

  async query<Row extends object>(text: string, values?: readonly unknown[], options: QueryOptions = {}): Promise<QueryResult<Row>> {
    if (this.#failure !== null) throw this.#failure;
    try {
      return await this.#client.query<Row>({
        text,
        ...(values === undefined ? {} : { values: values as unknown[] }),
        types: options.raw === true ? RAW_TYPES : PARSED_TYPES,
        ...(options.rowMode === "array" ? { rowMode: "array" } : {}),
      } as Parameters<PoolClient["query"]>[0] & object as never);
    } catch (error) {
      throw this.#failure ?? error;
    }
  }

  async queryBounded(query: BoundedQuery): Promise<BoundedResult> {
    if (this.#failure !== null) throw this.#failure;
    try {
      return await runBounded(this.#client, query, (tooLong) => this.end(tooLong));
    } catch (error) {
      throw this.#failure ?? error;
    }
  }

  /** Breaks the connection off; the server notices (client_connection_check_interval) and rolls back. What is in flight rejects with `reason`. */
  end(reason: Error): void {
    this.#failure ??= reason;
    destroyConnection(this.#client);
  }

  release(): void {
    this.#client.off("error", this.#onError);
    this.#client.release(this.#failure ?? false);
    this.#onRelease();
  }
}
