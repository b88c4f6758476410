/**
 * API keys, kept only as SHA-256 hashes (the keys that `lodestone keys` makes have 256 random bits, so no
 * slower hash is needed) and compared in constant time. Each has a scope and, if wanted, the databases that it
 * is limited to.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { LodestoneError } from "../../errors.ts";
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

/** What the caller may do. Without any key set, everything (such a server listens on loopback only). */
export interface Caller {
  readonly name: string;
  readonly scope: Scope;
  readonly databases: readonly string[] | undefined;
}

const ANYBODY: Caller = { name: "", scope: "admin", databases: undefined };

export class Keyring {
  /** True when no key is required. Never changes: when its last key is revoked, the server lets nobody in. */
  readonly isOpen: boolean;
  #keys: { key: AccessKey; digest: Buffer }[] = [];

  /** @param keys undefined: none is asked for. */
  constructor(keys?: readonly AccessKey[]) {
    this.isOpen = keys === undefined;
    this.replace(keys ?? []);
  }

  /** Replaces the keys; requests in progress keep what they were allowed. */
  replace(keys: readonly AccessKey[]): void {
    this.#keys = keys.map((key) => ({ key, digest: Buffer.from(key.hash, "hex") }));
  }

  /** @throws {LodestoneError} UNAUTHORIZED, in the same words for a wrong key and a revoked one. */
  authenticate(authorization: string | undefined): Caller {
    if (this.isOpen) return ANYBODY;
    const token = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) {
      throw new LodestoneError("UNAUTHORIZED", 'This server requires an API key: send "Authorization: Bearer <key>".');
    }
    const digest = createHash("sha256").update(token, "utf8").digest();
    let found: AccessKey | undefined;
    // All keys are compared, whichever matches, so that the time reveals nothing.
    for (const { key, digest: expected } of this.#keys) if (timingSafeEqual(digest, expected)) found = key;
    if (found === undefined) throw new LodestoneError("UNAUTHORIZED", "The API key is not valid.");
    return { name: found.name, scope: found.scope, databases: found.databases };
  }
}

/** @param database "" for endpoints that address none. @throws {LodestoneError} FORBIDDEN. */
export function authorize(caller: Caller, access: Access, database: string): void {
  if (!isAllowed(caller.scope, access)) {
    throw new LodestoneError("FORBIDDEN", `This needs a key with the scope "${access}"; the given key has "${caller.scope}".`);
  }
  if (database !== "" && caller.databases !== undefined && !caller.databases.includes(database)) {
    throw new LodestoneError("FORBIDDEN", `The given key is not for the database "${database}".`);
  }
}
