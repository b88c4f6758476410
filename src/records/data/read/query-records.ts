/** POST …/query: the records that pass a filter, in order, a page at a time. One statement a page. */
import { randomBytes } from "node:crypto";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted } from "../../../errors/value-in-words.ts";
import type { Connection } from "../../engine/engine.ts";
import { DEFAULT_PAGE_SIZE } from "../../request-limits.ts";
import type { AnswerOptions, JsonObject, JsonValue, QueryRequest, QueryResponse, Selection } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { compileProjection, decodeRecords } from "../sql-parts/projection.ts";
import { ALL_COLUMNS, readSelection } from "../sql-parts/selection.ts";
import { orderTerm, readSort, type SortTerm, seededOrder, sortTerms } from "../sql-parts/sort.ts";
import { compileFilter, Parameters, ROW, relation } from "../sql-parts/statement-parts.ts";
import { behind, type Cursor, decodeCursor, encodeCursor, type Position } from "./cursor.ts";

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
    const texts = rows.map((row) => row.pop()!);
    const records = await decodeRecords(this.#connection, projection, texts);
    return rows.map((position, index) => ({ position, record: records[index]! }));
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

/** A page, including what its cursor contains. */
interface PagePlan {
  readonly filter: JsonValue;
  readonly sort: JsonValue;
  readonly columns: Selection;
  readonly seed: string;
  readonly size: number;
  readonly offset: number;
  /** Only records after it. */
  readonly after: Position | null;
  /** Only records before it. */
  readonly before: Position | null;
  /** The last records of the result, not the first. */
  readonly fromEnd: boolean;
  /** `after: "end"`: no records, but a cursor for those still to come. */
  readonly tail: boolean;
}

function planPage(table: TableInfo, request: QueryRequest): PagePlan {
  const { page = {} } = request;
  const used = (["after", "before", "start", "end"] as const).filter((key) => page[key] !== undefined);
  if (used.length > 1 && (used.includes("start") || used.includes("end"))) {
    throw new LodestoneError("INVALID", `page has ${used.map(quoted).join(" and ")}; "start" and "end" cannot be combined with others.`);
  }
  const cursors = new Map<string, Cursor>();
  for (const key of used) {
    if ((page[key] === "end" && (key === "before" || key === "after")) || (page[key] === "start" && key === "after")) continue;
    const cursor = decodeCursor(page[key], `page.${key}`);
    if (cursor.table !== table.id)
      throw new LodestoneError("INVALID", `page.${key} is a cursor of another table than ${quoted(table.name)}.`);
    cursors.set(key, cursor);
  }
  const [cursor, other] = [...cursors.values()];
  if (cursor !== undefined) refuseNewQuery(request);
  if (cursor !== undefined && other !== undefined && queryOf(cursor) !== queryOf(other)) {
    throw new LodestoneError(
      "INVALID",
      "page.after and page.before are cursors of different queries; both must come from the same filter and sort.",
    );
  }
  return {
    filter: cursor?.filter ?? request.filter ?? null,
    sort: cursor?.sort ?? request.sort ?? null,
    columns: request.columns ?? cursor?.columns ?? ALL_COLUMNS,
    seed: cursor?.seed ?? randomBytes(9).toString("base64url"),
    size: page.size ?? cursor?.size ?? DEFAULT_PAGE_SIZE,
    offset: page.offset ?? 0,
    after: cursors.get("after")?.last ?? null,
    before: cursors.get("before")?.first ?? null,
    fromEnd: used.includes("end") || (used.includes("before") && !cursors.has("after")),
    tail: page.after === "end",
  };
}

/** A cursor stands for its whole query; with another filter or sort it would mean a different result. */
function refuseNewQuery(request: QueryRequest): void {
  for (const name of ["filter", "sort"] as const) {
    const value = request[name];
    if (value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0)) continue;
    throw new LodestoneError(
      "INVALID",
      `${name} cannot be given with a cursor, which has the ${name} of its query; leave it out, or start a new query.`,
    );
  }
}

function queryOf(cursor: Cursor): string {
  return JSON.stringify([cursor.filter, cursor.sort, cursor.seed]);
}
