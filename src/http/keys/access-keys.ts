/**
 * API keys, kept only as SHA-256 hashes (the keys that `lodestone keys` makes have 256 random bits, so no
 * slower hash is needed) and compared in constant time. Each has a scope and, if wanted, the databases that it
 * is limited to.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { type Access, isAllowed, type Scope } from "../../key-scopes.ts";

export interface AccessKey {
  /** Shown in logs in place of the key. */
  readonly name: string;
  /** Hexadecimal SHA-256 of the key. */
  readonly hash: string;
  readonly scope: Scope;
  /** undefined: all. */
  readonly databases?: readonly string[];
}

export const hashKey = (key: string): string => createHash("sha256").update(key, "utf8").digest("hex");

/**
 * What the caller may do. Without any key set, everything (such a server listens on loopback only). One object for each
 * key, as long as the key stays as it is.
 */
export interface Caller {
  readonly name: string;
  readonly scope: Scope;
  readonly databases: readonly string[] | undefined;
}

const ANYBODY: Caller = { name: "", scope: "admin", databases: undefined };

interface KnownKey {
  readonly digest: Buffer;
  readonly caller: Caller;
}

export class Keyring {
  /** True when no key is required. Never changes: when its last key is revoked, the server lets nobody in. */
  readonly isOpen: boolean;
  #keys: readonly KnownKey[] = [];
  readonly #revocationListeners: ((revoked: ReadonlySet<Caller>) => void)[] = [];

  /** @param keys undefined: none is asked for. */
  constructor(keys?: readonly AccessKey[]) {
    this.isOpen = keys === undefined;
    this.replace(keys ?? []);
  }

  /** Called when keys are no longer valid, or not for what they were. */
  onRevoked(listener: (revoked: ReadonlySet<Caller>) => void): void {
    this.#revocationListeners.push(listener);
  }

  /** Replaces the keys. Those that stay as they are keep their `Caller`; the others are revoked. */
  replace(keys: readonly AccessKey[]): void {
    const before = new Map(this.#keys.map((known) => [identityOf(known), known]));
    this.#keys = keys.map(({ name, hash, scope, databases }) => {
      const known = { digest: Buffer.from(hash, "hex"), caller: { name, scope, databases } };
      return before.get(identityOf(known)) ?? known;
    });
    const kept = new Set(this.#keys);
    const revoked = new Set([...before.values()].filter((known) => !kept.has(known)).map(({ caller }) => caller));
    if (revoked.size > 0) for (const listener of this.#revocationListeners) listener(revoked);
  }

  /** @throws {LodestoneError} UNAUTHORIZED, in the same words for a wrong key and a revoked one. */
  authenticate(authorization: string | undefined): Caller {
    if (this.isOpen) return ANYBODY;
    const token = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) {
      throw new LodestoneError("UNAUTHORIZED", 'This server requires an API key: send "Authorization: Bearer <key>".');
    }
    const digest = createHash("sha256").update(token, "utf8").digest();
    let found: Caller | undefined;
    // All keys are compared, whichever matches, so that the time reveals nothing.
    for (const { caller, digest: expected } of this.#keys) if (timingSafeEqual(digest, expected)) found = caller;
    if (found === undefined) throw new LodestoneError("UNAUTHORIZED", "The API key is not valid.");
    return found;
  }
}

const identityOf = ({ digest, caller: { name, scope, databases } }: KnownKey): string =>
  JSON.stringify([digest.toString("hex"), name, scope, databases ?? null]);

/** @param database "" for endpoints that address none. @throws {LodestoneError} FORBIDDEN. */
export function authorize(caller: Caller, access: Access, database: string): void {
  if (!isAllowed(caller.scope, access)) {
    throw new LodestoneError("FORBIDDEN", `This needs a key with the scope "${access}"; the given key has "${caller.scope}".`);
  }
  if (database !== "" && caller.databases !== undefined && !caller.databases.includes(database)) {
    throw new LodestoneError("FORBIDDEN", `The given key is not for the database "${database}".`);
  }
}
