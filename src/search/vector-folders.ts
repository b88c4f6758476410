/**
 * Folders with the vectors of columns that are kept outside memory, beside the snapshots of their branches. A folder belongs
 * to one index; what the index knows of its rows is in the snapshot.
 *
 * Invariant: a folder that an index has open, or that the snapshot on disk names, is not removed.
 */
import { randomUUID } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { LodestoneError } from "../errors/lodestone-error.ts";

const NAME = /^[0-9a-f]{32}\.[0-9a-f]{8}\.vectors$/;

export class VectorFolders {
  readonly #open = new Set<string>();

  /** Makes one beside a snapshot. */
  async create(snapshotPath: string): Promise<string> {
    const path = `${snapshotPath.replace(/\.snapshot$/, "")}.${randomUUID().slice(0, 8)}.vectors`;
    // The vectors are values of records, so only the owner may read them.
    await mkdir(path, { recursive: true, mode: 0o700 });
    this.#open.add(path);
    return path;
  }

  /** One that a snapshot names. @throws {LodestoneError} CORRUPT when an index has it open already, or that is no name of one. */
  reopen(snapshotPath: string, name: string): string {
    const path = join(dirname(snapshotPath), name);
    if (!NAME.test(name) || this.#open.has(path))
      throw new LodestoneError("CORRUPT", `The vectors in ${JSON.stringify(name)} cannot be used.`);
    this.#open.add(path);
    return path;
  }

  /** Call it when the index is freed. */
  close(path: string): void {
    this.#open.delete(path);
  }

  /** Removes those of a branch that are not open, nor named in its snapshot. */
  async removeOthers(snapshotPath: string, named: readonly string[]): Promise<void> {
    const directory = dirname(snapshotPath);
    const prefix = `${basename(snapshotPath, ".snapshot")}.`;
    for (const name of await readdir(directory)) {
      if (!name.startsWith(prefix) || !NAME.test(name) || named.includes(name) || this.#open.has(join(directory, name))) continue;
      await rm(join(directory, name), { recursive: true, force: true });
    }
  }
}
