/**
 * Indexes as files of the origin's private file system (OPFS). A file is replaced only when its last byte has been
 * written.
 */
import type { ByteSource, ByteStream } from "../core/byte-stream.ts";
import { SnapshotStore, unavailable } from "./snapshot-store.ts";

const ENDING = ".lodestone";

export class OpfsStore extends SnapshotStore {
  readonly #directory: string;

  /** @param directory  its name in the root of the file system; made when something is saved. */
  constructor(directory = "lodestone") {
    super();
    this.#directory = directory;
  }

  async delete(name: string): Promise<boolean> {
    const folder = await this.#folder(false);
    return (await ifFound(folder?.removeEntry(fileName(name)).then(() => true))) ?? false;
  }

  async names(): Promise<string[]> {
    const names: string[] = [];
    const folder = await this.#folder(false);
    // Not in every declaration of the type yet.
    const keys = (folder as unknown as { keys(): AsyncIterable<string> } | undefined)?.keys() ?? [];
    for await (const name of keys) if (name.endsWith(ENDING)) names.push(decodeURIComponent(name.slice(0, -ENDING.length)));
    return names.sort();
  }

  protected async write(name: string, stream: ByteStream): Promise<void> {
    const folder = await this.#folder(true);
    const file = await folder?.getFileHandle(fileName(name), { create: true });
    if (file === undefined || !("createWritable" in file))
      throw unavailable("This browser cannot write files in the origin's private file system; use IndexedDbStore");
    const isNew = (await file.getFile()).size === 0;
    try {
      // Closes at the end and aborts on an error: what was there stays.
      await stream.pipeTo(await file.createWritable());
    } catch (error) {
      if (isNew) await ifFound(folder?.removeEntry(fileName(name)));
      throw error instanceof DOMException && error.name === "QuotaExceededError"
        ? unavailable("The browser has no room for the index", error)
        : error;
    }
  }

  protected async read(name: string): Promise<ByteSource | undefined> {
    const folder = await this.#folder(false);
    const handle = await ifFound(folder?.getFileHandle(fileName(name)));
    return handle?.getFile();
  }

  async #folder(create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
    const { storage } = globalThis.navigator ?? {};
    if (storage?.getDirectory === undefined)
      throw unavailable("This runtime has no origin private file system; pages need https or localhost for it");
    const root = await storage.getDirectory();
    return ifFound(root.getDirectoryHandle(this.#directory, { create }));
  }
}

function fileName(name: string): string {
  return encodeURIComponent(name) + ENDING;
}

async function ifFound<Value>(found: Promise<Value> | undefined): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotFoundError") return undefined;
    throw error;
  }
}
