/**
 * The images of all shards of an index whose vectors are in files (shard-image.ts), one shard after the other. Rows are those of the index;
 * row-writes.ts says which shard has which.
 */
import { rowOfShard } from "./row-writes.ts";
import type { SavedImages } from "./saved-rows.ts";
import type { ShardClient } from "./shard-client.ts";
import { piecesOf } from "./shard-image.ts";
import { Slices } from "./slices.ts";
import { corrupt } from "./snapshot.ts";

/** The pieces of all images. */
export async function* saveImages(shards: readonly ShardClient[]): AsyncGenerator<Uint8Array, undefined, void> {
  for (const shard of shards) {
    for (let isFirst = true; ; isFirst = false) {
      const piece = await shard.call<"save">({ type: "save", isFirst });
      if (piece === undefined) break;
      yield piece;
    }
  }
}

/** See VectorShard.endSave. */
export async function endImages(shards: readonly ShardClient[], isKept: boolean): Promise<void> {
  await Promise.all(shards.map((shard) => shard.call<"endSave">({ type: "endSave", isKept })));
}

/** The same for a snapshot. */
export function imagesToSave(shards: readonly ShardClient[]): SavedImages {
  const images = saveImages(shards);
  return { shards: shards.length, next: async () => (await images.next()).value, end: (isKept) => endImages(shards, isKept) };
}

/** Takes in the pieces of all images, into empty shards. */
export class ImagesLoader {
  readonly #shards: readonly ShardClient[];
  /** Whose image has begun, or will next. */
  #shard = 0;
  /** Pieces of that image that have not come; 0: it has not begun. */
  #left = 0;

  constructor(shards: readonly ShardClient[]) {
    this.#shards = shards;
  }

  /**
   * The next piece may be given before the shard has taken this one in.
   * @param piece  undefined after the last; its buffer is transferred. @throws {LodestoneError} CORRUPT.
   */
  async take(piece: Uint8Array<ArrayBuffer> | undefined): Promise<void> {
    const shard = this.#shards[this.#shard];
    if ((piece === undefined) !== (shard === undefined)) throw corrupt("it has images of another number of shards");
    if (piece === undefined || shard === undefined) return;
    if (this.#left === 0) this.#left = piecesOf(piece);
    const isLast = --this.#left === 0;
    if (isLast) this.#shard++;
    if ((await shard.call<"load">({ type: "load", piece }, [piece.buffer])) !== isLast)
      throw corrupt("an image of a shard has another number of pieces");
  }
}

/** Rows that are named before others get a turn: about a millisecond. */
const ROWS_AT_ONCE = 2 ** 12;

/**
 * Gives the rows that came with images their ids, and clears the others.
 * @param idOf  undefined: the row is to be cleared.
 * @param onRow  called with each row that stays.
 */
export async function adoptRows(
  shards: readonly ShardClient[],
  idOf: (row: number) => string | undefined,
  onRow: (row: number) => void,
): Promise<void> {
  const slices = new Slices();
  await Promise.all(
    shards.map(async (shard, i) => {
      const all = await shard.call<"rows">({ type: "rows" });
      for (let from = 0; from < all.length; from += ROWS_AT_ONCE) {
        const rows: number[] = [];
        const ids: string[] = [];
        const cleared: number[] = [];
        for (const own of all.subarray(from, from + ROWS_AT_ONCE)) {
          const row = rowOfShard(own, i, shards.length);
          const id = idOf(row);
          if (id === undefined) {
            cleared.push(own);
            continue;
          }
          rows.push(own);
          ids.push(id);
          onRow(row);
        }
        await shard.call<"name">({ type: "name", rows: Uint32Array.from(rows), ids });
        if (cleared.length > 0) await shard.call<"clear">({ type: "clear", rows: Uint32Array.from(cleared) });
        await slices.pause();
      }
    }),
  );
}
