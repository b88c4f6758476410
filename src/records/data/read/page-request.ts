/** `page` of a query: which part of which result is wanted. */
import { randomBytes } from "node:crypto";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted } from "../../../errors/value-in-words.ts";
import { isWholeNumber, wholeNumber } from "../../../text/whole-number.ts";
import { MAX_PAGE_OFFSET, MAX_PAGE_SIZE } from "../../request-limits.ts";
import type { JsonValue, QueryRequest, Selection } from "../../requests.ts";
import type { TableInfo } from "../../schema.ts";
import { ALL_COLUMNS } from "../sql-parts/selection.ts";
import { type Cursor, decodeCursor, type Position } from "./cursor.ts";

export const DEFAULT_PAGE_SIZE = 20;
/** The retired service's texts, which clients compare. */
export const PAGE_SIZE_EXCEEDED = `page size exceeds max limit of ${MAX_PAGE_SIZE}`;
export const OFFSET_EXCEEDED = `page offset must not exceed ${MAX_PAGE_OFFSET}`;

/** A page, including what its cursor contains. */
export interface PagePlan {
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

export function planPage(table: TableInfo, request: QueryRequest): PagePlan {
  const page: unknown = request.page ?? {};
  if (typeof page !== "object" || page === null || Array.isArray(page)) {
    throw new LodestoneError("INVALID", `page is ${inWords(page)}; expected an object such as {"size": 20}.`);
  }
  const given = page as Record<string, unknown>;
  if (isAbove(given.offset, MAX_PAGE_OFFSET)) throw new LodestoneError("INVALID", OFFSET_EXCEEDED);
  if (isAbove(given.size, MAX_PAGE_SIZE)) throw new LodestoneError("INVALID", PAGE_SIZE_EXCEEDED);
  const offset = wholeNumber(given.offset, 0, 0, MAX_PAGE_OFFSET, "page.offset");
  const used = (["after", "before", "start", "end"] as const).filter((key) => given[key] !== undefined && given[key] !== null);
  if (used.length > 1 && (used.includes("start") || used.includes("end"))) {
    throw new LodestoneError("INVALID", `page has ${used.map(quoted).join(" and ")}; "start" and "end" cannot be combined with others.`);
  }
  const cursors = new Map<string, Cursor>();
  for (const key of used) {
    if ((given[key] === "end" && (key === "before" || key === "after")) || (given[key] === "start" && key === "after")) continue;
    const cursor = decodeCursor(given[key], `page.${key}`);
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
    size: wholeNumber(given.size, cursor?.size ?? DEFAULT_PAGE_SIZE, 1, MAX_PAGE_SIZE, "page.size"),
    offset,
    after: cursors.get("after")?.last ?? null,
    before: cursors.get("before")?.first ?? null,
    fromEnd: used.includes("end") || (used.includes("before") && !cursors.has("after")),
    tail: given.after === "end",
  };
}

function isAbove(value: unknown, most: number): boolean {
  return isWholeNumber(value, most + 1, Number.POSITIVE_INFINITY);
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
