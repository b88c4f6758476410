/**
 * What a replica holds: the records at one position, in an index for each vector column, all with the same rows. Changes are applied
 * a group at a time. A search sees all of a group or nothing of it: while one is applied in several slices, searches wait.
 */
import { ParallelVectorIndex } from "../../core/parallel-vector-index.ts";
import { RowDirectory } from "../../core/row-directory.ts";
import type { SearchOptions, SearchResult } from "../../core/search-input.ts";
import type { TextSearch, TextSearchResult } from "../../core/text-search.ts";
import { Slices } from "../../core/transfer.ts";
import { VectorIndex } from "../../core/vector-index.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { quoted, quotedNames } from "../../errors/value-in-words.ts";
import { encodeFrame, type FrameColumn, type OpenFrame, type ReadFrame, type RecordsFrame } from "../../frames/frames.ts";
import type { Columns } from "../columns.ts";
import { type ColumnType, toStoredText } from "../stored-value.ts";

type Index = VectorIndex | ParallelVectorIndex;

/** Bytes of frames that may be on their way to workers. */
const SENT_BYTES = 1 << 20;
/** Records in a frame that is made of what is held. */
const SAVED_RECORDS = 500;

const COLUMN_TYPES: Readonly<Record<string, ColumnType>> = {
  string: "string",
  text: "string",
  email: "string",
  link: "string",
  int: "int",
  float: "float",
  bool: "bool",
  datetime: "datetime",
  multiple: "multiple",
  json: "json",
};

export interface StateOptions {
  /** Makes the columns; TextColumns where words are searched. */
  readonly makeColumns: (types: Record<string, ColumnType>) => Columns;
  /** Workers of each index; 0: in this thread. */
  readonly shards: number;
}

export class ReplicaState {
  readonly #open: OpenFrame;
  readonly #rows = new RowDirectory();
  readonly #columns: Columns;
  readonly #indexes: ReadonlyMap<string, Index>;
  /** Of the frames' columns: the place of each among those of `#columns`, or its index. */
  readonly #names: readonly string[];
  #position: string | undefined;
  #applying: Promise<void> | undefined;
  readonly #searches = new Set<Promise<unknown>>();
  #failed: Error | undefined;

  private constructor(open: OpenFrame, columns: Columns, indexes: ReadonlyMap<string, Index>, rows: RowDirectory) {
    this.#open = open;
    this.#columns = columns;
    this.#indexes = indexes;
    this.#rows = rows;
    this.#names = open.columns.filter(({ type }) => type !== "vector").map(({ name }) => name);
  }

  /** @throws {LodestoneError} INVALID for a column of a type that a library cannot hold. */
  static async create(open: OpenFrame, { makeColumns, shards }: StateOptions): Promise<ReplicaState> {
    const rows = new RowDirectory();
    const types = Object.fromEntries(open.columns.filter(({ type }) => type !== "vector").map((column) => [column.name, typeOf(column)]));
    const columns = makeColumns(types);
    columns.bind(rows);
    const indexes = new Map<string, Index>();
    try {
      for (const { name, type, dimension } of open.columns) {
        if (type !== "vector") continue;
        const options = { dimension: dimension!, rows, columns };
        indexes.set(name, shards === 0 ? await VectorIndex.create(options) : await ParallelVectorIndex.create({ ...options, shards }));
      }
      // Words are searched through an index; this one stays empty.
      if (indexes.size === 0) indexes.set("", await VectorIndex.create({ dimension: 1, rows, columns }));
    } catch (error) {
      for (const index of indexes.values()) await index.free();
      throw error;
    }
    return new ReplicaState(open, columns, indexes, rows);
  }

  get size(): number {
    return this.#rows.size;
  }

  /** `<life>~<reading>~<at>`; undefined before the first group. */
  get position(): string | undefined {
    return this.#position;
  }

  /** A group was applied in part: it is of no use any more. */
  get isFailed(): boolean {
    return this.#failed !== undefined;
  }

  get openFrame(): OpenFrame {
    return this.#open;
  }

