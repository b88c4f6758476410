/**
 * Replicas in IndexedDB: pieces under [name, generation, number]. A record under the name says which generation is current; it is
 * written last, in one transaction with the removal of the one before. A whole state is kept as Blobs of many pieces, which the browser
 * reads without the page's main thread, in half the time; what is appended is bytes.
 */
import { unavailable } from "../snapshot-store.ts";
import type { ReplicaStore } from "./replica-store.ts";

const GENERATIONS = "generations";
const PIECES = "pieces";
/** Above every string and number in the order of keys. */
const LAST: IDBValidKey = [];
/** Read in one transaction. */
const PIECES_AT_ONCE = 32;
/** Of a Blob, at least: two are in memory while a replica is read. */
const BLOB_BYTES = 4 << 20;

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
    for (let from = 0; from < next; from += PIECES_AT_ONCE) {
      const range = IDBKeyRange.bound([name, generation, from], [name, generation, Math.min(next, from + PIECES_AT_ONCE)], false, true);
      const pieces = await this.#in("readonly", (stores) => requested(stores.pieces.getAll(range) as IDBRequest<(Blob | Uint8Array)[]>));
      yield* bytesOf(pieces);
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
      for await (const blob of blobsOf(pieces))
        await this.#in("readwrite", async (stores) => void stores.pieces.put(blob, [name, generation, next++]));
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

async function* blobsOf(pieces: AsyncIterable<Uint8Array<ArrayBuffer>>): AsyncGenerator<Blob, void, undefined> {
  let own: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    own.push(piece);
    bytes += piece.length;
    if (bytes < BLOB_BYTES) continue;
    yield new Blob(own);
    [own, bytes] = [[], 0];
  }
  if (own.length > 0) yield new Blob(own);
}

/** The next is read while one is used. */
async function* bytesOf(pieces: readonly (Blob | Uint8Array)[]): AsyncGenerator<Uint8Array, void, undefined> {
  const read = async (piece: Blob | Uint8Array | undefined) => (piece instanceof Blob ? new Uint8Array(await piece.arrayBuffer()) : piece);
  let reading = read(pieces[0]);
  for (let i = 1; i <= pieces.length; i++) {
    const bytes = (await reading)!;
    reading = read(pieces[i]);
    // Its caller may stop before this one.
    reading.catch(() => {});
    yield bytes;
  }
}

function requested<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
