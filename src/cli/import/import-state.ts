/**
 * Where an interrupted import goes on: a small file, written anew (and renamed into place) behind each acknowledged batch, removed at the end. It belongs to one
 * file as it is (size and time) and one target; when either has changed, it is not used.
 */
import { createHash } from "node:crypto";
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { SourcePosition } from "./source.ts";

export interface ImportState {
  readonly version: 1;
  readonly file: { readonly path: string; readonly size: number; readonly mtimeMs: number };
  readonly target: string;
  /** Makes the ids of records that have none: the same in the first run and in the one that goes on. */
  readonly idSeed: string;
  readonly position: SourcePosition;
}

export class ImportJournal {
  readonly path: string;
  readonly #file: ImportState["file"];
  readonly #target: string;

  private constructor(path: string, file: ImportState["file"], target: string) {
    this.path = path;
    this.#file = file;
    this.#target = target;
  }

  /** @param statePath default: beside the file, named by file and target. */
  static async open(filePath: string, target: string, statePath?: string): Promise<ImportJournal> {
    const path = resolve(filePath);
    const { size, mtimeMs } = await stat(path);
    const name = createHash("sha256").update(`${path}\n${target}`).digest("hex").slice(0, 16);
    return new ImportJournal(statePath ?? join(dirname(path), `.lodestone-import-${name}.json`), { path, size, mtimeMs }, target);
  }

  /** undefined when there is none, or it is of another file or target. */
  async load(): Promise<ImportState | undefined> {
    let state: ImportState;
    try {
      state = JSON.parse(await readFile(this.path, "utf8"));
    } catch {
      return undefined;
    }
    const { file } = state;
    const fits =
      state.version === 1 &&
      state.target === this.#target &&
      file?.path === this.#file.path &&
      file.size === this.#file.size &&
      file.mtimeMs === this.#file.mtimeMs &&
      Number.isSafeInteger(state.position?.offset);
    return fits ? state : undefined;
  }

  async save(idSeed: string, position: SourcePosition): Promise<void> {
    const state: ImportState = { version: 1, file: this.#file, target: this.#target, idSeed, position };
    await writeFile(`${this.path}.new`, `${JSON.stringify(state)}\n`);
    await rename(`${this.path}.new`, this.path);
  }

  async remove(): Promise<void> {
    await rm(this.path, { force: true });
  }
}
