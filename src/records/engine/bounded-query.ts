/**
 * Runs a query whose result is bounded in rows and bytes, on the extended protocol itself. PostgreSQL is
 * asked for at most `maxRows + 1` rows of the portal and computes no more of a SELECT than that. `pg`'s own
 * `rows` option keeps fetching to the end, and a cursor cannot hold the result of INSERT … RETURNING.
 *
 * The classes here run inside a transaction, one after the other on the same connection, with nothing between
 * them:
 * - DescribeQuery parses the (unnamed) statement and returns the types of its parameters.
 * - ExecuteQuery binds it and fetches the first rows. Further ExecuteQuery objects fetch on from the same
 *   portal: few rows first, then as many as should fit, judged by the size of those before. Rows that would
 *   be cut are therefore never computed.
 *
 * Why not `pg-cursor`: it binds in the message that parses, before PostgreSQL has told the types of the
 * parameters, and these decide how values are written. It could only replace ExecuteQuery, and every
 * statement would be parsed a second time.
 */
import type pg from "pg";
import type { SliceOptions } from "../../threads/event-loop.ts";
import type { BoundedQuery, BoundedResult } from "./engine.ts";
import { decodeTexts, hasLongText, UndecodedText, withEncodedTexts } from "./long-texts.ts";
import { longRowsOf, type ProtocolConnection, Submittable, submit } from "./protocol-connection.ts";

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
    connection.on("parameterDescription", onDescription);
    this.#stopListening = () => connection.off("parameterDescription", onDescription);
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

/** Rows fetched before anything is known of their size. */
const FIRST_ROWS = 4;
const MOST_TIMES_MORE = 16;

type RowValue = string | UndecodedText | null;

/** What a portal has returned so far, over all its fetches. */
class BoundedRows {
  readonly kept: RowValue[][] = [];
  readonly #maxRows: number;
  readonly #maxBytes: number;
  fields: BoundedResult["fields"] = [];
  received = 0;
  /** Something arrived that was not kept. */
  isCut = false;
  tag = "";
  #bytes = 0;

  constructor({ maxRows, maxBytes }: Pick<BoundedQuery, "maxRows" | "maxBytes">) {
    this.#maxRows = maxRows;
    this.#maxBytes = maxBytes;
  }

  add(row: RowValue[]): void {
    this.received++;
    if (this.isCut) return;
    for (const value of row) this.#bytes += (value instanceof UndecodedText ? value.byteLength : value?.length) ?? 0;
    if (this.kept.length === this.#maxRows || this.#bytes > this.#maxBytes) this.isCut = true;
    else this.kept.push(row);
  }

  /** Rows to ask for next: one more than may be kept, which shows whether there are more. */
  get wanted(): number {
    if (this.received === 0) return Math.min(FIRST_ROWS, this.#maxRows + 1);
    const fitting = Math.floor((this.received * (this.#maxBytes - this.#bytes)) / Math.max(1, this.#bytes)) + 1;
    return Math.min(this.#maxRows + 1 - this.received, fitting, MOST_TIMES_MORE * this.received);
  }
}

/** Fetches rows of the portal as PostgreSQL's text. Resolves to whether the portal has more. */
class ExecuteQuery extends Submittable<boolean> {
  readonly #values: readonly unknown[] | null;
  readonly #limit: number;
  readonly #rows: BoundedRows;
  #hasMore = false;

  /**
   * @param values  parameters to bind (texts, EncodedText and null), for the statement that DescribeQuery has
   *   parsed; null: continue with the portal as it is.
   * @param limit  maximum number of rows; 0: all.
   */
  constructor(values: readonly unknown[] | null, limit: number, rows: BoundedRows) {
    super();
    this.#values = values;
    this.#limit = limit;
    this.#rows = rows;
  }

  protected send(connection: ProtocolConnection): void {
    if (this.#values !== null) {
      connection.bind({ portal: "", statement: "", values: this.#values, binary: false, valueMapper: (value) => value });
      connection.describe({ type: "P", name: "" });
    }
    connection.execute({ portal: "", rows: this.#limit });
    connection.sync();
  }

  override handleRowDescription(message: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#rows.fields = message.fields.map(({ name, dataTypeID }) => ({ name, dataTypeID }));
  }

  override handleDataRow(message: { fields: RowValue[] }): void {
    this.#rows.add(message.fields);
  }

  override handleCommandComplete(message: { text: string }): void {
    this.#rows.tag = message.text;
  }

  override handlePortalSuspended(): void {
    this.#hasMore = true;
  }

  handleReadyForQuery(): void {
    this.resolve(this.#hasMore);
  }
}

/**
 * Only inside a transaction: portals do not outlive it.
 * @param slices  for the encoding and decoding of long texts.
 */
export async function runBounded(client: pg.ClientBase, query: BoundedQuery, slices?: SliceOptions): Promise<BoundedResult> {
  const run = <Result>(query: Submittable<Result>): Promise<Result> => submit(client, query);
  const values = query.values(await run(new DescribeQuery(query.text)));
  const bound = hasLongText(values) ? await withEncodedTexts(values, slices) : values;
  const rows = new BoundedRows(query);
  const longRows = longRowsOf(client);
  let hasMore = await run(new ExecuteQuery(bound, rows.wanted, rows));
  while (hasMore && !rows.isCut && rows.wanted > 0) hasMore = await run(new ExecuteQuery(null, rows.wanted, rows));
  const isCut = rows.isCut || hasMore;
  if (hasMore && query.countsAll) await run(new ExecuteQuery(null, 0, rows));
  const { fields, kept, received, tag } = rows;
  if (longRowsOf(client) > longRows) await decodeTexts(kept, slices);
  // A fetch's command tag counts the rows of that fetch, or, when none are returned, the rows changed.
  const rowCount = hasMore && !query.countsAll ? null : received > 0 ? received : countOf(tag);
  return { fields, rows: kept as (string | null)[][], isCut, rowCount };
}

/** The last number of a command tag: `SELECT 5`, `INSERT 0 3`. */
function countOf(tag: string): number | null {
  const match = /\d+$/.exec(tag);
  return match === null ? null : Number(match[0]);
}
