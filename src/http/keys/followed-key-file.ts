/**
 * The key file of a running server: read again when it changes, and as long as it cannot be read. Until it can be,
 * the keys stay as they were: a half-written or removed file must neither let anyone in nor lock everyone out. Keys
 * that were revoked in it meanwhile are still accepted then, so the log, `/readyz` and the answers about keys say it.
 */
import { unwatchFile, watchFile } from "node:fs";
import type { Logger } from "pino";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { Semaphore } from "../../threads/semaphore.ts";
import type { AccessKey, Keyring } from "./access-keys.ts";
import { readKeyFile, type StoredKey } from "./key-file.ts";

const POLL_MS = 1_000;

/** For everybody: neither the path nor the reason, which may quote the file. */
const FAULT =
  "The server's key file cannot be read: keys that were revoked in it since may still be accepted. The server's log has the reason.";

export class FollowedKeyFile {
  readonly path: string;
  readonly #keyring: Keyring;
  readonly #fixed: readonly AccessKey[];
  readonly #log: Logger;
  readonly #onChange = (): void => void this.read().catch(() => {});
  /** Reads take turns, so that an older content never replaces a newer one. */
  readonly #mutex = new Semaphore(1);
  #reason: string | undefined;
  #retry: NodeJS.Timeout | undefined;

  /**
   * @param keyring  has the keys of the file already.
   * @param fixed  those of the command line.
   */
  constructor(path: string, keyring: Keyring, fixed: readonly AccessKey[], log: Logger) {
    this.path = path;
    this.#keyring = keyring;
    this.#fixed = fixed;
    this.#log = log;
    watchFile(path, { interval: POLL_MS, persistent: false }, this.#onChange);
  }

  /** What is wrong, in a sentence for everybody; undefined: nothing. */
  get fault(): string | undefined {
    return this.#reason === undefined ? undefined : FAULT;
  }

  /**
   * Applies what the file has now.
   * @throws {LodestoneError} UNAVAILABLE when it cannot be read.
   */
  read(): Promise<readonly StoredKey[]> {
    return this.#mutex.run(() => this.#read());
  }

  close(): void {
    unwatchFile(this.path, this.#onChange);
    clearInterval(this.#retry);
  }

  async #read(): Promise<readonly StoredKey[]> {
    let keys: StoredKey[];
    try {
      keys = await readKeyFile(this.path);
    } catch (error) {
      this.#failed(error as Error);
      throw new LodestoneError("UNAVAILABLE", FAULT, { cause: error });
    }
    this.#keyring.replace([...this.#fixed, ...keys]);
    if (this.#reason !== undefined) {
      this.#log.warn({ keys: keys.length }, "the key file can be read again: its keys, and no others, are accepted from now on");
      this.#reason = undefined;
      clearInterval(this.#retry);
      this.#retry = undefined;
    }
    return keys;
  }

  /** Says each reason once. */
  #failed(error: Error): void {
    if (this.#reason !== error.message) {
      this.#log.error(
        { err: error },
        "the key file cannot be read: the keys stay as they were, and those revoked in it since are still accepted",
      );
      this.#reason = error.message;
    }
    // A fault of the file system may end without a change of the file.
    this.#retry ??= setInterval(this.#onChange, POLL_MS).unref();
  }
}
