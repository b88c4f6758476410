/**
 * One branch inside the worker: its followed tables, all at one position of the feed. Only `apply` and
 * `alter` change it, and they do not yield once they have begun to change anything.
 */
import { tooLarge } from "../budget/memory-budget.ts";
import { createColumn } from "../columns/stored-column.ts";
import { RowDirectory } from "../core/row-directory.ts";
import type { LodestoneError } from "../errors/lodestone-error.ts";
import { compileToMask } from "../filter/mask.ts";
import { parseFilter } from "../filter/parse.ts";
import type { FeedBatch } from "../records/feed/feed-types.ts";
import { ColumnIndex, type ColumnPlacement } from "./column-index.ts";
import { FOLLOWED_SYSTEM_COLUMNS, type FollowedColumn, type FollowedSchema, type FollowedTable } from "./followed-schema.ts";
import { type BranchStats, type FoundAnswers, type FoundTexts, RESULT_BYTES, type SearchJob } from "./search-messages.ts";
import { type SavedBatch, SearchTable } from "./table-index.ts";
import { Hold } from "./text/hold.ts";
import { searchTexts, type TextJob } from "./text/search-texts.ts";
import { isSearchedType } from "./text/table-texts.ts";

/** A column whose vectors are in files. */
export interface ColumnFiles {
  /** The catalog's id. */
  readonly column: number;
  readonly folder: string;
  readonly shards: number;
}

export class BranchState {
  readonly incarnation: string;
  #version: number;
  #schema: FollowedSchema = new Map();
  /** By name; the same tables as in the schema. */
  #tables = new Map<string, SearchTable>();

  readonly #placement: ColumnPlacement;
  /** Searches of several steps, and changes. */
  readonly hold = new Hold();
  #lacksRecords = false;
  readonly #emptied = new Set<string>();
  /** Of the feed; searches see everything up to it. */
  position = "";
  /** Called from time to time while the words of many records are read. */
  onGrowth: () => void = () => {};

  private constructor(incarnation: string, version: number, placement: ColumnPlacement) {
    this.incarnation = incarnation;
    this.#version = version;
    this.#placement = placement;
  }

  /**
   * Empty tables of that schema.
   * @param files  of columns whose rows images will bring (`loadImage`, `adoptRows`).
   */
  static async create(
    incarnation: string,
    version: number,
    schema: FollowedSchema,
    placement: ColumnPlacement,
    files: readonly ColumnFiles[] = [],
  ): Promise<BranchState> {
    const state = new BranchState(incarnation, version, placement);
    await state.#alter(version, schema, [], files);
    return state;
  }

  get schema(): FollowedSchema {
    return this.#schema;
  }

  get version(): number {
    return this.#version;
  }

