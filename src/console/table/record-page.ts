/** One page of a table's records, by filter and sort or by a cursor. */
import { ApiError, call } from "../api/client.ts";
import type { ColumnSchema } from "../state/server-content.ts";

export interface TableRecord {
  readonly id: string;
  readonly xata: { readonly version: number; readonly createdAt: string; readonly updatedAt: string };
  readonly [column: string]: unknown;
}

export interface RecordQuestion {
  readonly filter: unknown;
  readonly sort: { readonly column: string; readonly direction: "asc" | "desc" } | undefined;
}

interface QueryAnswer {
  readonly records: readonly TableRecord[];
  readonly meta: { readonly page: { readonly cursor: string; readonly more: boolean } };
}

/** The query, or the cursor of an earlier page; from there `offset` records are skipped. */
export type PageStart = ({ readonly after: string } | RecordQuestion) & { readonly offset?: number };

/**
 * Reads one page with all columns. If the records are so large that the server refuses as many, the page is
 * smaller.
 *
 * @param size  maximum number of records.
 * @returns the page, and the size that succeeded, for further pages.
 */
export async function queryPage(
  path: string,
  start: PageStart,
  size: number,
  signal?: AbortSignal,
): Promise<QueryAnswer & { size: number }> {
  const { offset = 0 } = start;
  const page = "after" in start ? { size, offset, after: start.after } : { size, offset };
  const query =
    "after" in start ? {} : { filter: start.filter, columns: ["*"], sort: start.sort && { [start.sort.column]: start.sort.direction } };
  try {
    return { ...(await call<QueryAnswer>("POST", `${path}/query`, { ...query, page }, signal)), size };
  } catch (error) {
    if (!(error instanceof ApiError && error.status === TOO_LARGE) || size === 1) throw error;
    return queryPage(path, start, Math.ceil(size / 8), signal);
  }
}

const TOO_LARGE = 413;

/** Limit for the vector elements of a page. */
const PAGE_NUMBERS = 100_000;

/** Smaller pages if vectors are long. */
export function pageRowsFor(columns: readonly ColumnSchema[], most: number): number {
  const dimensions = columns.reduce((sum, { vector }) => sum + (vector?.dimension ?? 0), 0);
  return Math.max(10, Math.min(most, Math.floor(PAGE_NUMBERS / Math.max(1, dimensions))));
}
