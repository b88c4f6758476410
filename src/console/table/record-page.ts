/** The records of a table by filter and sort, read page by page (cursors) as the user scrolls. */
import { signal } from "@preact/signals";
import { ApiError, call, messageOf } from "../api/client.ts";
import { type Place, tablePath } from "../api/paths.ts";
import type { ColumnSchema, TableSchema } from "../state/catalog.ts";

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

/** The query, or the cursor of the previous page. */
export type PageStart = { readonly after: string } | RecordQuestion;

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
  const page = "after" in start ? { size, after: start.after } : { size };
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
const PAGE_ROWS = 100;

/** Smaller pages if vectors are long. */
export function pageRowsFor(columns: readonly ColumnSchema[], most: number): number {
  const dimensions = columns.reduce((sum, { vector }) => sum + (vector?.dimension ?? 0), 0);
  return Math.max(10, Math.min(most, Math.floor(PAGE_NUMBERS / Math.max(1, dimensions))));
}

export class RecordPages {
  readonly records = signal<readonly TableRecord[]>([]);
  readonly hasMore = signal(true);
  readonly isLoading = signal(false);
  readonly fault = signal("");
  /** undefined until it is counted. */
  readonly total = signal<number | undefined>(undefined);
  readonly #path: string;
  #pageRows: number;
  #question: RecordQuestion = { filter: undefined, sort: undefined };
  #cursor: string | undefined;
  #asked = 0;

  constructor(place: Place, { name, columns }: TableSchema) {
    this.#path = tablePath(place, name);
    this.#pageRows = pageRowsFor(columns, PAGE_ROWS);
  }

  /**
   * Starts from the beginning. The previous content stays until the first page has arrived, and if it is
   * refused.
   */
  async open(question: RecordQuestion): Promise<void> {
    this.#question = question;
    this.#cursor = undefined;
    await this.#read(++this.#asked, true);
  }

  async readOn(): Promise<void> {
    if (this.isLoading.value || !this.hasMore.value || this.fault.value !== "") return;
    await this.#read(this.#asked, false);
  }

  replace(record: TableRecord): void {
    this.records.value = this.records.value.map((other) => (other.id === record.id ? record : other));
  }

  remove(ids: ReadonlySet<string>): void {
    this.records.value = this.records.value.filter(({ id }) => !ids.has(id));
    if (this.total.value !== undefined) this.total.value -= ids.size;
  }

  async #read(ticket: number, isFirst: boolean): Promise<void> {
    this.isLoading.value = true;
    try {
      const start = this.#cursor === undefined ? this.#question : { after: this.#cursor };
      const answer = await queryPage(this.#path, start, this.#pageRows);
      this.#pageRows = answer.size;
      if (ticket !== this.#asked) return;
      this.records.value = isFirst ? answer.records : [...this.records.value, ...answer.records];
      this.#cursor = answer.meta.page.cursor;
      this.hasMore.value = answer.meta.page.more;
      this.fault.value = "";
      if (isFirst) void this.#count(ticket);
    } catch (error) {
      if (ticket === this.#asked) this.fault.value = messageOf(error);
    }
    if (ticket === this.#asked) this.isLoading.value = false;
  }

  async #count(ticket: number): Promise<void> {
    const { filter } = this.#question;
    const count = filter === undefined ? "*" : { filter };
    try {
      const { aggs } = await call<{ aggs: { rows: number } }>("POST", `${this.#path}/aggregate`, { aggs: { rows: { count } } });
      if (ticket === this.#asked) this.total.value = aggs.rows;
    } catch {
      // The table is shown without it.
      if (ticket === this.#asked) this.total.value = undefined;
    }
  }
}
