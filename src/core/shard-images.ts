/**
 * The images of all shards of an index whose vectors are in files (shard-image.ts), one shard after the other. Rows are those of the index;
 * row-writes.ts says which shard has which.
 */
import { rowOfShard } from "./row-writes.ts";
import type { SavedImages } from "./saved-rows.ts";
import type { ShardClient } from "./shard-client.ts";
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
  #loaded = 0;

  constructor(shards: readonly ShardClient[]) {
    this.#shards = shards;
  }

  /** @param piece  undefined after the last; its buffer is transferred. @throws {LodestoneError} CORRUPT. */
  async take(piece: Uint8Array<ArrayBuffer> | undefined): Promise<void> {
    const shard = this.#shards[this.#loaded];
    if ((piece === undefined) !== (shard === undefined)) throw corrupt("it has images of another number of shards");
    if (piece === undefined || shard === undefined) return;
    if (await shard.call<"load">({ type: "load", piece }, [piece.buffer])) this.#loaded++;
  }
}

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
  await Promise.all(
    shards.map(async (shard, i) => {
      const rows: number[] = [];
      const ids: string[] = [];
      const cleared: number[] = [];
      for (const own of await shard.call<"rows">({ type: "rows" })) {
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
    }),
  );
}
