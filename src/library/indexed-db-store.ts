/**
 * Indexes in IndexedDB, in pieces of about 1 MB: browsers do not accept one value of hundreds of megabytes. Pieces
 * carry the number of the save that wrote them, and a record under the index's name says which save is current.
 * That record is written last, in one transaction with the removal of the previous save's pieces.
 */
import type { ByteSource, ByteStream } from "../core/byte-stream.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { SnapshotStore, unavailable } from "./snapshot-store.ts";

/** Of the store "snapshots", by name. */
interface Saved {
  save: string;
  pieces: number;
}

const SNAPSHOTS = "snapshots";
/** Uint8Array by [name, save, number]. */
const PIECES = "pieces";
/** Above every string and number in the order of keys. */
const LAST: IDBValidKey = [];

export class IndexedDbStore extends SnapshotStore {
  readonly #database: string;
  #opened: Promise<IDBDatabase> | undefined;

  /** @param database  its name in IndexedDB; made when first used. */
  constructor(database = "lodestone") {
    super();
    this.#database = database;
  }

  async delete(name: string): Promise<boolean> {
    let was: Saved | undefined;
    await this.#transaction("readwrite", async (snapshots, pieces) => {
      was = await request(snapshots.get(name) as IDBRequest<Saved | undefined>);
      snapshots.delete(name);
      pieces.delete(IDBKeyRange.bound([name], [name, LAST]));
    });
    return was !== undefined;
  }

  async names(): Promise<string[]> {
    let names: string[] = [];
    await this.#transaction("readonly", async (snapshots) => {
      names = (await request(snapshots.getAllKeys())) as string[];
    });
    return names;
  }

  /** Closes the connection, so that the database can be deleted. It is opened again when needed. */
  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    (await opened)?.close();
  }

  protected async write(name: string, stream: ByteStream): Promise<void> {
    const save = `${Date.now()}-${Math.random()}`;
    let count = 0;
    const reader = stream.getReader();
    try {
      for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
        await this.#transaction("readwrite", async (_, pieces) => void pieces.put(value, [name, save, count]));
        count++;
      }
      await this.#transaction("readwrite", async (snapshots, pieces) => {
        const whole = IDBKeyRange.bound([name, save], [name, save, LAST]);
        // Another save of the same name that ended meanwhile has removed them.
        if ((await request(pieces.count(whole))) !== count)
          throw new LodestoneError("CONFLICT", "The index was saved twice at the same time. Save it again.");
        snapshots.put({ save, pieces: count } satisfies Saved, name);
        pieces.delete(IDBKeyRange.bound([name], [name, save], false, true));
        pieces.delete(IDBKeyRange.bound([name, save, LAST], [name, LAST], true));
      });
    } catch (error) {
      await reader.cancel(error).catch(() => {});
      await this.#transaction("readwrite", async (_, pieces) => void pieces.delete(IDBKeyRange.bound([name, save], [name, save, LAST])));
      throw error instanceof DOMException && error.name === "QuotaExceededError"
        ? unavailable("The browser has no room for the index", error)
        : error;
    }
  }

  protected async read(name: string): Promise<ByteSource | undefined> {
    let saved: Saved | undefined;
    await this.#transaction("readonly", async (snapshots) => {
      saved = await request(snapshots.get(name) as IDBRequest<Saved | undefined>);
    });
    return saved && this.#pieces(name, saved);
  }

  async *#pieces(name: string, { save, pieces: count }: Saved): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < count; i++) {
      let piece: Uint8Array | undefined;
      await this.#transaction("readonly", async (_, pieces) => {
        piece = await request(pieces.get([name, save, i]) as IDBRequest<Uint8Array | undefined>);
      });
      if (piece === undefined)
        throw new LodestoneError("CONFLICT", "The index was replaced or deleted while it was being loaded. Load it again.");
      yield piece;
    }
  }

  /**
   * Resolves when the transaction is on disk; an error of `body` undoes it. `body` waits for nothing but
   * requests of the transaction.
   */
  async #transaction(mode: IDBTransactionMode, body: (snapshots: IDBObjectStore, pieces: IDBObjectStore) => Promise<void>): Promise<void> {
    this.#opened ??= open(this.#database);
    const transaction = (await this.#opened).transaction([SNAPSHOTS, PIECES], mode);
    const ended = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    try {
      await body(transaction.objectStore(SNAPSHOTS), transaction.objectStore(PIECES));
    } catch (error) {
      ended.catch(() => {});
      try {
        transaction.abort();
      } catch {
        // It has ended by itself.
      }
      throw error;
    }
    await ended;
  }
}

function open(name: string): Promise<IDBDatabase> {
  if (typeof indexedDB === "undefined") return Promise.reject(unavailable("This runtime has no IndexedDB"));
  const opening = indexedDB.open(name, 1);
  opening.onupgradeneeded = () => {
    opening.result.createObjectStore(SNAPSHOTS);
    opening.result.createObjectStore(PIECES);
  };
  return request(opening).catch((error: unknown) => {
    throw unavailable("IndexedDB cannot be opened", error);
  });
}

function request<Value>(asked: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}
