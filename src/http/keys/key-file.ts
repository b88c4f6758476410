/**
 * The key file: names, hashes, scopes and databases of API keys, never the keys. `lodestone keys` writes it;
 * the server reads it, and reads it again when it changes.
 */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { updateFile } from "../../files/replace-file.ts";
import { SCOPES, type Scope } from "../../key-scopes.ts";
import { NAME_PATTERN } from "../../records/identifiers.ts";
import { compileSchema, type JsonSchema } from "../validation.ts";
import { type AccessKey, hashKey } from "./access-keys.ts";

export interface StoredKey extends AccessKey {
  readonly createdAt: string;
}

interface KeyFile {
  readonly version: 1;
  readonly keys: StoredKey[];
}

/** Bounded, because every request is compared with all keys. */
const MAX_KEYS = 1_000;
/** Databases that one key can be limited to. */
export const MAX_KEY_DATABASES = 1_000;

const KEY: JsonSchema = {
  type: "object",
  properties: {
    name: { type: "string", pattern: NAME_PATTERN },
    hash: { type: "string", pattern: "^[0-9a-f]{64}$" },
    scope: { enum: SCOPES },
    databases: { type: "array", items: { type: "string", pattern: NAME_PATTERN } },
    createdAt: { type: "string" },
  },
  required: ["name", "hash", "scope", "createdAt"],
  additionalProperties: false,
};

const validate = compileSchema({
  type: "object",
  properties: { version: { enum: [1] }, keys: { type: "array", items: KEY } },
  required: ["version", "keys"],
  additionalProperties: false,
});

/**
 * @throws {LodestoneError} NOT_FOUND; UNAVAILABLE when this user may not read it; CORRUPT when the file is not what
 *   `lodestone keys` writes.
 */
export async function readKeyFile(path: string): Promise<StoredKey[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new LodestoneError("NOT_FOUND", `There is no key file ${path}; lodestone keys create makes it.`);
    if (code === "EACCES") throw new LodestoneError("UNAVAILABLE", unreadable(path), { cause: error });
    throw error;
  }
  try {
    const content: unknown = JSON.parse(text);
    validate(content);
    return (content as KeyFile).keys;
  } catch (error) {
    throw new LodestoneError("CORRUPT", `The key file ${path} is damaged: ${(error as Error).message}`);
  }
}

/** Nobody but its owner may read what `lodestone keys` makes, and the server often runs as another user. */
function unreadable(path: string): string {
  const [user, group] = [process.getuid?.(), process.getgid?.()];
  const owner = user === undefined ? "the user that this process runs as" : `${user}:${group}`;
  const command = user === undefined ? "" : ` (chown ${user}:${group} ${path})`;
  return `The key file ${path} may not be read by ${owner}: give it to that user${command}, or create it as that user. Its folders must be open to it, too.`;
}

/**
 * The key itself is in the answer and nowhere else.
 * @throws {LodestoneError} INVALID for too many databases; CONFLICT when the name is taken, or there are as many
 *   keys as there can be.
 */
export async function createKey(path: string, name: string, scope: Scope, databases?: readonly string[]): Promise<string> {
  if (databases !== undefined && databases.length > MAX_KEY_DATABASES)
    throw new LodestoneError("INVALID", `databases has ${databases.length} names; a key can be limited to ${MAX_KEY_DATABASES} at most.`);
  const key = `lds_${randomBytes(32).toString("base64url")}`;
  const stored: StoredKey = {
    name,
    hash: hashKey(key),
    scope,
    ...(databases === undefined ? {} : { databases }),
    createdAt: new Date().toISOString(),
  };
  validate({ version: 1, keys: [stored] });
  await updateKeys(path, async () => {
    const keys = await readKeyFileIfThere(path);
    if (keys.some((other) => other.name === name))
      throw new LodestoneError("CONFLICT", `A key with the name "${name}" exists already; revoke it first.`);
    if (keys.length >= MAX_KEYS)
      throw new LodestoneError("CONFLICT", `There are ${MAX_KEYS} keys, which is the maximum; revoke one first.`);
    return [...keys, stored];
  });
  return key;
}

/** @throws {LodestoneError} NOT_FOUND. */
export async function revokeKey(path: string, name: string): Promise<void> {
  await updateKeys(path, async () => {
    const keys = await readKeyFile(path);
    const left = keys.filter((key) => key.name !== name);
    if (left.length === keys.length) throw new LodestoneError("NOT_FOUND", `There is no key with the name "${name}" in the key file.`);
    return left;
  });
}

async function readKeyFileIfThere(path: string): Promise<StoredKey[]> {
  try {
    return await readKeyFile(path);
  } catch (error) {
    if (error instanceof LodestoneError && error.code === "NOT_FOUND") return [];
    throw error;
  }
}

/** Two commands that run at once take turns, so that neither loses the other's key. */
async function updateKeys(path: string, update: () => Promise<StoredKey[]>): Promise<void> {
  const content = async (): Promise<string> => {
    const file: KeyFile = { version: 1, keys: await update() };
    return `${JSON.stringify(file, null, 2)}\n`;
  };
  await updateFile(path, content, 0o600);
}
