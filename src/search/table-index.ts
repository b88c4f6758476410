/**
 * One followed table in memory: which rows hold which records, the columns that filters read, and one vector
 * index per vector column, all with the same row numbers. Only `apply` changes it, so between two calls
 * everything agrees.
 */

import { growMask, PresenceColumn } from "../columns/number-columns.ts";
import type { StoredColumn } from "../columns/stored-column.ts";
import type { RowDirectory } from "../core/row-directory.ts";
import { clearBit, hasBit, setBit } from "../filter/bit-mask.ts";
import type { MaskTable } from "../filter/mask-table.ts";
import { idHash } from "../full-text/fusion.ts";
import type { FeedBatch, FeedColumn } from "../records/feed/feed-types.ts";
import type { ColumnIndex } from "./column-index.ts";
import { TableTexts } from "./text/table-texts.ts";

/** Of a snapshot. */
export interface SavedBatch extends FeedBatch {
  /** Rows of its records, ascending, if the table has vectors in files. */
  readonly rows?: readonly number[];
}

export class SearchTable implements MaskTable {
  readonly rows: RowDirectory;
  readonly columns = new Map<string, StoredColumn>();
  readonly indexes = new Map<string, ColumnIndex>();
  /** Its text index, once a search has asked for words. */
  #texts: TableTexts | undefined;
  #live = new Uint32Array(0);
  #hashes = new Uint32Array(0);
  /** Rows whose hash is to be made; undefined: nobody has asked for hashes. */
  #unhashed: number[] | undefined;
  #releases = 0;
  /** By row: which of the releases was its last. Only where words are searched. */
  #released = new Uint32Array(0);

  constructor(rows: RowDirectory) {
    this.rows = rows;
  }

  get capacity(): number {
    return this.rows.capacity;
  }

  get live(): Uint32Array {
    return this.#live;
  }

  rowOf(id: string): number | undefined {
    return this.rows.rowOf(id);
  }

  idOf(row: number): string | undefined {
    return this.rows.idOf(row);
  }

  /** Of rows, so far. */
  get releases(): number {
    return this.#releases;
  }

