/**
 * The records of a table by filter and sort. Pages are read where the user looks, by cursors: the nearest one
 * before that place, and an offset from it. Pages far from there are released, so that a table of any length can
 * be scrolled to any place.
 */
import { computed, signal } from "@preact/signals";
import { MAX_PAGE_OFFSET } from "../../records/request-limits.ts";
import { ApiError, call, messageOf, type Place, tablePath } from "../api/client.ts";
import { type ColumnSchema, countOf, type TableSchema } from "../state/server-content.ts";

/** Of a page, if its vectors are not long. */
const PAGE_ROWS = 100;
/** Rows that are held at most, and vector elements in them. */
const KEPT_ROWS = 20_000;
const KEPT_NUMBERS = 2_000_000;
/** The minimum, however long the vectors are: more than what is in view and ahead of it, or reading would never end. */
const LEAST_KEPT_ROWS = 400;
/** This many rows before those in view are read as well, if they were skipped. */
const MOST_FILLED = 2_000;
/** Rows beyond those in view that are read. */
const READ_AHEAD = 40;

/** A place from which a page can be read: after the cursor. The first row has no cursor. */
interface Anchor {
  readonly row: number;
  readonly cursor: string | undefined;
}

const FIRST: Anchor = { row: 0, cursor: undefined };

