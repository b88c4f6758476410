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
 *
 * Only a lock that can be read and names another holder has been taken. An error (no descriptor is free, the disk
 * fails) says nothing about the holder: the lock counts as held, by whoever held it.
 */
import { randomUUID } from "node:crypto";
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type FaultListeners, FaultState } from "../errors/fault-state.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
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

export interface LockOptions extends FaultListeners {
  /** How long to watch for the heartbeat of a holder in another container or on another host. */
  readonly patienceMs?: number;
  /** For tests. */
  readonly heartbeatMs?: number;
}

export class DirectoryLock {
  readonly #directory: string;
  readonly #generation: number;
  readonly #token: string;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #fault: FaultState;
  #released = false;

  private constructor(directory: string, generation: number, token: string, onLost: () => void, options: LockOptions) {
    this.#directory = directory;
    this.#generation = generation;
    this.#token = token;
    this.#fault = new FaultState(`The heartbeat of the lock on ${directory}`, options);
    this.#heartbeat = setInterval(() => this.#beat(onLost), options.heartbeatMs ?? HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  /**
   * @param onLost  called once, when another process has taken the directory over.
   * @throws {DirectoryHeldError} when a living process holds the directory; the message names it.
   */
  static async acquire(directory: string, onLost: () => void, options: LockOptions = {}): Promise<DirectoryLock> {
    const { patienceMs = HEARTBEAT_PATIENCE_MS } = options;
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
      return new DirectoryLock(directory, generation, token, onLost, options);
    }
    throw new LodestoneError(
      "UNAVAILABLE",
      `The data directory ${directory} is being opened by several processes at once. Start only one server.`,
    );
  }

  /** When its file cannot be written, the lock ends with the process. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    clearInterval(this.#heartbeat);
    try {
      if (this.#look() === "own") replace(this.#path, { state: "released", token: this.#token, since: new Date().toISOString() });
    } catch (error) {
      this.#fault.failed(error);
    }
  }

  get #path(): string {
    return lockPath(this.#directory, this.#generation);
  }

  #beat(onLost: () => void): void {
    try {
      const found = this.#look();
      if (found === "taken" || (found === "gone" && !this.#restore())) {
        clearInterval(this.#heartbeat);
        this.#released = true;
        onLost();
        return;
      }
      this.#refresh();
      this.#fault.works();
    } catch (error) {
      this.#fault.failed(error);
      // It takes no descriptor, so it may work where reading does not.
      attempt(() => this.#refresh());
    }
  }

  #refresh(): void {
    const now = new Date();
    utimesSync(this.#path, now, now);
  }

  /** @throws {Error} when that cannot be told. */
  #look(): "own" | "taken" | "gone" {
    const content = readLock(this.#path);
    if (content === "damaged") throw new LodestoneError("CORRUPT", `${this.#path} is damaged`);
    if (content !== null) return content.token === this.#token ? "own" : "taken";
    return locksIn(this.#directory).length === 0 ? "gone" : "taken";
  }

  /**
   * Somebody removed the file by hand. Without it the next process would believe that nobody is here.
   * @returns false when another process has taken the directory meanwhile.
   */
  #restore(): boolean {
    createExclusively(this.#path, this.#token);
    // One that came before this look is seen here; one that comes later sees the file.
    if (locksIn(this.#directory).every((generation) => generation === this.#generation) && this.#look() === "own") return true;
    attempt(() => rmSync(this.#path));
    return false;
  }
}

/** What may fail without consequences. */
function attempt(action: () => void): void {
  try {
    action();
  } catch {
    // The caller has a better error, or goes on without it.
  }
}

const lockPath = (directory: string, generation: number): string => join(directory, `lodestone.lock.${generation}`);

/** The generations of all locks, held or not. */
function locksIn(directory: string): number[] {
  return readdirSync(directory).flatMap((name) => {
    const match = LOCK_NAME.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
}

function highestLock(directory: string): number | null {
  const generations = locksIn(directory);
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
 *
 * @throws {LodestoneError} UNAVAILABLE when the lock cannot be read.
 */
export function isDirectoryHeld(directory: string): boolean {
  const highest = highestLock(directory);
  const content = highest === null ? null : readForeignLock(directory, highest);
  return content !== null && content.state === "held" && liveness(identityOf(content)) !== "dead";
}

const identityOf = ({ pid = 0, startTime = null, realm = "" }: LockContent): ProcessIdentity => ({ pid, startTime, realm });

/**
 * @returns null when there is none; "damaged" when a power cut or a stranger left something else.
 * @throws {Error} of the file system, which says nothing about the lock.
 */
function readLock(path: string): LockContent | "damaged" | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  try {
    const content = JSON.parse(text) as Partial<LockContent> | null;
    return typeof content?.token === "string" ? (content as LockContent) : "damaged";
  } catch {
    return "damaged";
  }
}

/**
 * Of another process. Locks appear with their content (link), so one that is damaged was so by a power cut, and
 * nobody can hold it; neither one that was removed just now.
 *
 * @throws {LodestoneError} UNAVAILABLE when it cannot be read.
 */
function readForeignLock(directory: string, generation: number): LockContent | null {
  const path = lockPath(directory, generation);
  try {
    const content = readLock(path);
    return content === "damaged" ? null : content;
  } catch (error) {
    throw new LodestoneError(
      "UNAVAILABLE",
      `Whether another process uses the data directory ${directory} cannot be told, because its lock cannot be read ` +
        `(${(error as Error).message}). Make it readable for this user.`,
      { cause: error },
    );
  }
}

async function refuseWhenHeld(directory: string, generation: number, patienceMs: number): Promise<void> {
  const content = readForeignLock(directory, generation);
  if (content === null || content.state === "released") return;
  const identity = identityOf(content);
  const state = liveness(identity);
  if (state === "dead") return;
  if (state === "unknown" && (await standsStill(directory, generation, patienceMs))) return;
  throw new DirectoryHeldError(directory, `process ${identity.pid} (since ${content.since})`);
}

/** Watches the holder's heartbeat. True when it does not change, or when the lock disappears. */
async function standsStill(directory: string, generation: number, patienceMs: number): Promise<boolean> {
  const path = lockPath(directory, generation);
  const modified = (): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const before = modified();
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    await sleep(250);
    const now = modified();
    if (now === 0) return true;
    if (now !== before) return readForeignLock(directory, generation)?.state !== "held";
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
