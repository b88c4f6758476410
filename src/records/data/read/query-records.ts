/** POST …/query: the records that pass a filter, in order, a page at a time. One statement a page. */

import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { SLICE_UNITS, Slices } from "../../../threads/event-loop.ts";
import type { Connection } from "../../engine/engine.ts";
import type { AnswerOptions, JsonObject, QueryRequest, QueryResponse } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { Parameters, ROW } from "../sql-parts/bound-parameters.ts";
import { compileFilter } from "../sql-parts/filter-sql.ts";
import { compileProjection } from "../sql-parts/projection.ts";
import { readSelection } from "../sql-parts/selection.ts";
import { readSort } from "../sql-parts/sort.ts";
import { orderTerm, type SortTerm, seededOrder, sortTerms } from "../sql-parts/sort-sql.ts";
import { relation } from "../sql-parts/sql-names.ts";
import { encodeCursor, type Position } from "./cursor.ts";
import { behind } from "./keyset.ts";
import { type PagePlan, planPage } from "./page-request.ts";

interface Row {
  readonly record: JsonObject;
  readonly position: Position;
}

/** @throws {LodestoneError} INVALID: the message names the part of the request. */
export async function queryRecords(
  connection: Connection,
  branch: BranchInfo,
  table: TableInfo,
  request: QueryRequest,
  options: AnswerOptions = {},
): Promise<QueryResponse> {
  const plan = planPage(table, request);
  const query = new PageQuery(connection, branch, table, plan, options);
  const page = plan.tail ? await query.tail() : plan.fromEnd ? await query.lastRecords() : await query.firstRecords();
  const { filter, sort, columns, seed, size } = plan;
  const cursor = encodeCursor({ table: table.id, filter, sort, columns, seed, size, first: page.first, last: page.last });
  return { records: page.records, meta: { page: { cursor, more: page.more, size } } };
}

interface Page {
  readonly records: JsonObject[];
  readonly first: Position | null;
  readonly last: Position | null;
  readonly more: boolean;
}

class PageQuery {
  readonly #connection: Connection;
  readonly #branch: BranchInfo;
  readonly #table: TableInfo;
  readonly #plan: PagePlan;
  readonly #options: AnswerOptions;

  constructor(connection: Connection, branch: BranchInfo, table: TableInfo, plan: PagePlan, options: AnswerOptions) {
    this.#connection = connection;
    this.#branch = branch;
    this.#table = table;
    this.#plan = plan;
    this.#options = options;
  }

  async firstRecords(): Promise<Page> {
    const { size, offset, after } = this.#plan;
    const rows = await this.#rows({ reversed: false, limit: size + 1, offset });
    const more = rows.length > size;
    if (more) rows.pop();
    return page(rows, more, null, after);
  }

  /** Read backwards, so that the end costs as much as the beginning. */
  async lastRecords(): Promise<Page> {
    const { size, offset, before } = this.#plan;
    const rows = (await this.#rows({ reversed: true, limit: size, offset })).reverse();
    const last = rows.at(-1);
    const more = before !== null || offset > 0 ? await this.#anyBehind(last?.position ?? null) : false;
    return page(rows, more, before, null);
  }

  async tail(): Promise<Page> {
    const [row] = await this.#rows({ reversed: true, limit: 1, offset: 0 });
    return page([], false, null, row?.position ?? null);
  }

  async #anyBehind(position: Position | null): Promise<boolean> {
    const rows = await this.#rows({ reversed: false, limit: 1, offset: 0, after: position, before: null });
    return rows.length > 0;
  }

  async #rows(part: {
    reversed: boolean;
    limit: number;
    offset: number;
    after?: Position | null;
    before?: Position | null;
  }): Promise<Row[]> {
    const plan = this.#plan;
    const { after = plan.after, before = plan.before } = part;
    const parameters = new Parameters();
    const projection = compileProjection(this.#branch, readSelection(this.#branch, this.#table, plan.columns), ROW, this.#options);
    const where = [compileFilter(this.#branch, this.#table, plan.filter, ROW, parameters)];
    const terms = this.#terms();
    if (after !== null) where.push(behind(terms, this.#checked(after, terms), false, parameters));
    if (before !== null) where.push(behind(terms, this.#checked(before, terms), true, parameters));
    // The inner query finds the rows, so that only those of the page are turned into records. No column's name
    // contains a colon.
    const statement =
      `SELECT ${terms.map((_, index) => `${ROW}."k:${index}"`).join(", ")}, ${projection.sql} AS record ` +
      `FROM (SELECT ${ROW}.*, ${terms.map((term, index) => `(${term.sql})::text AS "k:${index}"`).join(", ")} ` +
      `FROM ${relation(this.#branch, this.#table)} AS ${ROW} WHERE ${where.join(" AND ")} ` +
      `ORDER BY ${terms.map((term) => orderTerm(term, part.reversed)).join(", ")} LIMIT ${part.limit} OFFSET ${part.offset}) AS ${ROW}`;
    const { rows } = await this.#run(statement, parameters);
    const slices = new Slices(SLICE_UNITS, this.#connection.budget?.caller);
    const read: Row[] = [];
    for (const row of rows) {
      const text = row.pop()!;
      read.push({ position: row, record: projection.decode(text) });
      if (slices.spend(text.length)) await slices.rest();
    }
    return read;
  }

  #terms(): SortTerm[] {
    const keys = readSort(this.#branch, this.#table, this.#plan.sort);
    return sortTerms(this.#branch, keys, ROW, seededOrder(ROW, this.#plan.seed));
  }

  #checked(position: Position, terms: readonly SortTerm[]): Position {
    const fits = position.length === terms.length && position.every((value, index) => value !== null || terms[index]!.nullable);
    if (fits) return position;
    throw unfit();
  }

  async #run(statement: string, parameters: Parameters): Promise<{ rows: string[][] }> {
    try {
      return await this.#connection.query<string[]>(statement, parameters.values, { raw: true, rowMode: "array" });
    } catch (error) {
      // Class 22, data exception: a text out of a cursor that its term's type cannot be.
      if (String((error as { code?: unknown }).code).startsWith("22") && (this.#plan.after ?? this.#plan.before) !== null)
        throw unfit(error);
      throw error;
    }
  }
}

function unfit(cause?: unknown): LodestoneError {
  return new LodestoneError("INVALID", "The cursor does not fit the table's current schema; start a new query.", { cause });
}

/** The cursor of an empty page is at the position that was asked for. */
function page(rows: readonly Row[], more: boolean, before: Position | null, after: Position | null): Page {
  return {
    records: rows.map((row) => row.record),
    first: rows[0]?.position ?? before,
    last: rows.at(-1)?.position ?? after,
    more,
  };
}
