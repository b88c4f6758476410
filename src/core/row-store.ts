/**
 * The rows of a shard that lie in a file: each has a place (a slot), a number that says where. Places that are not used any more
 * are on a free list and written again, so a file does not grow when rows are updated or deleted.
 *
 * An image of the shard (its checkpoint, shard-image.ts) refers to places. What a kept image refers to must stay as it is until
 * a later one is kept, as in shadow paging (copy on write): a changed row goes to a new place.
 *
 *            freed             an image is begun          it is kept
 *   USED  ----------> FREED  ------------------> WAITING ------------> REUSABLE ---> USED
 *                       ^                           |     a row is written
 *                       +---------------------------+
 *                              it is given up
 *
 * Without images a place that is freed is reusable at once.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { BitSet } from "./bit-set.ts";
import { type ImageExports, loadImage, saveImage } from "./shard-image.ts";
import { damaged } from "./snapshot.ts";
import type { VectorFile } from "./vector-file.ts";

/** What can be addressed by u32, less the number that stands for none. */
const MAX_PLACES = 2 ** 32 - 1;

interface Run {
  first: number;
  count: number;
}

export class RowStore {
  readonly #file: VectorFile;
  readonly #rowBytes: number;
  /** Places that were ever used are below this. */
  #end = 0;
  readonly #reusable = new BitSet();
  #freed = new BitSet();
  #waiting: BitSet | undefined;
  /** Whether an image was begun: from then on one may be in use. */
  #hasImages = false;
  /** From where reusable places are looked for, so that those of one block lie close together. */
  #cursor = 0;

  constructor(file: VectorFile, rowBytes: number) {
    this.#file = file;
    this.#rowBytes = rowBytes;
  }

  /** Size of the file. */
  get bytes(): number {
    return this.#end * this.#rowBytes;
  }

  /**
   * Stores rows that lie one after the other, and notes their places.
   * @throws {LodestoneError} OUT_OF_MEMORY when the file has no room; nothing has changed then.
   */
  store(rows: Uint8Array<ArrayBuffer>, places: Uint32Array): void {
    const runs = this.#plan(places.length);
    let done = 0;
    try {
      // What an earlier index left in the file is nothing to this one, unless its image was loaded.
      if (this.#end === 0) this.#file.truncate(0);
      for (const { first, count } of runs) {
        const bytes = rows.subarray(done * this.#rowBytes, (done + count) * this.#rowBytes);
        if (this.#file.write(bytes, { at: first * this.#rowBytes }) !== bytes.length) throw new Error("not everything was written");
        done += count;
      }
    } catch (error) {
      throw new LodestoneError(
        "OUT_OF_MEMORY",
        `No room for ${places.length} rows in the file of the vectors (${messageOf(error)}). What is stored stays and answers.`,
        { cause: error },
      );
    }
    let at = 0;
    for (const { first, count } of runs) {
      for (let i = 0; i < count; i++) {
        this.#reusable.delete(first + i);
        places[at++] = first + i;
      }
      this.#end = Math.max(this.#end, first + count);
      this.#cursor = first + count;
    }
  }

  /** Reads `count` rows from a place on. @throws {LodestoneError} CORRUPT when they cannot be read. */
  read(first: number, count: number, to: Uint8Array<ArrayBuffer>): void {
    let read: number;
    try {
      read = this.#file.read(to.subarray(0, count * this.#rowBytes), { at: first * this.#rowBytes });
    } catch (error) {
      throw damaged(`it cannot be read (${messageOf(error)})`, error);
    }
    if (read !== count * this.#rowBytes) throw damaged("it ends too early");
  }

  free(place: number): void {
    (this.#hasImages ? this.#freed : this.#reusable).add(place);
  }

  /**
   * The pieces of the shard's image. Rows that are stored while it is written may be in it. At its end everything that it refers to is on
   * the device.
   */
  *save(core: ImageExports, dimension: number): Generator<Uint8Array<ArrayBuffer>, void, void> {
    this.#hasImages = true;
    if (this.#waiting !== undefined) this.#freed.addAll(this.#waiting);
    this.#waiting = this.#freed;
    this.#freed = new BitSet();
    yield* saveImage(core, dimension);
    this.#file.flush();
  }

  /** @param isKept  whether the image takes the place of all earlier ones. */
  endSave(isKept: boolean): void {
    if (this.#waiting === undefined) return;
    (isKept ? this.#reusable : this.#freed).addAll(this.#waiting);
    this.#waiting = undefined;
    if (isKept) this.#shrink();
  }

  /**
   * Loads an image into an empty shard.
   * @throws {LodestoneError} CORRUPT, also when the file is too short for it; `noRoom` at the memory limit.
   */
  *load(core: ImageExports, dimension: number, noRoom: (rows: number) => Error): Generator<undefined, void, Uint8Array> {
    const rowsThere = Math.floor(this.#file.getSize() / this.#rowBytes);
    const used = yield* loadImage(core, { dimension, rowsThere, noRoom });
    this.#hasImages = true;
    this.#end = rowsThere;
    for (let place = 0; place < rowsThere; place++) if (!used.has(place)) this.#reusable.add(place);
    this.#shrink();
  }

  /** Runs of places for `count` rows: reusable ones from the cursor on, then from the first one on, and then new ones. */
  #plan(count: number): Run[] {
    const runs: Run[] = [];
    let left = Math.min(count, this.#reusable.size);
    const missing = count - left;
    for (let from = this.#cursor; left > 0; ) {
      let first = this.#reusable.next(from);
      if (first === -1) first = this.#reusable.next(0);
      let length = 1;
      while (length < left && this.#reusable.has(first + length)) length++;
      runs.push({ first, count: length });
      left -= length;
      from = first + length;
    }
    if (this.#end + missing > MAX_PLACES)
      throw new LodestoneError("OUT_OF_MEMORY", `No room for more than ${MAX_PLACES} rows in one file.`);
    if (missing > 0) runs.push({ first: this.#end, count: missing });
    return runs;
  }

  /** Gives what is free at the end of the file back to the file system. */
  #shrink(): void {
    const before = this.#end;
    while (this.#end > 0 && this.#reusable.delete(this.#end - 1)) this.#end--;
    if (this.#end === before) return;
    this.#cursor = 0;
    this.#file.truncate(this.#end * this.#rowBytes);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
