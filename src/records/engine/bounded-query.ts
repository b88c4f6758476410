/**
 * A query whose result is bounded in rows and bytes, on the extended protocol itself: PostgreSQL is asked for `maxRows + 1` rows of the portal and computes
 * no more of a SELECT than that. `pg`'s own `rows` option fetches on until the end, and cursors cannot hold what INSERT … RETURNING gives.
 *
 * Two submittables for a `pg` client, one after the other on the same connection with nothing between them: DescribeQuery parses
 * the (unnamed) statement and tells the types of its parameters, ExecuteQuery binds and runs it.
 */
import type { Duplex } from "node:stream";
import type pg from "pg";
import { LodestoneError } from "../../errors.ts";
import type { BoundedQuery, BoundedResult } from "./engine.ts";

interface ProtocolConnection {
  readonly stream: Duplex;
  parse(query: { name: string; text: string; types: number[] }, more?: boolean): void;
  describe(message: { type: "S" | "P"; name: string }, more?: boolean): void;
  bind(config: {
    portal: string;
    statement: string;
    values: readonly (string | null)[];
    binary: boolean;
    valueMapper: (value: unknown) => unknown;
  }): void;
  execute(config: { portal: string; rows: number }, more?: boolean): void;
  sync(): void;
}

/** What a `pg` client calls on the query that it runs. */
abstract class Submittable<Result> {
  readonly done: Promise<Result>;
  protected resolve!: (result: Result) => void;
  protected reject!: (error: Error) => void;
  /** pg replaces an absent callback; ours is the promise. */
  callback = (): void => {};

  constructor() {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  submit(connection: ProtocolConnection): Error | null {
    connection.stream.cork();
    try {
      this.send(connection);
    } finally {
      connection.stream.uncork();
    }
    return null;
  }

  protected abstract send(connection: ProtocolConnection): void;
  abstract handleReadyForQuery(connection: ProtocolConnection): void;

  handleError(error: Error, _connection: ProtocolConnection): void {
    this.reject(error);
  }
  handleRowDescription(_message: unknown): void {}
  handleDataRow(_message: unknown): void {}
  handleCommandComplete(_message: unknown, _connection: ProtocolConnection): void {}
  handlePortalSuspended(_connection: ProtocolConnection): void {}
  handleEmptyQuery(_connection: ProtocolConnection): void {}
  handleCopyInResponse(_connection: ProtocolConnection): void {}
  handleCopyData(_message: unknown, _connection: ProtocolConnection): void {}
}

/** Resolves to the type oid of each parameter. */
class DescribeQuery extends Submittable<number[]> {
  readonly #text: string;
  #types: number[] = [];
  #stopListening: () => void = () => {};

  constructor(text: string) {
    super();
    this.#text = text;
  }

