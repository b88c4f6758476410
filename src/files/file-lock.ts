/**
 * One process at a time changes a file, for moments. Everyone who wants to creates a lock file of their own beside it,
 * `<file>.lock-<token>`, and then looks for those of others: of two, at least one sees the other. Who sees another
 * withdraws, and tries again a little later.
 *
 * A lock names its process (process-identity.ts), so that of a process that was killed is known and removed; its name is
 * used only once, so nobody removes another lock by mistake. Where a process cannot be judged (of another host or
 * container, or before this machine was restarted), its lock counts until it has stood there for half the patience.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { link, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { liveness, ownIdentity, type ProcessIdentity } from "./process-identity.ts";

const PATIENCE_MS = 5_000;
const RETRY_MS = 20;

/** The last of this process's turns at a file: within a process they take turns by themselves. */
const turns = new Map<string, Promise<unknown>>();

/**
 * @param work  what is done while no other process does the same. Gets a function that throws when the lock was lost,
 *   which happens only to a process of another host or container that was suspended.
 * @throws {LodestoneError} CONFLICT when another process holds the lock for longer than the patience.
 */
export async function withFileLock<Result>(
  file: string,
  work: (requireLock: () => void) => Promise<Result>,
  patienceMs = PATIENCE_MS,
): Promise<Result> {
  const path = resolve(file);
  const turn = (turns.get(path) ?? Promise.resolve()).then(async () => {
    const lock = await acquire(path, patienceMs);
    try {
      return await work(() => {
        if (!existsSync(lock)) throw new LodestoneError("CONFLICT", `Another process took over the lock of ${basename(path)}. Try again.`);
      });
    } finally {
      await rm(lock, { force: true });
    }
  });
  const settled = turn.catch(() => {});
  turns.set(path, settled);
  try {
    return await turn;
  } finally {
    if (turns.get(path) === settled) turns.delete(path);
  }
}

/** @returns the path of the lock. */
async function acquire(path: string, patienceMs: number): Promise<string> {
  const started = performance.now();
  const firstSeen = new Map<string, number>();
  for (;;) {
    const lock = await createLock(path);
    const holder = await otherHolder(path, lock, firstSeen, patienceMs / 2);
    if (holder === undefined) return lock;
    await rm(lock, { force: true });
    if (performance.now() - started > patienceMs) {
      throw new LodestoneError("CONFLICT", `${basename(path)} is being changed by process ${holder}. Try again when that has finished.`);
    }
    await sleep(RETRY_MS * (1 + Math.random()));
  }
}

const lockPrefix = (path: string): string => `${basename(path)}.lock-`;

/** The lock appears with its content. */
async function createLock(path: string): Promise<string> {
  const token = randomUUID();
  const lock = join(dirname(path), `${lockPrefix(path)}${token}`);
  const draft = join(dirname(path), `${basename(path)}.draft-${token}`);
  try {
    await writeFile(draft, `${JSON.stringify(ownIdentity())}\n`, { flag: "wx", mode: 0o600 });
    await link(draft, lock);
  } finally {
    await rm(draft, { force: true });
  }
  return lock;
}

/** @returns the process of another lock, after those that nobody holds have been removed. */
async function otherHolder(path: string, own: string, firstSeen: Map<string, number>, patienceMs: number): Promise<number | undefined> {
  let holder: number | undefined;
  for (const name of await readdir(dirname(path))) {
    const other = join(dirname(path), name);
    if (!name.startsWith(lockPrefix(path)) || other === own) continue;
    const identity = await readIdentity(other);
    if (identity === undefined) continue;
    const state = liveness(identity);
    const seen = firstSeen.get(name) ?? performance.now();
    firstSeen.set(name, seen);
    if (state === "dead" || (state === "unknown" && performance.now() - seen >= patienceMs)) await rm(other, { force: true });
    else holder = identity.pid;
  }
  return holder;
}

/** undefined: it has been removed meanwhile. One that cannot be read, which only a power cut leaves, is nobody's. */
async function readIdentity(lock: string): Promise<ProcessIdentity | undefined> {
  try {
    return JSON.parse(await readFile(lock, "utf8")) as ProcessIdentity;
  } catch (error) {
    if (error instanceof SyntaxError) await rm(lock, { force: true });
    else if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}
