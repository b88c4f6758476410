/**
 * Converts indexes to bytes and back, piece by piece, without blocking the thread. Reports progress and can
 * be cancelled.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { type AbortSignalLike, throwIfAborted } from "./abort-signal.ts";
import { ByteReader, type ByteSource, type ByteStream } from "./byte-stream.ts";
import { checkTransfer, LOAD_OPTIONS } from "./options.ts";
import type { CheckedValues, RowColumns } from "./row-columns.ts";
import type { RowDirectory } from "./row-directory.ts";
import { Slices } from "./slices.ts";
import { corrupt, readSnapshot, type SnapshotContents, type SnapshotGift, type SnapshotWant, writeSnapshot } from "./snapshot.ts";

export interface TransferProgress {
  /** Number of vectors done. */
  rows: number;
  totalRows: number;
}

export interface TransferOptions {
  /** Cancels: the promise or stream fails with the signal's reason, and nothing is left behind. */
  signal?: AbortSignalLike | undefined;
  /** Called after each piece of about 1 MB. */
  onProgress?: ((progress: TransferProgress) => void) | undefined;
}

/** What an index provides to be written. */
export interface TransferSource extends SnapshotContents {
  /** A promise only of an index whose vectors are not in this thread. */
  give(want: SnapshotWant): Promise<SnapshotGift> | SnapshotGift;
  /** Called when the writing has ended. `isKept`: with the last piece. */
  end(isKept: boolean): void | Promise<void>;
}

/** The whole snapshot at once, of an index in this thread. */
export function snapshotBytes(source: TransferSource): Uint8Array<ArrayBuffer> {
  const pieces: Uint8Array[] = [];
  const writer = writeSnapshot(source);
  for (let step = writer.next(); !step.done; ) {
    const wanted = step.value;
    if (ArrayBuffer.isView(wanted)) pieces.push(wanted);
    step = wanted === undefined || ArrayBuffer.isView(wanted) ? writer.next() : writer.next(source.give(wanted) as SnapshotGift);
  }
  void source.end(true);
  return joined(pieces);
}

export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** The pieces of a snapshot, produced on demand. @throws from the generator: what `source` throws; the signal's reason. */
export function snapshotPieces(source: TransferSource, options: TransferOptions): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  checkTransfer(options);
  return writePieces(source, options);
}

async function* writePieces(
  source: TransferSource,
  { signal, onProgress }: TransferOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  const slices = new Slices();
  const writer = writeSnapshot(source);
  let isKept = false;
  try {
    throwIfAborted(signal);
    for (let step = writer.next(); !step.done; ) {
      const wanted = step.value;
      if (ArrayBuffer.isView(wanted)) {
        yield wanted;
        step = writer.next();
      } else if (wanted === undefined) {
        step = writer.next();
      } else {
        step = writer.next(await source.give(wanted));
        if ("vectors" in wanted) onProgress?.({ rows: wanted.vectors[1], totalRows: wanted.totalRows });
      }
      await slices.pause();
      throwIfAborted(signal);
    }
    isKept = true;
  } finally {
    await source.end(isKept);
  }
}

/** The same as a stream. @throws {LodestoneError} UNAVAILABLE where there is no ReadableStream. */
export function snapshotStream(source: TransferSource, options: TransferOptions): ByteStream {
  if (typeof ReadableStream === "undefined") throw new LodestoneError("UNAVAILABLE", "This runtime has no ReadableStream; use toBytes.");
  const pieces = snapshotPieces(source, options);
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      await pieces.return();
    },
  }) as ByteStream;
}

export interface LoadOptions extends TransferOptions {
  vectors?: unknown;
  rows?: RowDirectory | undefined;
  columns?: RowColumns | undefined;
}

/** Ids that get their rows before others get a turn: about two milliseconds. */
const IDS_AT_ONCE = 2 ** 11;

/** What loading needs from either kind of index. */
interface Loadable {
  readonly rows: RowDirectory;
  /** Number of vectors. */
  readonly size: number;
  /** Whether its vectors are in a file. */
  readonly isOutside: boolean;
  /** Takes in the images of its shards, piece after piece; undefined after the last. @throws {LodestoneError} CORRUPT. */
  loadImage(piece: Uint8Array<ArrayBuffer> | undefined): void | Promise<void>;
  /** Call it when the images are there and the directory has the ids of their rows: rows without an id are cleared. */
  adoptRows(): void | Promise<void>;
  upsertMany(ids: readonly string[], matrix: Float32Array): void | Promise<void>;
  free(): void | Promise<void>;
}

/**
 * Loads the index in a snapshot.
 *
 * @param create  makes an empty index of the given dimension, otherwise by `options`.
 * @throws {LodestoneError} CORRUPT; INVALID when its values belong to other columns than those of the
 *   options. A shared directory is then unchanged.
 */
