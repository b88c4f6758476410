/**
 * One process per directory: the embedded database itself lets a second one in, and committed rows are lost; two
 * that write the same search snapshots undo each other's.
 *
 * Node has no flock, so the lock is a file `lodestone.lock.<n>` that names its holder. n only ever grows: the
 * highest file is never removed until a higher one exists (a release rewrites it as "released"). Creating n
 * + 1 exclusively is therefore a compare-and-swap: of any number of processes that find a stale lock at the
 * same moment, exactly one takes it over. A slow process, whose n + 1 had existed already and been tidied
 * away, finds a higher file after its own creation and withdraws.
 *
 * A holder is identified by pid, start time, boot and pid namespace, and its lock is stale when that process
 * is gone. Where the pid says nothing (another container or host), the holder's heartbeat decides: a lock
 * that does not change for HEARTBEAT_PATIENCE_MS is stale. A holder whose lock was taken (it was suspended
 * for long, on another host) is told through `onLost` and must stop at once.
 */
import { randomUUID } from "node:crypto";
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LodestoneError } from "./errors.ts";
import { liveness, ownIdentity, type ProcessIdentity } from "./process-identity.ts";

const LOCK_NAME = /^lodestone\.lock\.(\d{1,15})$/;
const HEARTBEAT_MS = 2_000;
const HEARTBEAT_PATIENCE_MS = 12_000;

interface LockContent extends Partial<ProcessIdentity> {
  readonly state: "held" | "released";
  readonly token: string;
  readonly since: string;
}

/** A living process holds the directory, or one that cannot be seen from here but still updates its heartbeat. */
export class DirectoryHeldError extends LodestoneError {
  /** As "process 17 (since 2026-01-01T00:00:00.000Z)". */
  readonly holder: string;

  constructor(directory: string, holder: string) {
    super(
      "UNAVAILABLE",
      `The data directory ${directory} is in use by ${holder}. ` +
        "Two servers on one directory would destroy data: stop that process, or give this one another data directory.",
    );
    this.holder = holder;
  }
}

export class DirectoryLock {
  readonly #path: string;
  readonly #token: string;
  readonly #heartbeat: NodeJS.Timeout;
  #released = false;

  private constructor(path: string, token: string, onLost: () => void) {
    this.#path = path;
    this.#token = token;
    this.#heartbeat = setInterval(() => {
      if (!this.#isOwn()) {
        clearInterval(this.#heartbeat);
        this.#released = true;
        onLost();
        return;
      }
      const now = new Date();
      utimesSync(this.#path, now, now);
    }, HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  /**
   * @param patienceMs  how long to watch for the heartbeat of a holder in another container or on another host.
   * @throws {DirectoryHeldError} when a living process holds the directory; the message names it.
   */
  static async acquire(directory: string, onLost: () => void, patienceMs = HEARTBEAT_PATIENCE_MS): Promise<DirectoryLock> {
    for (let attempt = 0; attempt < 20; attempt++) {
      const highest = highestLock(directory);
      if (highest !== null) await refuseWhenHeld(directory, highest, patienceMs);
      const generation = (highest ?? 0) + 1;
      const token = randomUUID();
      const path = lockPath(directory, generation);
      if (!createExclusively(path, token)) continue;
      // If the previous lock was left by a crash, other processes may be taking it over as well. Look twice,
      // so that a listing torn by their renames cannot mislead.
      if (highest !== null) await sleep(20);
      if (highestLock(directory) !== generation) {
        rmSync(path, { force: true });
        continue;
      }
      removeOlder(directory, generation);
      return new DirectoryLock(path, token, onLost);
    }
    throw new LodestoneError(
      "UNAVAILABLE",
      `The data directory ${directory} is being opened by several processes at once. Start only one server.`,
    );
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    clearInterval(this.#heartbeat);
    if (this.#isOwn()) replace(this.#path, { state: "released", token: this.#token, since: new Date().toISOString() });
  }

  #isOwn(): boolean {
    return readLock(this.#path)?.token === this.#token;
  }
}

const lockPath = (directory: string, generation: number): string => join(directory, `lodestone.lock.${generation}`);

function highestLock(directory: string): number | null {
  const generations = readdirSync(directory).flatMap((name) => {
    const match = LOCK_NAME.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
  return generations.length === 0 ? null : Math.max(...generations);
}

function removeOlder(directory: string, generation: number): void {
  for (const name of readdirSync(directory)) {
    const match = LOCK_NAME.exec(name);
    if ((match !== null && Number(match[1]) < generation) || name.startsWith("lodestone.lock-"))
      rmSync(join(directory, name), { force: true });
  }
}

/**
 * Whether a process holds the directory right now: one that is alive, or one that cannot be judged from here.
 * Changes nothing and takes no lock.
 */
export function isDirectoryHeld(directory: string): boolean {
  const highest = highestLock(directory);
  const content = highest === null ? null : readLock(lockPath(directory, highest));
  return content !== null && content.state === "held" && liveness(identityOf(content)) !== "dead";
}

const identityOf = ({ pid = 0, startTime = null, realm = "" }: LockContent): ProcessIdentity => ({ pid, startTime, realm });

function readLock(path: string): LockContent | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as LockContent;
  } catch {
    return null;
  }
}

async function refuseWhenHeld(directory: string, generation: number, patienceMs: number): Promise<void> {
  const path = lockPath(directory, generation);
  const content = readLock(path);
  // Locks appear with their content (link), so a file that cannot be read was either removed just now or
  // damaged by a power cut. Either way nobody can hold it.
  if (content === null || content.state === "released") return;
  const identity = identityOf(content);
  const state = liveness(identity);
  if (state === "dead") return;
  if (state === "unknown" && (await standsStill(path, patienceMs))) return;
  throw new DirectoryHeldError(directory, `process ${identity.pid} (since ${content.since})`);
}

/** Watches the holder's heartbeat. True when it does not change, or when the lock disappears. */
async function standsStill(path: string, patienceMs: number): Promise<boolean> {
  const modified = (): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const before = modified();
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    await sleep(250);
    const now = modified();
    if (now === 0) return true;
    if (now !== before) return readLock(path)?.state !== "held";
  }
  return true;
}

function createExclusively(path: string, token: string): boolean {
  const content: LockContent = { state: "held", token, since: new Date().toISOString(), ...ownIdentity() };
  const draft = `${path.replace(/\.\d+$/, "")}-${token}`;
  writeFileSync(draft, `${JSON.stringify(content)}\n`, { flush: true });
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // ENOENT: a process that took the lock over meanwhile tidied the draft away.
    if (code === "EEXIST" || code === "ENOENT") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function replace(path: string, content: LockContent): void {
  const draft = `${path.replace(/\.\d+$/, "")}-${content.token}`;
  writeFileSync(draft, `${JSON.stringify(content)}\n`);
  renameSync(draft, path);
}
