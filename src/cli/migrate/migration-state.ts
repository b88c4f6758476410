/**
 * How far a migration has come: a small file in a folder of its own, replaced whole after each step. It belongs
 * to one target and to one version of the source. If the source has changed since, the state cannot be used, and
 * the command says so.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { replaceFile } from "../../files/replace-file.ts";
import { newIdSeed } from "../import/run-import.ts";
import type { MigrationSource } from "./open-source.ts";

interface State {
  readonly version: 1;
  readonly target: string;
  readonly source: string;
  /** Seeds the ids of records that have none: the same in every run. */
  readonly idSeed: string;
  finished: string[];
  /** Counts and checksums were equal: the branch may be renamed to its final name. */
  verified: boolean;
}

export class MigrationState {
  readonly folder: string;
  readonly #state: State;
  /** False when an earlier run left a state. */
  readonly isNew: boolean;

  private constructor(folder: string, state: State, isNew: boolean) {
    this.folder = folder;
    this.#state = state;
    this.isNew = isNew;
  }

  static async open(folder: string, target: string, source: MigrationSource, restart: boolean): Promise<MigrationState> {
    if (restart) await rm(folder, { recursive: true, force: true });
    const fingerprint = await fingerprintOf(source);
    const found = await readState(folder);
    if (found !== undefined && (found.target !== target || found.source !== fingerprint)) {
      throw new LodestoneError(
        "CONFLICT",
        `${folder} is the state of a migration that was ${found.target === target ? "started with other files than these" : `into ${found.target}`}. Start over with --restart.`,
      );
    }
    await mkdir(folder, { recursive: true });
    const state = new MigrationState(
      folder,
      found ?? { version: 1, target, source: fingerprint, idSeed: newIdSeed(), finished: [], verified: false },
      found === undefined,
    );
    await state.#save();
    return state;
  }

  has(step: string): boolean {
    return this.#state.finished.includes(step);
  }

  async add(step: string): Promise<void> {
    this.#state.finished.push(step);
    await this.#save();
  }

  get idSeed(): string {
    return this.#state.idSeed;
  }

  get isVerified(): boolean {
    return this.#state.verified;
  }

  async setVerified(): Promise<void> {
    this.#state.verified = true;
    await this.#save();
  }

  async #save(): Promise<void> {
    await replaceFile(join(this.folder, "state.json"), `${JSON.stringify(this.#state)}\n`);
  }
}

async function readState(folder: string): Promise<State | undefined> {
  try {
    const state: State = JSON.parse(await readFile(join(folder, "state.json"), "utf8"));
    return state.version === 1 && Array.isArray(state.finished) ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Of the tables as they will be, and of the files as they are and are read. */
async function fingerprintOf({ tables, encoding, isUnderscored }: MigrationSource): Promise<string> {
  const hash = createHash("sha256").update(JSON.stringify([isUnderscored, tables.map(({ name, columns }) => [name, columns])]));
  if (encoding !== undefined) hash.update(`\n${encoding}`);
  for (const file of new Set(tables.map((table) => table.file))) {
    if (file === undefined) continue;
    const { size, mtimeMs } = await stat(file);
    hash.update(`\n${file} ${size} ${mtimeMs}`);
  }
  return hash.digest("hex");
}