  /** Whether the row has held another record since there had been that many releases. */
  wasReleasedSince(row: number, releases: number): boolean {
    return (this.#released[row] ?? 0) > releases;
  }

  /** By row: `idHash` of its id. Made when first asked for. */
  idHashes(): Uint32Array {
    if (this.#hashes.length < this.capacity) {
      const hashes = new Uint32Array(this.#live.length * 32);
      hashes.set(this.#hashes);
      this.#hashes = hashes;
    }
    if (this.#unhashed === undefined) {
      this.#unhashed = [];
      for (const [id, row] of this.rows.entries()) this.#hashes[row] = idHash(id);
    }
    for (const row of this.#unhashed) this.#hashes[row] = idHash(this.rows.idOf(row) ?? "");
    this.#unhashed.length = 0;
    return this.#hashes;
  }

  /** Rows that have a vector in that column. */
  vectorRows(name: string): Uint32Array {
    return (this.column(name) as StoredColumn & PresenceColumn).present;
  }

  column(name: string): StoredColumn {
    const column = this.columns.get(name);
    if (column === undefined) throw new TypeError(`The search store does not keep column ${JSON.stringify(name)}.`);
    return column;
  }

  get texts(): TableTexts | undefined {
    return this.#texts;
  }

  /** Reads the words of these columns from now on, those of the records that are there in steps. */
  readTexts(columns: readonly string[], onGrowth: () => void): void {
    const texts = new TableTexts(this.columns, onGrowth);
    this.#texts = texts;
    this.#released = new Uint32Array(this.#live.length * 32);
    for (const name of columns) texts.addColumn(name);
    for (const [, row] of this.rows.entries()) texts.changed(row);
    void texts.write();
  }

  /** Reads words no longer. */
  forgetTexts(): void {
    this.#texts?.free();
    this.#texts = undefined;
    this.#released = new Uint32Array(0);
  }

  /** Adds a column that has no value in any row yet. */
  addColumn(name: string, column: StoredColumn, index?: ColumnIndex): void {
    column.reserve(this.capacity);
    this.columns.set(name, column);
    if (index !== undefined) this.indexes.set(name, index);
  }

  /** Renames columns (old name to new). Columns in neither `names` nor `untouched` are removed. */
  keepColumns(names: ReadonlyMap<string, string>, untouched: readonly string[]): void {
    const columns = [...this.columns];
    const indexes = [...this.indexes];
    this.columns.clear();
    this.indexes.clear();
    const newName = (name: string): string | undefined => names.get(name) ?? (untouched.includes(name) ? name : undefined);
    for (const [name, column] of columns) {
      const to = newName(name);
      if (to !== undefined) this.columns.set(to, column);
    }
    for (const [name, index] of indexes) {
      const to = newName(name);
      if (to === undefined) void index.free();
      else this.indexes.set(to, index);
    }
    this.#texts?.keepColumns(names);
  }

  /**
   * Brings the batch's records to the state given there. Ignores columns that the table does not have.
   * @param saved  of a snapshot: the rows of the batch's records, ascending and above those of earlier batches.
   */
  apply(batch: FeedBatch, saved?: readonly number[]): void {
    for (const id of batch.deleted) this.#remove(id);
    if (saved !== undefined) for (const id of batch.ids) this.#remove(id);
    if (saved !== undefined) this.rows.restore(batch.ids, saved);
    const rows = saved ?? batch.ids.map((id) => this.rows.add(id));
    this.#reserve();
    for (const row of rows) {
      if (this.#unhashed !== undefined && !hasBit(this.#live, row)) this.#unhashed.push(row);
      setBit(this.#live, row);
    }
    for (const [name, values] of batch.columns) {
      const column = this.columns.get(name);
      if (column === undefined) continue;
      if (values.kind === "vector") this.#setVectors(name, column, batch.ids, rows, values, saved !== undefined);
      else if (this.#texts?.has(name) === true && isTextColumn(column)) setTexts(column, rows, values, this.#texts);
      else for (let i = 0; i < rows.length; i++) column.set(rows[i]!, values, i);
    }
    void this.#texts?.write();
  }

  /** Whether vectors of it are in files. Its snapshot then keeps the numbers of rows. */
  get isOnDisk(): boolean {
    for (const { folder } of this.indexes.values()) if (folder !== undefined) return true;
    return false;
  }

  /**
   * The records of rows start to end − 1 as of the moment of the call, in the form that `apply` takes.
   * @param isSaved  for a snapshot: of vectors that are in files only which records have one, and the rows.
   */
  async read(table: string, start: number, end: number, isSaved: boolean): Promise<SavedBatch> {
    const rows: number[] = [];
    const ids: string[] = [];
    for (let row = start; row < end; row++) {
      const id = this.rows.idOf(row);
      if (id === undefined) continue;
      rows.push(row);
      ids.push(id);
    }
    // All reads are started before the first one is awaited.
    const columns = [...this.columns].map(([name, column]) =>
      column instanceof PresenceColumn ? this.#readVectors(name, column, ids, rows, isSaved) : ([name, column.get(rows)] as const),
    );
    const saved = isSaved && this.isOnDisk ? { rows } : {};
    return { table, ids, columns: new Map(await Promise.all(columns)), deleted: [], ...saved };
  }

  /** Call it when the images of the columns that are in files are there. */
  async adoptRows(): Promise<void> {
    for (const [name, index] of this.indexes) {
      if (index.folder !== undefined) await index.adoptRows((row) => hasBit(this.vectorRows(name), row));
    }
  }

  /**
   * Resolves when everything applied is in the indexes.
   * @throws {LodestoneError} OUT_OF_MEMORY: the changes then have to be applied again.
   */
  async settled(): Promise<void> {
    for (const index of this.indexes.values()) await index.settled();
  }

  /** Of the files of its vectors. */
  get fileBytes(): number {
    let bytes = 0;
    for (const index of this.indexes.values()) bytes += index.fileBytes;
    return bytes;
  }

  get memoryBytes(): number {
    let bytes = this.#live.byteLength + this.#released.byteLength + this.#hashes.byteLength + this.rows.memoryBytes;
    for (const column of this.columns.values()) bytes += column.memoryBytes;
    bytes += this.#texts?.memoryBytes ?? 0;
    for (const index of this.indexes.values()) bytes += index.memoryBytes;
    return bytes;
  }

  /** Resolves when its files are closed. */
  async free(): Promise<void> {
    const freed = [...this.indexes.values()].map((index) => index.free());
    this.indexes.clear();
    this.columns.clear();
    this.#texts?.free();
    await Promise.all(freed);
  }

  #remove(id: string): void {
    const row = this.rows.rowOf(id);
    if (row === undefined) return;
    for (const column of this.columns.values()) column.clear(row);
    this.#texts?.removed(row);
    clearBit(this.#live, row);
    if (this.#texts !== undefined) this.#released[row] = ++this.#releases;
    this.rows.release(id);
  }

  #reserve(): void {
    this.#live = growMask(this.#live, this.capacity);
    if (this.#texts !== undefined && this.#released.length < this.capacity) {
      const released = new Uint32Array(this.#live.length * 32);
      released.set(this.#released);
      this.#released = released;
    }
    for (const column of this.columns.values()) column.reserve(this.capacity);
  }

  /**
   * A vector that exists but is not in the index is returned as NaN. Applying it again keeps it out of the
   * index.
   */
  async #readVectors(
    name: string,
    column: PresenceColumn,
    ids: readonly string[],
    rows: readonly number[],
    isSaved: boolean,
  ): Promise<[string, FeedColumn]> {
    const index = this.indexes.get(name)!;
    const { dimension } = index;
    const present = Uint32Array.from(ids.keys()).filter((i) => hasBit(column.present, rows[i]!));
    if (isSaved && index.folder !== undefined)
      return [name, { kind: "vector", dimension: 0, rows: present, elements: new Float32Array(0) }];
    const vectors = await index.getMany(Array.from(present, (i) => ids[i]!));
    const elements = new Float32Array(present.length * dimension);
    vectors.forEach((vector, n) => {
      if (vector === undefined) elements.fill(Number.NaN, n * dimension, (n + 1) * dimension);
      else elements.set(vector, n * dimension);
    });
    return [name, { kind: "vector", dimension, rows: present, elements }];
  }

  #setVectors(
    name: string,
    column: StoredColumn,
    ids: readonly string[],
    rows: readonly number[],
    vectors: Extract<FeedColumn, { kind: "vector" }>,
    isSaved: boolean,
  ): void {
    const index = this.indexes.get(name);
    if (!(column instanceof PresenceColumn)) throw new TypeError(`Column ${JSON.stringify(name)} holds no vectors.`);
    // Nobody brings the vectors, or an image does.
    if (index === undefined || (isSaved && index.folder !== undefined)) {
      for (const row of rows) column.clear(row);
      for (const i of vectors.rows) column.mark(rows[i]!);
      return;
    }
    const { dimension } = index;
    // Nearly always: each record has a vector that can be searched.
    if (vectors.dimension === dimension && vectors.rows.length === ids.length && areFinite(vectors.elements, 0, vectors.elements.length)) {
      for (const row of rows) column.mark(row);
      index.setRows(rows, ids, vectors.elements);
      return;
    }
    const kept: number[] = [];
    const searchable: string[] = [];
    const searchableRows: number[] = [];
    const isSet = new Uint8Array(ids.length);
    for (let n = 0; n < vectors.rows.length; n++) {
      const i = vectors.rows[n]!;
      column.mark(rows[i]!);
      isSet[i] = 1;
      if (vectors.dimension === dimension && areFinite(vectors.elements, n * dimension, dimension)) {
        kept.push(n);
        searchable.push(ids[i]!);
        searchableRows.push(rows[i]!);
      } else {
        // SQL stored NaN or an infinity before a check refused that. It has no distance to anything, so it is
        // not searched.
        index.delete(ids[i]!);
      }
    }
    for (let i = 0; i < ids.length; i++) {
      if (isSet[i] === 1) continue;
      column.clear(rows[i]!);
      index.delete(ids[i]!);
    }
    const elements = kept.length === vectors.rows.length ? vectors.elements : gather(vectors.elements, kept, dimension);
    index.setRows(searchableRows, searchable, elements);
  }
}

type TextColumn = StoredColumn & { readonly kind: "text" | "json" | "multiple" };

const isTextColumn = (column: StoredColumn): column is TextColumn =>
  column.kind === "text" || column.kind === "json" || column.kind === "multiple";

/** Most changes of a record leave its texts as they are. */
function setTexts(column: TextColumn, rows: readonly number[], values: FeedColumn, texts: TableTexts): void {
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    const before = codesOf(column, row);
    column.set(row, values, i);
    if (!isSame(before, codesOf(column, row))) texts.changed(row);
  }
}

/** An unchanged value keeps its code while it is set again. */
const codesOf = (column: TextColumn, row: number): number | Int32Array | undefined =>
  column.kind === "multiple" ? column.items[row] : column.codes[row];

function isSame(one: number | Int32Array | undefined, other: number | Int32Array | undefined): boolean {
  if (typeof one !== "object" || typeof other !== "object") return one === other;
  return one.length === other.length && one.every((code, i) => code === other[i]);
}

function areFinite(elements: Float32Array, start: number, count: number): boolean {
  for (let i = start; i < start + count; i++) if (elements[i]! - elements[i]! !== 0) return false;
  return true;
}

function gather(elements: Float32Array, kept: readonly number[], dimension: number): Float32Array {
  const gathered = new Float32Array(kept.length * dimension);
  kept.forEach((n, i) => {
    gathered.set(elements.subarray(n * dimension, (n + 1) * dimension), i * dimension);
  });
  return gathered;
}
