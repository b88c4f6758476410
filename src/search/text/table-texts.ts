/**
 * The text index of one followed table, and the rows that are still to be written to it. A change of a record only
 * notes its row: reading texts takes longer than everything else that a change does. The rows are written in steps,
 * with what the record says by then, and searches for words wait until none is left. So they see the position of
 * the feed that everything else of the branch is at.
 */
import type { StoredColumn } from "../../columns/stored-column.ts";
import type { FilterColumnType } from "../../filter/tree.ts";
import type { IndexedText } from "../../full-text/text-index.ts";
import { TextIndex } from "../../full-text/text-index.ts";
import { TEXT_TYPES } from "../../records/column-traits.ts";
import { Slices } from "../../threads/event-loop.ts";

/** Types of columns with words; json is read as plain text. */
export const SEARCHED_TYPES: readonly FilterColumnType[] = [...TEXT_TYPES, "multiple", "json"];

export const isSearchedType = (type: FilterColumnType): boolean => SEARCHED_TYPES.includes(type);

/** Work units of a row besides its text, and of a posting that is copied. */
const ROW_UNITS = 64;
/** A change of few rows is written at once. */
const AT_ONCE_UNITS = 65_536;
/** Growth is reported each time that so many units have been worked. */
const REPORT_UNITS = 1 << 24;

export class TableTexts {
  #index = new TextIndex();
  readonly #columns: ReadonlyMap<string, StoredColumn>;
  readonly #onGrowth: () => void;
  readonly #dirty = new Set<number>();
  #writing: number | undefined;
  #running: Promise<void> | undefined;
  #isFreed = false;
  #fault: unknown;

  /**
   * @param columns  of the table; they may change later (`keepColumns`, `addColumn`).
   * @param onGrowth  called from time to time while many rows are written.
   */
  constructor(columns: ReadonlyMap<string, StoredColumn>, onGrowth: () => void) {
    this.#columns = columns;
    this.#onGrowth = onGrowth;
  }

  get index(): TextIndex {
    return this.#index;
  }

  get memoryBytes(): number {
    return this.#index.memoryBytes + 40 * this.#dirty.size;
  }

  has(column: string): boolean {
    return this.#index.has(column);
  }

  addColumn(name: string): void {
    this.#again();
    this.#index.addColumn(name);
  }

  keepColumns(names: ReadonlyMap<string, string>): void {
    this.#again();
    this.#index.keepColumns(names);
  }

  /** The row being written, whose columns have other names now. */
  #again(): void {
    if (this.#writing !== undefined) this.changed(this.#writing);
  }

  /** The texts of the row have changed. */
  changed(row: number): void {
    if (this.#isFreed) return;
    this.#index.remove(row);
    this.#dirty.add(row);
  }

  removed(row: number): void {
    this.#index.remove(row);
    this.#dirty.delete(row);
  }

  /**
   * undefined: the index has every change. Otherwise resolves when it has those made so far.
   *
   * @throws {LodestoneError} OUT_OF_MEMORY: the index has no room for them.
   */
  get pending(): Promise<void> | undefined {
    if (this.#fault !== undefined) throw this.#fault;
    return this.#dirty.size > 0 || this.#running !== undefined ? this.write() : undefined;
  }

  /** Writes the rows that have changed: a few at once, many in steps. Never rejects; `pending` says why it stopped. */
  write(): Promise<void> {
    const isIdle = this.#dirty.size === 0 && !this.#index.wantsCompaction;
    if (this.#fault !== undefined || isIdle) return this.#running ?? Promise.resolve();
    this.#running ??= this.#writeAll()
      .catch((error: unknown) => {
        this.fail(error);
      })
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  /** Holds nothing from now on; searches are told why. */
  fail(error: unknown): void {
    this.#fault = error;
    this.free();
    const { columns } = this.#index;
    this.#index = new TextIndex();
    for (const column of columns) this.#index.addColumn(column);
  }

  free(): void {
    this.#isFreed = true;
    this.#dirty.clear();
  }

  async #writeAll(): Promise<void> {
    let slices = new Slices(AT_ONCE_UNITS);
    let units = 0;
    /** Whether it is time that others run. */
    const spend = (spent: number): boolean => {
      units += spent;
      if (units >= REPORT_UNITS) {
        units = 0;
        this.#onGrowth();
      }
      return slices.spend(spent);
    };
    const rest = async (): Promise<void> => {
      await slices.rest();
      slices = new Slices();
    };
    do {
      // One iteration for all: to take the first of a set anew, V8 passes over every place that was emptied before.
      for (const row of this.#dirty) {
        this.#dirty.delete(row);
        this.#writing = row;
        for (const read of this.#index.set(row, this.#textsOf(row))) {
          if (this.#isFreed) return;
          if (spend(read)) await rest();
        }
        this.#writing = undefined;
        if (spend(ROW_UNITS)) await rest();
      }
      if (!this.#index.wantsCompaction) continue;
      for (const copied of this.#index.compact()) {
        if (this.#isFreed) return;
        if (spend(copied)) await rest();
      }
    } while (this.#dirty.size > 0 || this.#index.wantsCompaction);
  }

  #textsOf(row: number): Map<string, IndexedText> {
    const texts = new Map<string, IndexedText>();
    for (const name of this.#index.columns) texts.set(name, this.textOf(name, row));
    return texts;
  }

  /** What the index reads of a column. */
  textOf(column: string, row: number): IndexedText {
    const values = this.#columns.get(column)?.get([row]);
    if (values === undefined) return null;
    if (values.kind === "json") {
      const json = values.values[0] ?? null;
      return json === null ? null : readableJson(json);
    }
    return values.kind === "text" || values.kind === "multiple" ? (values.values[0] ?? null) : null;
  }
}

/** JSON as plain text: `"a\nb"` has the words a and b. One pass that allocates nothing for an escape: 20 MB may consist of them. */
export function readableJson(json: string): string {
  if (!json.includes("\\")) return json;
  const units = new Uint16Array(json.length);
  let length = 0;
  for (let at = 0; at < json.length; at++) {
    let unit = json.charCodeAt(at);
    if (unit === BACKSLASH) {
      unit = json.charCodeAt(++at);
      if (unit === LOWER_U) {
        unit = 0;
        for (const end = at + 4; at < end; ) unit = 16 * unit + hexDigit(json.charCodeAt(++at));
      } else if (unit !== QUOTE && unit !== BACKSLASH && unit !== SLASH) unit = SPACE;
    }
    units[length++] = unit;
  }
  return Buffer.from(units.buffer, 0, 2 * length).toString("utf16le");
}

const [QUOTE, BACKSLASH, SLASH, LOWER_U, SPACE] = [0x22, 0x5c, 0x2f, 0x75, 0x20];

/** Of a character of 0 to 9, A to F or a to f. */
const hexDigit = (code: number): number => (code & 15) + (code > 0x39 ? 9 : 0);