export async function loadSnapshot<Index extends Loadable>(
  source: ByteSource,
  options: LoadOptions,
  create: (dimension: number, shards: number | undefined) => Promise<Index>,
): Promise<Index> {
  checkTransfer(options, LOAD_OPTIONS);
  const reader = new ByteReader(source, options.signal);
  const slices = new Slices();
  const undo = new LoadedRows(options);
  let index: Index | undefined;
  let totalRows = 0;
  let rows = 0;
  let fault: LodestoneError | undefined;
  let createIndex: ((shards: number | undefined) => Promise<void>) | undefined;
  /** The ids and their rows, until the images are there. */
  const named: [readonly string[], Uint32Array][] = [];
  /** Asynchronous work for what the parser has found. */
  const found: (() => void | Promise<void>)[] = [];
  const parser = readSnapshot({
    start(dimension, count, hasValues, isImage) {
      totalRows = count;
      // Reported at the end: damaged bytes must be reported as CORRUPT.
      if (isImage && options.vectors === undefined) {
        fault = new LodestoneError("INVALID", "The snapshot's vectors are in a file; give it with the option `vectors`.");
      } else if (isImage && (options.rows?.capacity ?? 0) > 0) {
        const what = "A snapshot whose vectors are in a file has rows of its own";
        fault = new LodestoneError("INVALID", `${what}; the directory \`rows\` has to be empty.`);
      }
      if (hasValues && options.columns === undefined) {
        throw new LodestoneError("INVALID", "The snapshot holds values of columns; give the option `columns` with the same columns.");
      }
      createIndex = async (shards) => {
        index = await create(dimension, shards);
      };
      if (!isImage) found.push(() => createIndex!(undefined));
    },
    numbers(ids, numbers) {
      named.push([ids, numbers]);
    },
    shards(count) {
      if (fault !== undefined) return;
      found.push(async () => {
        await createIndex!(count);
        if (!index!.isOutside) throw corrupt("its vectors are in a file, and an index of this dimension or build has them in memory");
      });
    },
    image(piece) {
      if (fault !== undefined) return;
      found.push(async () => {
        await index!.loadImage(piece);
        if (piece !== undefined) return;
        index!.rows.reserve(index!.rows.size + totalRows);
        for (const [all, numbers] of named.splice(0)) {
          for (let from = 0; from < all.length; from += IDS_AT_ONCE) {
            const ids = all.slice(from, from + IDS_AT_ONCE);
            undo.note(ids);
            index!.rows.restore(ids, numbers.subarray(from, from + ids.length));
            rows += ids.length;
            options.onProgress?.({ rows, totalRows });
            await slices.pause();
          }
        }
        await index!.adoptRows();
        if (index!.size !== totalRows) throw corrupt("its images have other rows than its ids");
      });
    },
    rows(ids, matrix) {
      found.push(async () => {
        undo.note(ids);
        try {
          await index!.upsertMany(ids, matrix);
        } catch (error) {
          throw error instanceof RangeError ? corrupt("a vector is not finite") : error;
        }
        rows += ids.length;
        options.onProgress?.({ rows, totalRows });
      });
    },
    schema(schema) {
      if (schema !== options.columns?.schema) {
        fault = new LodestoneError(
          "INVALID",
          `The snapshot holds values of the columns ${schema}, and the index is to have ${options.columns?.schema}.`,
        );
      }
    },
    values(ids, text) {
      if (fault !== undefined) return;
      const values = options.columns!.decode(text);
      if (values.length !== ids.length) throw corrupt("values are missing");
      // One by one: columns whose words are read take their time.
      found.push(async () => {
        for (const [i, id] of ids.entries()) {
          options.columns!.set(index!.rows.rowOf(id)!, values[i]);
          await slices.pause();
        }
      });
    },
  });
  try {
    for (let want = parser.next(); !want.done; ) {
      const bytes = await reader.take(want.value);
      if (bytes.length < want.value) throw corrupt("it ends too early");
      want = parser.next(bytes);
      for (const store of found.splice(0)) await store();
      await slices.pause();
    }
    if (!(await reader.isAtEnd())) throw corrupt("more follows after its end");
    if (fault !== undefined) throw fault;
    await reader.close();
    return index!;
  } catch (error) {
    await reader.close(error);
    await index?.free();
    undo.restore();
    throw error;
  }
}

/** The rows of a shared directory that loading has touched. */
class LoadedRows {
  readonly #options: LoadOptions;
  readonly #added: string[] = [];
  readonly #before = new Map<number, CheckedValues | undefined>();

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Call it before they are stored. */
  note(ids: readonly string[]): void {
    const { rows, columns } = this.#options;
    if (rows === undefined) return;
    for (const id of ids) {
      const row = rows.rowOf(id);
      if (row === undefined) this.#added.push(id);
      else if (columns !== undefined) this.#before.set(row, columns.keep(row));
    }
  }

  restore(): void {
    const { rows, columns } = this.#options;
    for (const id of this.#added.reverse()) rows?.release(id);
    for (const [row, values] of this.#before) {
      if (values === undefined) columns?.clear(row);
      else columns?.set(row, values);
    }
  }
}