  protected send(connection: ProtocolConnection): void {
    const onDescription = (message: { dataTypeIDs: number[] }): void => {
      this.#types = message.dataTypeIDs;
    };
    const events = connection as unknown as NodeJS.EventEmitter;
    events.on("parameterDescription", onDescription);
    this.#stopListening = () => events.off("parameterDescription", onDescription);
    connection.parse({ name: "", text: this.#text, types: [] });
    connection.describe({ type: "S", name: "" });
    connection.sync();
  }

  override handleError(error: Error): void {
    this.#stopListening();
    this.reject(error);
  }

  handleReadyForQuery(): void {
    this.#stopListening();
    this.resolve(this.#types);
  }
}

export interface Bounds {
  readonly maxRows: number;
  /** Rows are cut when their values together are longer. */
  readonly maxBytes: number;
  /** One row that is longer than this ends the connection: it would have to be held whole. */
  readonly maxRowBytes: number;
}

/** Runs what DescribeQuery has parsed. Rows come as PostgreSQL's text. */
class ExecuteQuery extends Submittable<BoundedResult & { readonly received: number }> {
  readonly #values: readonly (string | null)[] | null;
  readonly #bounds: Bounds;
  readonly #onOversize: () => void;
  readonly #rows: (string | null)[][] = [];
  #fields: BoundedResult["fields"] = [];
  #bytes = 0;
  #received = 0;
  #isCut = false;
  #tag = "";
  #stopCounting: () => void = () => {};
  #bytesSinceRow = 0;

  /**
   * @param values  null: go on with the portal of the ExecuteQuery before, to its end.
   * @param onOversize  a single row exceeds `maxRowBytes`: the caller must end the connection.
   */
  constructor(values: readonly (string | null)[] | null, bounds: Bounds, onOversize: () => void) {
    super();
    this.#values = values;
    this.#bounds = bounds;
    this.#onOversize = onOversize;
  }

  protected send(connection: ProtocolConnection): void {
    const count = (chunk: Buffer): void => {
      this.#bytesSinceRow += chunk.length;
      if (this.#bytesSinceRow > this.#bounds.maxRowBytes) {
        this.#stopCounting();
        this.#onOversize();
      }
    };
    connection.stream.prependListener("data", count);
    this.#stopCounting = () => connection.stream.off("data", count);
    if (this.#values === null) connection.execute({ portal: "", rows: 0 });
    else {
      connection.bind({ portal: "", statement: "", values: this.#values, binary: false, valueMapper: (value) => value });
      connection.describe({ type: "P", name: "" });
      connection.execute({ portal: "", rows: this.#bounds.maxRows + 1 });
    }
    connection.sync();
  }

  override handleRowDescription(message: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#fields = message.fields.map(({ name, dataTypeID }) => ({ name, dataTypeID }));
  }

  override handleDataRow(message: { fields: (string | null)[] }): void {
    this.#bytesSinceRow = 0;
    this.#received++;
    if (this.#isCut) return;
    for (const value of message.fields) this.#bytes += value?.length ?? 0;
    if (this.#rows.length === this.#bounds.maxRows || this.#bytes > this.#bounds.maxBytes) this.#isCut = true;
    else this.#rows.push(message.fields);
  }

  override handleCommandComplete(message: { text: string }): void {
    this.#tag = message.text;
  }

  override handlePortalSuspended(): void {
    this.#isCut = true;
  }

  override handleError(error: Error): void {
    this.#stopCounting();
    this.reject(error);
  }

  handleReadyForQuery(): void {
    this.#stopCounting();
    this.resolve({ fields: this.#fields, rows: this.#rows, received: this.#received, isCut: this.#isCut, rowCount: countOf(this.#tag) });
  }
}

/** @param end  must end the connection at once; what is in flight rejects with the error. */
export async function runBounded(
  client: pg.ClientBase,
  query: BoundedQuery,
  end: (reason: LodestoneError) => void,
): Promise<BoundedResult> {
  const describe = new DescribeQuery(query.text);
  client.query(describe as unknown as pg.Submittable);
  const values = query.values(await describe.done);
  const bounds = { maxRows: query.maxRows, maxBytes: query.maxBytes, maxRowBytes: query.maxBytes * 4 };
  const onOversize = (): void =>
    end(
      new LodestoneError(
        "INVALID",
        `A row of the result is longer than ${Math.floor(bounds.maxRowBytes / 2 ** 20)} MiB; select less of it.`,
      ),
    );
  const execute = new ExecuteQuery(values, bounds, onOversize);
  client.query(execute as unknown as pg.Submittable);
  const { received, ...result } = await execute.done;
  if (!query.countsAll || result.rowCount !== null) return result;
  const rest = new ExecuteQuery(null, { ...bounds, maxRows: 0 }, onOversize);
  client.query(rest as unknown as pg.Submittable);
  return { ...result, rowCount: received + ((await rest.done).rowCount ?? 0) };
}

/** The last number of a command tag: `SELECT 5`, `INSERT 0 3`. */
function countOf(tag: string): number | null {
  const match = /\d+$/.exec(tag);
  return match === null ? null : Number(match[0]);
}