  /** The values of a record, without its vectors. */
  async get(id: string): Promise<Record<string, unknown> | undefined> {
    await this.#betweenGroups();
    const row = this.#rows.rowOf(id);
    return row === undefined ? undefined : { id, ...this.#columns.get(row) };
  }

  async vector(column: string | undefined, id: string): Promise<Float32Array | undefined> {
    await this.#betweenGroups();
    return this.#index(column).get(id);
  }

  /** As the search of a VectorIndex over the column's vectors. */
  async search(
    column: string | undefined,
    query: ArrayLike<number> | TextSearch,
    options: SearchOptions,
  ): Promise<SearchResult | TextSearchResult> {
    await this.#betweenGroups();
    const index = this.#index(column) as { search(query: ArrayLike<number> | TextSearch, options: SearchOptions): unknown };
    const search = Promise.resolve(index.search(query, options) as SearchResult | Promise<SearchResult>);
    this.#searches.add(search);
    return search.finally(() => this.#searches.delete(search));
  }

  /** When it resolves, no group has been applied in part. */
  async #betweenGroups(): Promise<void> {
    while (this.#applying !== undefined) await this.#applying.catch(() => {});
    if (this.#failed !== undefined) throw this.#failed;
  }

  /** Applies a group, after the one before: what it names is as at `position` afterwards. */
  async apply(group: readonly ReadFrame[], position: string): Promise<void> {
    const work = this.#applyAll(group);
    this.#applying = work.finally(() => {
      this.#applying = undefined;
    });
    try {
      await this.#applying;
      this.#position = position;
    } catch (error) {
      // It is between two positions now, and of no use.
      this.#failed = error as Error;
      throw error;
    }
  }

  /** The same as frames, of which the last ends with the position. */
  async *frames(): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
    yield encodeFrame(this.#open);
    let ids: string[] = [];
    const piece = async (): Promise<Uint8Array<ArrayBuffer>> => {
      const [frame, vectors] = await this.#saved(ids);
      ids = [];
      return encodeFrame(frame, vectors);
    };
    for (const [id] of this.#rows.entries()) if (ids.push(id) === SAVED_RECORDS) yield await piece();
    if (ids.length > 0) yield await piece();
    yield encodeFrame({ type: "position", at: this.#position!.split("~").slice(2).join("~") });
  }

  /** After the searches that have begun. */
  async free(): Promise<void> {
    await this.#applying?.catch(() => {});
    await Promise.allSettled(this.#searches);
    for (const index of this.#indexes.values()) await index.free();
  }

  async #applyAll(group: readonly ReadFrame[]): Promise<void> {
    let sent = 0;
    const slices = new Slices();
    const writes: Promise<unknown>[] = [];
    for (const { frame, vectors, bytes } of group) {
      if (frame.type !== "records") continue;
      this.#applyFrame(frame, vectors, writes);
      sent += bytes;
      if (sent >= SENT_BYTES) {
        sent = 0;
        await Promise.all(writes.splice(0));
      }
      await slices.pause();
    }
    await Promise.all(writes);
  }

  #applyFrame({ ids, values, present, deleted = [] }: RecordsFrame, vectors: Float32Array, writes: Promise<unknown>[]): void {
    const columns = this.#open.columns;
    const kept = columns.flatMap((column, n) => (column.type === "vector" ? [] : [values[n]!]));
    const types = columns.filter(({ type }) => type !== "vector").map(typeOf);
    const rows = ids.map((id, i) => {
      const row = this.#rows.add(id);
      this.#columns.set(row, this.#columns.take(kept.map((own, n) => toStoredText(types[n]!, own[i]))));
      return row;
    });
    let at = 0;
    columns.forEach(({ name, type, dimension }, n) => {
      if (type !== "vector") return;
      const places = present?.[n] ?? "all";
      const index = this.#indexes.get(name)!;
      const having = places === "all" ? ids : places.map((i) => ids[i]!);
      const elements = vectors.subarray(at, at + having.length * dimension!);
      at += elements.length;
      if (having.length < ids.length) {
        const has = new Set(having);
        writes.push(Promise.resolve(index.deleteMany(ids.filter((id) => !has.has(id)))));
      }
      if (having.length === 0) return;
      const own = places === "all" ? rows : places.map((i) => rows[i]!);
      if (index instanceof VectorIndex) index.setRows(own, elements);
      else writes.push(index.setRows(own, having, elements));
    });
    for (const id of deleted) this.#rows.release(id);
  }

  async #saved(ids: readonly string[]): Promise<[RecordsFrame, Float32Array[]]> {
    const texts = this.#columns.texts(ids.map((id) => this.#rows.rowOf(id)!));
    const values: (readonly unknown[] | null)[] = [];
    const present: (readonly number[] | "all" | null)[] = [];
    const vectors: Float32Array[] = [];
    for (const { name, type, dimension } of this.#open.columns) {
      if (type !== "vector") {
        const place = this.#names.indexOf(name);
        values.push(texts.map((row) => row[place]));
        present.push(null);
        continue;
      }
      const held = await this.#indexes.get(name)!.getMany(ids);
      const rows = [...held.keys()].filter((i) => held[i] !== undefined);
      const elements = new Float32Array(rows.length * dimension!);
      rows.forEach((i, n) => {
        elements.set(held[i]!, n * dimension!);
      });
      values.push(null);
      present.push(rows.length === ids.length ? "all" : rows);
      vectors.push(elements);
    }
    return [{ type: "records", ids, values, ...(present.some((rows) => Array.isArray(rows)) && { present }) }, vectors];
  }

  #index(column: string | undefined): Index {
    const [first] = this.#indexes.values();
    const index = column === undefined && this.#indexes.size === 1 ? first : this.#indexes.get(column ?? "");
    if (index !== undefined) return index;
    const names = quotedNames([...this.#indexes.keys()], "none");
    throw new LodestoneError("INVALID", `column: the replica has no vector column ${quoted(column ?? "")}; it has ${names}.`);
  }
}

function typeOf({ name, type }: FrameColumn): ColumnType {
  const own = COLUMN_TYPES[type];
  if (own === undefined) throw new LodestoneError("INVALID", `columns: a replica cannot hold ${quoted(name)}, of type ${type}.`);
  return own;
}