  /** Searches after the call see all of it. */
  apply(batches: readonly FeedBatch[]): void {
    for (const batch of batches) if (!this.#emptied.has(batch.table)) this.#tables.get(batch.table)?.apply(batch);
  }

  /** Applies a batch of a snapshot. */
  applySaved(batch: SavedBatch): void {
    this.#tables.get(batch.table)?.apply(batch, batch.rows);
  }

  /** The columns whose vectors are in files. */
  get files(): ColumnFiles[] {
    return this.#columnsOnDisk().map(([column, { folder, shards }]) => ({ column, folder: folder!, shards }));
  }

  /** Pieces of the images of these columns, and undefined after the last of each, while changes and searches continue. */
  async *images(): AsyncGenerator<{ readonly column: number; readonly piece: Uint8Array | undefined }, void> {
    for (const [column, index] of this.#columnsOnDisk()) {
      for await (const piece of index.images()) yield { column, piece };
      yield { column, piece: undefined };
    }
  }

  /** @param isKept  whether the images are on disk, and those before them are not needed any more. */
  async endImages(isKept: boolean): Promise<void> {
    for (const [, index] of this.#columnsOnDisk()) await index.endImages(isKept);
  }

  /** @throws {LodestoneError} CORRUPT. */
  async loadImage(column: number, piece: Uint8Array<ArrayBuffer> | undefined): Promise<void> {
    await this.#columnsOnDisk()
      .find(([id]) => id === column)?.[1]
      .loadImage(piece);
  }

  /** Call it when all batches and images of a snapshot are there. */
  async adoptRows(): Promise<void> {
    for (const table of this.#tables.values()) await table.adoptRows();
  }

  #columnsOnDisk(): [number, ColumnIndex][] {
    const found: [number, ColumnIndex][] = [];
    for (const [name, { columns }] of this.#schema) {
      for (const { id, name: column } of columns.values()) {
        const index = this.#tables.get(name)?.indexes.get(column);
        if (index?.folder !== undefined) found.push([id, index]);
      }
    }
    return found;
  }

  /** Like SearchTable.settled. Await it after each `apply` and `alter`, before the next one. */
  async settled(): Promise<void> {
    for (const table of this.#tables.values()) await table.settled();
  }

  /**
   * Moves to another schema. Tables and columns that keep their id keep their data, even under a new name.
   * The others are removed, and new ones start empty. Then the batches, which use the new names, are applied.
   * If it rejects, nothing has changed.
   */
  alter(version: number, schema: FollowedSchema, batches: readonly FeedBatch[]): Promise<void> {
    return this.#alter(version, schema, batches, []);
  }

  async #alter(version: number, schema: FollowedSchema, batches: readonly FeedBatch[], files: readonly ColumnFiles[]): Promise<void> {
    const indexes = await this.#createIndexes(schema, files);
    const before = new Map([...this.#schema.values()].map((table) => [table.id, table]));
    const tables = new Map<string, SearchTable>();
    for (const table of schema.values()) {
      const old = before.get(table.id);
      const data = old === undefined ? newTable(indexes.rowsOf(table.id)) : this.#tables.get(old.name)!;
      alterColumns(data, old, table, indexes, () => this.onGrowth());
      tables.set(table.name, data);
      before.delete(table.id);
    }
    for (const gone of before.values()) void this.#tables.get(gone.name)?.free();
    if ([...schema.values()].every(({ texts }) => texts !== true)) {
      this.#lacksRecords = false;
      this.#emptied.clear();
    }
    this.#schema = schema;
    this.#tables = tables;
    this.#version = version;
    this.apply(batches);
  }

  /**
   * Answers from the state at the moment of the call. undefined when the table or column does not exist (yet,
   * or any more).
   * @throws {LodestoneError} INVALID for the filter, TOO_LARGE.
   */
  async search(job: SearchJob): Promise<FoundAnswers | undefined> {
    const found = this.#find(job.tableId, job.columnId);
    if (found === undefined) return undefined;
    const { table, column } = found;
    const of = { schemaVersion: this.#version, part: table.part };
    const index = this.#tables.get(table.name)?.indexes.get(column.name);
    if (index === undefined || job.queries.length !== job.count * index.dimension) return undefined;
    const mask =
      job.filter === undefined
        ? undefined
        : compileToMask(parseFilter(job.filter, table, this.#schema), table.name, { table: (name) => this.#tables.get(name)! });
    const queries = Array.from({ length: job.count }, (_, i) => job.queries.subarray(i * index.dimension, (i + 1) * index.dimension));
    const results = await index.searchMany(queries, { k: job.offset + job.size, similarity: job.similarity, filter: mask });
    let bytes = 0;
    const answers = results.map(({ totalCount, results: all }) => {
      const { minScore } = job;
      const page = all.slice(job.offset).filter(({ score }) => minScore === undefined || score >= minScore);
      for (const { id } of page) bytes += id.length + RESULT_BYTES;
      // Ids written by SQL may be long, and each result carries one in a message.
      if (bytes > job.maxBytes) throw tooLarge(job.maxBytes);
      return { totalCount, ids: page.map(({ id }) => id), scores: Float64Array.from(page, ({ score }) => score) };
    });
    return { answers, bytes, ...of };
  }

  /** undefined: all words have been read. Otherwise resolves when those of the present records have been. */
  readsTexts(): Promise<unknown> | undefined {
    const pending = [...this.#tables.values()].map(({ texts }) => texts?.pending).filter((wait) => wait !== undefined);
    return pending.length === 0 ? undefined : Promise.all(pending);
  }

  /** Bytes that are held for words alone; 0 when there are none, or they have been dropped. */
  get textBytes(): number {
    if (this.#lacksRecords) return 0;
    let bytes = 0;
    for (const [name, table] of this.#tables)
      if (table.texts !== undefined) bytes += this.#isForWords(name) ? table.memoryBytes : table.texts.memoryBytes;
    return bytes;
  }

  /** Frees what is held for words alone. Searches for words are told why; the next change of the schema may ask for them again. */
  dropTexts(error: LodestoneError): void {
    this.#lacksRecords = true;
    for (const [name, table] of this.#tables) {
      table.texts?.fail(error);
      if (table.texts === undefined || !this.#isForWords(name)) continue;
      void table.free();
      const empty = newTable(new RowDirectory());
      for (const column of this.#schema.get(name)!.columns.values()) empty.addColumn(column.name, createColumn(column.type));
      empty.readTexts([], () => {});
      empty.texts?.fail(error);
      this.#tables.set(name, empty);
      this.#emptied.add(name);
    }
  }

  /** Its words, and records that are there for them, have been dropped: it is not what its schema says. */
  get lacksRecords(): boolean {
    return this.#lacksRecords;
  }

  /** Neither its vectors are searched, nor does a link lead to it. */
  #isForWords(name: string): boolean {
    if (this.#tables.get(name)!.indexes.size > 0) return false;
    for (const table of this.#schema.values()) {
      for (const { link } of table.columns.values()) if (link?.table === name && table.name !== name) return false;
    }
    return true;
  }

  /** See searchTexts. */
  async searchTexts(job: TextJob): Promise<FoundTexts | undefined> {
    const search = async (): Promise<FoundTexts | undefined> => {
      const { position } = this;
      const tables = await searchTexts(
        job,
        () => this.#schema,
        (name) => this.#tables.get(name)!,
      );
      return tables && { tables, position, schemaVersion: this.#version };
    };
    if (job.vector === undefined) return search();
    // Here, so that changes need not wait for it.
    for (let pending = this.readsTexts(); pending !== undefined; pending = this.readsTexts()) await pending;
    return this.hold.read(search);
  }

  /**
   * Yields batches from which `apply` can rebuild the table. Each batch is read when it is requested, so
   * changes made in between may or may not be included.
   * @param isSaved  see SearchTable.read.
   */
  async *read(table: string, pieceBytes: number, isSaved = false): AsyncGenerator<SavedBatch, void> {
    const data = this.#tables.get(table)!;
    let rows = 64;
    for (let start = 0; start < data.capacity; ) {
      const end = Math.min(start + rows, data.capacity);
      yield await data.read(table, start, end, isSaved);
      start = end;
      // Estimated from the average row. The real size may be up to twice as large.
      const rowBytes = Math.max(1, data.memoryBytes / data.capacity);
      rows = Math.max(1, Math.min(2 * rows, Math.floor(pieceBytes / rowBytes)));
    }
  }

  get stats(): BranchStats {
    let vectors = 0;
    let texts = 0;
    let memoryBytes = 0;
    let fileBytes = 0;
    for (const table of this.#tables.values()) {
      memoryBytes += table.memoryBytes;
      fileBytes += table.fileBytes;
      if (table.texts !== undefined) texts += table.rows.size;
      for (const index of table.indexes.values()) vectors += index.size;
    }
    return { vectors, texts, memoryBytes, fileBytes, columnsInFiles: this.files.length };
  }

  /** Resolves when its files are closed. */
  async free(): Promise<void> {
    const freed = [...this.#tables.values()].map((table) => table.free());
    this.#tables.clear();
    await Promise.all(freed);
  }

  #find(tableId: number, columnId: number): { table: FollowedTable; column: FollowedColumn } | undefined {
    for (const table of this.#schema.values()) {
      if (table.id !== tableId) continue;
      for (const column of table.columns.values()) if (column.id === columnId) return { table, column };
    }
    return undefined;
  }

  /** Creates the indexes of new vector columns before the change, because creating one yields. */
  async #createIndexes(schema: FollowedSchema, files: readonly ColumnFiles[]): Promise<NewIndexes> {
    const rows = new Map<number, RowDirectory>();
    const indexes = new Map<number, ColumnIndex>();
    const known = new Map([...this.#schema.values()].map((table) => [table.id, table]));
    for (const table of schema.values()) {
      const old = known.get(table.id);
      const directory = old === undefined ? new RowDirectory() : this.#tables.get(old.name)!.rows;
      rows.set(table.id, directory);
      const oldIds = new Set([...(old?.columns.values() ?? [])].map((column) => column.id));
      for (const column of table.columns.values()) {
        if (column.vector === undefined || oldIds.has(column.id)) continue;
        const options = { ...this.#placement, dimension: column.vector.dimension, rows: directory };
        const own = files.find((file) => file.column === column.id);
        indexes.set(column.id, await (own ? ColumnIndex.reopen(options, own.folder, own.shards) : ColumnIndex.create(options)));
      }
    }
    return { rowsOf: (tableId) => rows.get(tableId)!, index: (columnId) => indexes.get(columnId) };
  }
}

interface NewIndexes {
  rowsOf(tableId: number): RowDirectory;
  index(columnId: number): ColumnIndex | undefined;
}

function newTable(rows: RowDirectory): SearchTable {
  const table = new SearchTable(rows);
  for (const column of FOLLOWED_SYSTEM_COLUMNS) table.addColumn(column.name, createColumn(column.type));
  return table;
}

function alterColumns(
  data: SearchTable,
  old: FollowedTable | undefined,
  table: FollowedTable,
  indexes: NewIndexes,
  onGrowth: () => void,
): void {
  const oldById = new Map([...(old?.columns.values() ?? [])].map((column) => [column.id, column]));
  const kept = new Map<string, string>();
  for (const column of table.columns.values()) {
    const before = oldById.get(column.id);
    if (before !== undefined) kept.set(before.name, column.name);
  }
  // In one step, so that two columns may swap names.
  data.keepColumns(
    kept,
    FOLLOWED_SYSTEM_COLUMNS.map((column) => column.name),
  );
  for (const column of table.columns.values()) {
    if (oldById.has(column.id)) continue;
    data.addColumn(column.name, createColumn(column.type), indexes.index(column.id));
    if (isSearchedType(column.type)) data.texts?.addColumn(column.name);
  }
  if (table.texts !== true) data.forgetTexts();
  if (table.texts !== true || data.texts !== undefined) return;
  const searched = [...table.columns.values()].filter(({ type }) => isSearchedType(type));
  data.readTexts(
    searched.map(({ name }) => name),
    onGrowth,
  );
}
