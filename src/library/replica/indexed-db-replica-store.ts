/**
 * Replicas in IndexedDB: pieces under [name, generation, number]. A record under the name says which generation is current; it is
 * written last, in one transaction with the removal of the one before.
 */
import { unavailable } from "../snapshot-store.ts";
import type { ReplicaStore } from "./replica-store.ts";

const GENERATIONS = "generations";
const PIECES = "pieces";
/** Above every string and number in the order of keys. */
const LAST: IDBValidKey = [];
/** Read in one transaction. */
const PIECES_AT_ONCE = 32;

interface Generation {
  readonly generation: string;
  /** Number of the next piece. */
  readonly next: number;
}

export class IndexedDbReplicaStore implements ReplicaStore {
  readonly sharedAs: string;
  #opened: Promise<IDBDatabase> | undefined;

  /** @param database  its name in IndexedDB; made when first used. */
  constructor(database = "lodestone-replicas") {
    this.sharedAs = database;
  }

  async *read(name: string): AsyncGenerator<Uint8Array, void, undefined> {
    const current = await this.#in("readonly", (stores) => requested(stores.generations.get(name) as IDBRequest<Generation | undefined>));
    if (current === undefined) return;
    const { generation, next } = current;
    const piecesFrom = async (from: number): Promise<Uint8Array[]> => {
      if (from >= next) return [];
      const range = IDBKeyRange.bound([name, generation, from], [name, generation, Math.min(next, from + PIECES_AT_ONCE)], false, true);
      return this.#in("readonly", ({ pieces }) => requested(pieces.getAll(range) as IDBRequest<Uint8Array[]>));
    };
    // The next are read while these are used.
    let read = piecesFrom(0);
    for (let from = 0; from < next; from += PIECES_AT_ONCE) {
      const pieces = await read;
      read = piecesFrom(from + PIECES_AT_ONCE);
      // Its caller may stop before these.
      read.catch(() => {});
      yield* pieces;
    }
  }

  async append(name: string, pieces: readonly Uint8Array<ArrayBuffer>[]): Promise<void> {
    await this.#in("readwrite", async (stores) => {
      const current = await requested(stores.generations.get(name) as IDBRequest<Generation | undefined>);
      if (current === undefined) return;
      const { generation, next } = current;
      pieces.forEach((piece, i) => {
        stores.pieces.put(piece, [name, generation, next + i]);
      });
      stores.generations.put({ generation, next: next + pieces.length } satisfies Generation, name);
    });
  }

  async replace(name: string, pieces: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<void> {
    const generation = `${Date.now()}-${Math.random()}`;
    let next = 0;
    try {
      for await (const piece of pieces)
        await this.#in("readwrite", async (stores) => void stores.pieces.put(piece, [name, generation, next++]));
      await this.#in("readwrite", async (stores) => {
        stores.generations.put({ generation, next } satisfies Generation, name);
        stores.pieces.delete(IDBKeyRange.bound([name], [name, generation], false, true));
        stores.pieces.delete(IDBKeyRange.bound([name, generation, LAST], [name, LAST], true));
      });
    } catch (error) {
      await this.#in(
        "readwrite",
        async (stores) => void stores.pieces.delete(IDBKeyRange.bound([name, generation], [name, generation, LAST])),
      );
      throw error instanceof DOMException && error.name === "QuotaExceededError"
        ? unavailable("The browser has no room for the replica", error)
        : error;
    }
  }

  async delete(name: string): Promise<void> {
    await this.#in("readwrite", async (stores) => {
      stores.generations.delete(name);
      stores.pieces.delete(IDBKeyRange.bound([name], [name, LAST]));
    });
  }

  async #in<Result>(
    mode: IDBTransactionMode,
    work: (stores: { readonly generations: IDBObjectStore; readonly pieces: IDBObjectStore }) => Promise<Result>,
  ): Promise<Result> {
    this.#opened ??= this.#open();
    const transaction = (await this.#opened).transaction([GENERATIONS, PIECES], mode);
    const done = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new DOMException("The transaction was aborted.", "AbortError"));
    });
    const result = await work({ generations: transaction.objectStore(GENERATIONS), pieces: transaction.objectStore(PIECES) });
    await done;
    return result;
  }

  async #open(): Promise<IDBDatabase> {
    if (globalThis.indexedDB === undefined) throw unavailable("This runtime has no IndexedDB");
    const opening = indexedDB.open(this.sharedAs, 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore(GENERATIONS);
      opening.result.createObjectStore(PIECES);
    };
    return requested(opening);
  }
}

function requested<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
