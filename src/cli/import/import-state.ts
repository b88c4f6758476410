/**
 * Where an interrupted import continues: a small file, replaced after each acknowledged batch and removed at
 * the end. It belongs to one version of one file (size and time) and to one target; if either has changed, it
 * is ignored. A folder has a file of its own, which lists the finished files.
 */
import { createHash } from "node:crypto";
import { readFile, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { replaceFile } from "../../files/replace-file.ts";
import type { SourcePosition } from "./source.ts";
import type { SourceFiles } from "./source-files.ts";
import type { Encoding } from "./text-encoding.ts";

export interface ImportState {
  readonly version: 1;
  /** `size`: of what is read, which is not the file itself where that had to be converted. */
  readonly file: { readonly path: string; readonly size: number; readonly mtimeMs: number; readonly encoding?: Encoding };
  readonly target: string;
  /** Seeds the ids of records that have none: the same in the first run and in the one that continues. */
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
  static async open(
    { file, files, statePath }: { readonly file: string; readonly files: SourceFiles; readonly statePath?: string },
    size: number,
    target: string,
  ): Promise<ImportJournal> {
    const path = resolve(file);
    const { mtimeMs } = await stat(path);
    const { encoding } = files;
    const name = createHash("sha256").update(`${path}\n${target}`).digest("hex").slice(0, 16);
    return new ImportJournal(
      statePath ?? join(dirname(path), `.lodestone-import-${name}.json`),
      { path, size, mtimeMs, ...(encoding === undefined ? {} : { encoding }) },
      target,
    );
  }

  /** undefined when there is none, or it is of another file or target. */
  async load(): Promise<ImportState | undefined> {
    let state: ImportState;
    try {
      state = JSON.parse(await readFile(this.path, "utf8"));
    } catch {
      return undefined;
    }
    const isOurs = state.version === 1 && state.target === this.#target && isDeepStrictEqual(state.file, this.#file);
    return isOurs && Number.isSafeInteger(state.position?.offset) ? state : undefined;
  }

  async save(idSeed: string, position: SourcePosition): Promise<void> {
    const state: ImportState = { version: 1, file: this.#file, target: this.#target, idSeed, position };
    await replaceFile(this.path, `${JSON.stringify(state)}\n`);
  }

  async remove(): Promise<void> {
    await rm(this.path, { force: true });
  }
}

/** Which steps of a folder's import are finished. */
export class FolderJournal {
  readonly #path: string;
  readonly #target: string;
  readonly #finished: Set<string>;

  private constructor(path: string, target: string, finished: Set<string>) {
    this.#path = path;
    this.#target = target;
    this.#finished = finished;
  }

  static async open(folder: string, target: string, restart: boolean): Promise<FolderJournal> {
    const name = createHash("sha256").update(target).digest("hex").slice(0, 16);
    const path = join(resolve(folder), `.lodestone-import-${name}.json`);
    let finished: string[] = [];
    try {
      const state: { target: string; finished: string[] } = JSON.parse(await readFile(path, "utf8"));
      if (!restart && state.target === target) ({ finished } = state);
    } catch {
      // None yet, or none that is usable.
    }
    return new FolderJournal(path, target, new Set(finished));
  }

  async has(kind: string, file: string): Promise<boolean> {
    return this.#finished.has(await stepName(kind, file));
  }

  async add(kind: string, file: string): Promise<void> {
    this.#finished.add(await stepName(kind, file));
    await replaceFile(this.#path, `${JSON.stringify({ target: this.#target, finished: [...this.#finished] })}\n`);
  }

  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}

/** A file that has changed counts as another step. */
async function stepName(kind: string, file: string): Promise<string> {
  const { size, mtimeMs } = await stat(file);
  return `${kind} ${basename(file)} ${size} ${mtimeMs}`;
}
