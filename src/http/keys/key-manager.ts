/**
 * What an administrator may do with keys while the server runs: list them, create one, revoke one. These keys are
 * in the key file; those of the command line cannot be changed.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Scope } from "../../key-scopes.ts";
import type { AccessKey } from "./access-keys.ts";
import type { FollowedKeyFile } from "./followed-key-file.ts";
import { createKey, revokeKey } from "./key-file.ts";

export interface KeyEntry {
  readonly name: string;
  readonly scope: Scope;
  /** null: all. */
  readonly databases: readonly string[] | null;
  /** null: given on the command line. */
  readonly createdAt: string | null;
}

export class KeyManager {
  readonly #fixed: readonly AccessKey[];
  readonly #file: FollowedKeyFile | undefined;

  /** @param fixed those of the command line. @param file undefined: there is none, and no key can be made. */
  constructor(fixed: readonly AccessKey[], file: FollowedKeyFile | undefined) {
    this.#fixed = fixed;
    this.#file = file;
  }

  /** Whether keys can be made and revoked here. */
  get hasFile(): boolean {
    return this.#file !== undefined;
  }

  /** Why the keys may be older than those of the file, in a sentence for everybody; undefined: they are not. */
  get fault(): string | undefined {
    return this.#file?.fault;
  }

  /**
   * Those of the command line first, then the file's, oldest first. Neither keys nor hashes.
   * @throws {LodestoneError} UNAVAILABLE when the file cannot be read.
   */
  async list(): Promise<KeyEntry[]> {
    const stored = this.#file === undefined ? [] : await this.#file.read();
    return [
      ...this.#fixed.map(({ name, scope }) => ({ name, scope, databases: null, createdAt: null })),
      ...stored.map(({ name, scope, databases, createdAt }) => ({ name, scope, databases: databases ?? null, createdAt })),
    ];
  }

  /**
   * The key is in the answer and nowhere else; it is accepted from then on.
   * @throws {LodestoneError} CONFLICT (the name is taken), INVALID (no file), UNAVAILABLE (the file cannot be read).
   */
  async create(name: string, scope: Scope, databases?: readonly string[]): Promise<string> {
    const file = this.#requireFile();
    // A file that was removed is not begun anew: that would revoke every other key.
    await file.read();
    const key = await createKey(file.path, name, scope, databases);
    await file.read();
    return key;
  }

  /**
   * It is refused from then on.
   * @param by the key of who asks.
   * @throws {LodestoneError} NOT_FOUND, CONFLICT (it is the asker's own), INVALID (no file), UNAVAILABLE (the file
   *   cannot be read).
   */
  async revoke(name: string, by: string): Promise<void> {
    const file = this.#requireFile();
    if (name === by) throw new LodestoneError("CONFLICT", "This is the key that was used for this request. Use another key to revoke it.");
    await file.read();
    await revokeKey(file.path, name);
    await file.read();
  }

  #requireFile(): FollowedKeyFile {
    if (this.#file !== undefined) return this.#file;
    throw new LodestoneError("INVALID", "This server has no key file; start it with --key-file to create and revoke keys while it runs.");
  }
}
