/**
 * The rows of one save, as they were when it was called for, whatever is written before its end: copy on write. Before the first change
 * of a row its id and vector are kept, and its values before theirs, until the save has passed the row. So a save costs memory only for
 * what is changed while it lasts. The index has a save in a WeakList: one that nobody reads to its end is forgotten with its garbage.
 *
 * An index whose vectors are in a file is not copied: a change ends its save.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { CheckedValues, RowColumns } from "./row-columns.ts";
import type { RowDirectory } from "./row-directory.ts";
import type { SnapshotGift, SnapshotWant } from "./snapshot.ts";
import type { TransferSource } from "./transfer.ts";
import { WeakList } from "./weak-list.ts";

/** What a save needs of its index. */
interface SavedIndex {
  readonly dimension: number;
  readonly rows: RowDirectory;
  readonly columns: RowColumns | undefined;
  readonly saves: RunningSaves;
  hasVector(row: number): boolean;
  /** Vectors of rows that have one, f32[rows.length × dimension], as they are at the call. */
  read(rows: readonly number[]): Float32Array | Promise<Float32Array>;
  /** Of an index whose vectors are in a file. */
  readonly images: SavedImages | undefined;
}

export interface SavedImages {
  readonly shards: number;
  /** The next piece; undefined after the last. */
  next(): SnapshotGift | Promise<SnapshotGift>;
  end(isKept: boolean): void | Promise<void>;
}

/** A row as it was: its vector is the one with this number in the matrix. */
interface KeptRow {
  id: string;
  matrix: Float32Array | Promise<Float32Array>;
  number: number;
}

/** Rows examined before others get a turn: about a millisecond. */
const ROWS_PER_STEP = 2 ** 12;
/** Elements of the vectors that are kept together, and given up together. */
const KEPT_ELEMENTS = 2 ** 18;

/** The saves of one index that are under way. */
export class RunningSaves extends WeakList<SavedRows> {
  /** Call it before the vectors or ids of these rows change. */
  beforeChange(rows: readonly number[]): void {
    for (const save of this) save.beforeChange(rows);
  }
}

export class SavedRows implements TransferSource {
  readonly #index: SavedIndex;
  /** Rows from here on came later. */
  readonly #capacity: number;
  /** In the order of the snapshot, when all ids are gathered. */
  readonly #rows: number[] = [];
  /** Vectors, and values, of rows below these are not needed any more. */
  #firstVector = 0;
  #firstValues = 0;
  /** Rows that were changed; undefined: it had no vector. */
  readonly #kept = new Map<number, KeptRow | undefined>();
  readonly #values = new Map<number, CheckedValues>();
  #isBroken = false;

  /** The save has the rows as they are now. */
  constructor(index: SavedIndex) {
    this.#index = index;
    this.#capacity = index.rows.capacity;
    index.saves.add(this);
    index.columns?.saves.add(this);
  }

  get dimension(): number {
    return this.#index.dimension;
  }

  get schema(): string | undefined {
    return this.#index.columns?.schema;
  }

  get imageShards(): number | undefined {
    return this.#index.images?.shards;
  }

  /** See RunningSaves. */
  beforeChange(rows: readonly number[]): void {
    const { images, hasVector, read, rows: directory } = this.#index;
    if (images !== undefined) {
      this.#isBroken = true;
      return;
    }
    const had: number[] = [];
    for (const row of rows) {
      if (row < this.#firstVector || row >= this.#capacity || this.#kept.has(row)) continue;
      if (hasVector(row)) had.push(row);
      else this.#kept.set(row, undefined);
    }
    const step = Math.max(1, Math.floor(KEPT_ELEMENTS / this.dimension));
    for (let from = 0; from < had.length; from += step) {
      const part = had.slice(from, from + step);
      const matrix = read(part);
      // Who reads the save is told when it comes to the row.
      if (matrix instanceof Promise) matrix.catch(() => {});
      for (const [number, row] of part.entries()) this.#kept.set(row, { id: directory.idOf(row)!, matrix, number });
    }
  }

  /** Call it before the values of a row change. */
  beforeValues(row: number): void {
    if (row < this.#firstValues || row >= this.#capacity || this.#values.has(row)) return;
    const columns = this.#index.columns!;
    this.#values.set(row, columns.keep(row) ?? columns.check({}));
  }

  *gatherIds(): Generator<string[], void, void> {
    const { hasVector, rows: directory } = this.#index;
    for (let from = 0; from < this.#capacity; from += ROWS_PER_STEP) {
      this.#checkUnbroken();
      const ids: string[] = [];
      for (let row = from; row < Math.min(from + ROWS_PER_STEP, this.#capacity); row++) {
        const kept = this.#kept.get(row);
        if (kept === undefined && (this.#kept.has(row) || !hasVector(row))) continue;
        this.#rows.push(row);
        ids.push(kept?.id ?? directory.idOf(row)!);
      }
      yield ids;
    }
  }

  give(want: SnapshotWant): SnapshotGift | Promise<SnapshotGift> {
    this.#checkUnbroken();
    if ("values" in want) return this.#encode(...want.values);
    if ("vectors" in want) return this.#vectors(...want.vectors);
    if ("rows" in want) return Uint32Array.from(this.#rows.slice(...want.rows));
    const piece = this.#index.images!.next();
    if (!(piece instanceof Promise)) return piece;
    return piece.then((given) => {
      this.#checkUnbroken();
      return given;
    });
  }

  end(isKept: boolean): void | Promise<void> {
    this.#index.saves.remove(this);
    this.#index.columns?.saves.remove(this);
    return this.#index.images?.end(isKept);
  }

  #vectors(from: number, to: number): Float32Array | Promise<Float32Array> {
    const { dimension, read } = this.#index;
    const rows = this.#rows.slice(from, to);
    const unchanged = read(rows.filter((row) => this.#kept.get(row) === undefined));
    const kept = rows.map((row) => this.#kept.get(row));
    for (const row of rows) this.#kept.delete(row);
    this.#firstVector = this.#rows[to] ?? this.#capacity;
    if (kept.every((own) => own === undefined)) return unchanged;
    const fill = ([rest, ...matrices]: Float32Array[]): Float32Array => {
      const whole = new Float32Array(rows.length * dimension);
      let next = 0;
      for (const [i, own] of kept.entries()) {
        const [matrix, number] = own === undefined ? [rest!, next++] : [matrices[i]!, own.number];
        whole.set(matrix.subarray(number * dimension, (number + 1) * dimension), i * dimension);
      }
      return whole;
    };
    const parts = [unchanged, ...kept.map((own) => own?.matrix ?? unchanged)];
    return parts.some((part) => part instanceof Promise) ? Promise.all(parts).then(fill) : fill(parts as Float32Array[]);
  }

  #encode(from: number, to: number): string {
    const rows = this.#rows.slice(from, to);
    const text = this.#index.columns!.encode(rows.map((row) => this.#values.get(row) ?? row));
    for (const row of rows) this.#values.delete(row);
    this.#firstValues = this.#rows[to] ?? this.#capacity;
    return text;
  }

  #checkUnbroken(): void {
    if (this.#isBroken) throw new LodestoneError("CONFLICT", "The index was changed while it was saved. Save it again.");
  }
}