export class RecordPages {
  /** The rows that are held, by their index in the order. */
  readonly rows = signal<ReadonlyMap<number, TableRecord>>(new Map());
  readonly isLoading = signal(false);
  readonly fault = signal("");
  /** undefined until it is counted, or when it cannot be. */
  readonly total = signal<number | undefined>(undefined);
  /** The number of rows, as far as it is known. */
  readonly count = computed(() => this.total.value ?? this.#known.value);
  /** Ids of records that are never released, because they are selected or being edited. */
  pinned: ReadonlySet<string> = new Set();
  /** Without a total: the rows up to the last that was read, and one more if there are more. */
  readonly #known = signal(0);
  readonly #path: string;
  #keptRows: number;
  #pageRows: number;
  #question: RecordQuestion = { filter: undefined, sort: undefined };
  #anchors: Anchor[] = [FIRST];
  #view = { first: 0, last: 0 };
  #asked = 0;

  constructor(place: Place, { name, columns }: TableSchema) {
    this.#path = tablePath(place, name);
    this.#pageRows = pageRowsFor(columns, PAGE_ROWS);
    const dimensions = columns.reduce((sum, { vector }) => sum + (vector?.dimension ?? 0), 0);
    this.#keptRows = Math.max(LEAST_KEPT_ROWS, Math.min(KEPT_ROWS, Math.floor(KEPT_NUMBERS / Math.max(1, dimensions))));
  }

  /**
   * Reads again what is in view. The previous content stays until the first page has arrived, or if the request is
   * refused.
   */
  async open(question: RecordQuestion): Promise<void> {
    const ticket = ++this.#asked;
    this.#question = question;
    this.#anchors = [FIRST];
    this.fault.value = "";
    await this.#attempt(ticket, async () => {
      await this.#read(ticket, 0, new Map());
      void this.#count(ticket);
      await this.#readAll(ticket);
    });
  }

  /** Rows `first` to `last` (exclusive) are in view: those that are not held are read. */
  show(first: number, last: number): void {
    this.#view = { first, last };
    if (this.isLoading.value || this.fault.value !== "") return;
    const ticket = this.#asked;
    if (this.#nextMissing() !== undefined) void this.#attempt(ticket, () => this.#readAll(ticket));
  }

  replace(record: TableRecord): void {
    this.rows.value = new Map([...this.rows.value].map(([row, other]) => [row, other.id === record.id ? record : other]));
  }

  /** The rows after them move up. */
  remove(ids: ReadonlySet<string>): void {
    const gone = [...this.rows.value].flatMap(([row, { id }]) => (ids.has(id) ? [row] : [])).toSorted((a, b) => a - b);
    const moved = (row: number): number => row - gone.filter((other) => other < row).length;
    this.rows.value = new Map([...this.rows.value].flatMap(([row, record]) => (ids.has(record.id) ? [] : [[moved(row), record] as const])));
    this.#anchors = this.#anchors.map(({ row, cursor }) => ({ row: moved(row), cursor }));
    this.#known.value -= gone.length;
    if (this.total.value !== undefined) this.total.value -= ids.size;
  }

  async #attempt(ticket: number, work: () => Promise<void>): Promise<void> {
    this.isLoading.value = true;
    try {
      await work();
    } catch (error) {
      if (ticket === this.#asked) this.fault.value = messageOf(error);
    }
    if (ticket === this.#asked) this.isLoading.value = false;
  }

  async #readAll(ticket: number): Promise<void> {
    for (;;) {
      const row = this.#nextMissing();
      if (row === undefined || ticket !== this.#asked) return;
      await this.#read(ticket, row, this.rows.value);
    }
  }

  /** First what is in view and a little more, then what lies before it in a table that is not long. */
  #nextMissing(): number | undefined {
    const { first, last } = this.#view;
    const end = Math.min(this.count.value, last + READ_AHEAD);
    const begin = Math.max(0, Math.min(first, end));
    return this.#firstMissing(begin, end) ?? (end <= Math.min(this.#keptRows, MOST_FILLED) ? this.#firstMissing(0, begin) : undefined);
  }

  #firstMissing(begin: number, end: number): number | undefined {
    for (let row = begin; row < end; row++) if (!this.rows.value.has(row)) return row;
    return undefined;
  }

  /** Reads a page from this row on. @param others  the rows that it joins. */
  async #read(ticket: number, row: number, others: ReadonlyMap<number, TableRecord>): Promise<void> {
    const anchor = await this.#anchorFor(ticket, row);
    if (anchor === undefined) return;
    const { records, meta, size } = await queryPage(this.#path, this.#startAt(anchor, row), this.#pageRows);
    if (ticket !== this.#asked) return;
    // The page cannot hold thousands of such large records.
    if (size < this.#pageRows) this.#keptRows = LEAST_KEPT_ROWS;
    this.#pageRows = size;
    const end = row + records.length;
    const { cursor } = meta.page;
    const more = meta.page.more && records.length > 0;
    if (records.length > 0) this.#remember({ row: end, cursor });
    this.#known.value = more ? Math.max(this.#known.value, end + 1) : end;
    // Others write too: the table may have become longer or shorter since it was counted.
    if (this.total.value !== undefined) this.total.value = more ? Math.max(this.total.value, end + 1) : end;
    if (records.length === 0 && row > 0) await this.#count(ticket);
    const held = new Map(others);
    for (const [i, record] of records.entries()) held.set(row + i, record);
    this.rows.value = this.#nearView(held);
  }

  /** The nearest before the row, at most MAX_PAGE_OFFSET away. undefined: the query has changed meanwhile, or the table ends before. */
  async #anchorFor(ticket: number, row: number): Promise<Anchor | undefined> {
    for (;;) {
      const anchor = this.#anchors.findLast((other) => other.row <= row) as Anchor;
      if (row - anchor.row <= MAX_PAGE_OFFSET) return anchor;
      const far = anchor.row + MAX_PAGE_OFFSET;
      const { records, meta } = await queryPage(this.#path, this.#startAt(anchor, far), 1);
      if (ticket !== this.#asked) return undefined;
      if (records.length === 0) {
        this.#known.value = Math.min(this.#known.value, far);
        await this.#count(ticket);
        return undefined;
      }
      this.#remember({ row: far + 1, cursor: meta.page.cursor });
    }
  }

  #startAt({ row, cursor }: Anchor, wanted: number): PageStart {
    return { ...(cursor === undefined ? this.#question : { after: cursor }), offset: wanted - row };
  }

  #remember(anchor: Anchor): void {
    if (this.#anchors.some(({ row }) => row === anchor.row)) return;
    this.#anchors = [...this.#anchors, anchor].toSorted((a, b) => a.row - b.row);
  }

  /** Releases the rows farthest from the view when more are held than allowed. */
  #nearView(held: Map<number, TableRecord>): ReadonlyMap<number, TableRecord> {
    if (held.size <= this.#keptRows) return held;
    const middle = (this.#view.first + this.#view.last) / 2;
    const most = this.#keptRows / 2;
    return new Map([...held].filter(([row, { id }]) => Math.abs(row - middle) <= most || this.pinned.has(id)));
  }

  async #count(ticket: number): Promise<void> {
    // The table is shown without it.
    const count = await countOf(this.#path, this.#question.filter).catch(() => undefined);
    if (ticket === this.#asked) this.total.value = count;
  }
}

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
