/** Replicas as files of a folder (Node, Bun, Deno). */
import { nodeModule } from "../../core/node-modules.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { ReplicaStore } from "./replica-store.ts";

const ENDING = ".replica";
const PIECE_BYTES = 1 << 20;

export class FolderReplicaStore implements ReplicaStore {
  readonly #folder: string;
  readonly #fs: typeof import("node:fs").promises;

  /** @param folder  made when something is kept. @throws {LodestoneError} UNAVAILABLE where there are no files. */
  constructor(folder: string) {
    const fs = nodeModule("node:fs");
    if (fs === undefined) throw new LodestoneError("UNAVAILABLE", "This runtime has no files; in a browser use IndexedDbReplicaStore.");
    this.#folder = folder;
    this.#fs = fs.promises;
  }

  async *read(name: string): AsyncGenerator<Uint8Array, void, undefined> {
    const file = await this.#fs.open(this.#path(name), "r").catch((error: { code?: string }) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (file === undefined) return;
    try {
      for (;;) {
        const { buffer, bytesRead } = await file.read(new Uint8Array(PIECE_BYTES), 0, PIECE_BYTES);
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  }

  /** A process that is killed may leave a part of the last group, which is not used. */
  async append(name: string, pieces: readonly Uint8Array<ArrayBuffer>[]): Promise<void> {
    const file = await this.#fs.open(this.#path(name), "a", 0o600);
    try {
      for (const piece of pieces) await file.writeFile(piece);
    } finally {
      await file.close();
    }
  }

  async replace(name: string, pieces: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<void> {
    await this.#fs.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = this.#path(name);
    const file = await this.#fs.open(`${path}.tmp`, "w", 0o600);
    try {
      for await (const piece of pieces) await file.writeFile(piece);
      await file.sync();
    } finally {
      await file.close();
    }
    await this.#fs.rename(`${path}.tmp`, path);
  }

  async delete(name: string): Promise<void> {
    await this.#fs.rm(this.#path(name), { force: true });
  }

  #path(name: string): string {
    return `${this.#folder}/${encodeURIComponent(name)}${ENDING}`;
  }
}
