/**
 * What a replica holds: the records at one position, in an index for each vector column, all with the same rows. Changes are applied
 * a group at a time. A search sees all of a group or nothing of it: while one is applied in several slices, searches wait. The first
 * group, which is all there is, is added frame by frame, as they come, to a state that nobody has yet.
 */
import { ParallelVectorIndex } from "../../core/parallel-vector-index.ts";
import { RowDirectory } from "../../core/row-directory.ts";
import type { SearchOptions, SearchResult } from "../../core/search-input.ts";
import { Slices } from "../../core/slices.ts";
import type { TextSearch, TextSearchResult } from "../../core/text-search.ts";
import { VectorIndex } from "../../core/vector-index.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { quoted, quotedNames } from "../../errors/value-in-words.ts";
import { encodeFrame, type FrameColumn, type OpenFrame, type ReadFrame, type RecordsFrame } from "../../frames/frames.ts";
import type { Columns } from "../columns.ts";
import { type ColumnType, toStoredText } from "../stored-value.ts";
import { WritesUnderWay } from "./writes-under-way.ts";

type Index = VectorIndex | ParallelVectorIndex;

/** Records whose values are set before others may get a turn: words are read in each. */
const RECORDS_PER_STEP = 64;
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
  /** To the workers. */
  readonly #writes = new WritesUnderWay();
  readonly #slices = new Slices();
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

  /**
   * Adds the records of a frame to a state that nobody sees before `apply`. Resolves when the next may be added: several are on their
   * way to the workers then. The frame's vectors are of no use afterwards.
   * @throws the error of the first that cannot be added; the state is of no use then.
   */
  async add(read: ReadFrame): Promise<void> {
    try {
      await this.#add(read);
    } catch (error) {
      this.#failed = error as Error;
      throw error;
    }
  }

  /** Applies a group, after what was added before: what it names is as at `position` afterwards. The same is true of its vectors. */
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
    for (const read of group) await this.#add(read);
    await this.#writes.end();
  }

  async #add({ frame, vectors, bytes }: ReadFrame): Promise<void> {
    if (frame.type !== "records") return;
    const rows = await this.#setValues(frame);
    await this.#writes.add(Promise.all(this.#setVectors(frame, rows, vectors)), bytes);
    await this.#slices.pause();
  }

  /** @returns the rows of the records. */
  async #setValues({ ids, values }: RecordsFrame): Promise<number[]> {
    const columns = this.#open.columns.flatMap((column, n) =>
      column.type === "vector" ? [] : [{ type: typeOf(column), own: values[n]! }],
    );
    const rows: number[] = [];
    for (const [i, id] of ids.entries()) {
      const row = this.#rows.add(id);
      this.#columns.set(row, this.#columns.take(columns.map(({ type, own }) => toStoredText(type, own[i]))));
      if (rows.push(row) % RECORDS_PER_STEP === 0) await this.#slices.pause();
    }
    return rows;
  }

  /** And removes what is deleted. */
  #setVectors({ ids, present, deleted = [] }: RecordsFrame, rows: readonly number[], vectors: Float32Array): Promise<unknown>[] {
    const writes: Promise<unknown>[] = [];
    let at = 0;
    this.#open.columns.forEach(({ name, type, dimension }, n) => {
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
      // The last column's take the buffer with them; those before are copied out of it.
      else {
        const isFirst = this.#position === undefined;
        writes.push(index.setRows(own, having, elements, { isGiven: at === vectors.length, isDeferred: isFirst }));
      }
    });
    for (const id of deleted) this.#rows.release(id);
    return writes;
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
