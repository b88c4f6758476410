/**
 * What an administrator may do with keys while the server runs: list them, create one, revoke one. These keys are
 * in the key file; those of the command line cannot be changed.
 */
import { LodestoneError } from "../../errors.ts";
import type { Scope } from "../../key-scopes.ts";
import type { AccessKey, Keyring } from "./access-keys.ts";
import { createKey, readKeyFile, revokeKey } from "./key-file.ts";

export interface KeyEntry {
  readonly name: string;
  readonly scope: Scope;
  /** null: all. */
  readonly databases: readonly string[] | null;
  /** null: given on the command line. */
  readonly createdAt: string | null;
}

export class KeyManager {
  readonly #keyring: Keyring;
  readonly #fixed: readonly AccessKey[];
  readonly #file: string | undefined;

  /** @param fixed those of the command line. @param file undefined: there is none, and no key can be made. */
  constructor(keyring: Keyring, fixed: readonly AccessKey[], file: string | undefined) {
    this.#keyring = keyring;
    this.#fixed = fixed;
    this.#file = file;
  }

  /** Whether keys can be made and revoked here. */
  get hasFile(): boolean {
    return this.#file !== undefined;
  }

  /** Those of the command line first, then the file's, oldest first. Neither keys nor hashes. */
  async list(): Promise<KeyEntry[]> {
    const stored = this.#file === undefined ? [] : await readKeyFile(this.#file);
    return [
      ...this.#fixed.map(({ name, scope }) => ({ name, scope, databases: null, createdAt: null })),
      ...stored.map(({ name, scope, databases, createdAt }) => ({ name, scope, databases: databases ?? null, createdAt })),
    ];
  }

  /**
   * The key is in the answer and nowhere else; it is accepted from then on.
   * @throws {LodestoneError} CONFLICT (the name is taken), INVALID (no file).
   */
  async create(name: string, scope: Scope, databases?: readonly string[]): Promise<string> {
    const file = this.#requireFile();
    const key = await createKey(file, name, scope, databases);
    await this.#follow(file);
    return key;
  }

  /**
   * It is refused from then on.
   * @param by the key of who asks.
   * @throws {LodestoneError} NOT_FOUND, CONFLICT (it is the asker's own), INVALID (no file).
   */
  async revoke(name: string, by: string): Promise<void> {
    const file = this.#requireFile();
    if (name === by) throw new LodestoneError("CONFLICT", "This is the key that was used for this request. Use another key to revoke it.");
    await revokeKey(file, name);
    await this.#follow(file);
  }

  /** Applies the change at once in this server; others with the same file notice it a little later. */
  async #follow(file: string): Promise<void> {
    this.#keyring.replace([...this.#fixed, ...(await readKeyFile(file))]);
  }

  #requireFile(): string {
    if (this.#file !== undefined) return this.#file;
    throw new LodestoneError("INVALID", "This server has no key file; start it with --key-file to create and revoke keys while it runs.");
  }
}
