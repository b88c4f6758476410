/**
 * Room on the disk of the embedded database. When PostgreSQL cannot make the next file of its log (16 MB), it
 * stops whole, and to recover it needs such a file again. So:
 *
 * - What writes is refused while less than `leastFreeBytes` are free. Reads go on: they write to the log too
 *   (hints, pages pruned), but little, and checkpoints reuse its files.
 * - A file of `reserveBytes` holds room. It is given up before the database is opened on a disk that others have
 *   filled, and made again when there is room.
 */
import { randomBytes } from "node:crypto";
import { rmSync, statfsSync } from "node:fs";
import { open, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type FaultListeners, FaultState } from "../../../errors/fault-state.ts";
import { LodestoneError } from "../../../errors/lodestone-error.ts";

export interface DiskReserveOptions extends FaultListeners {
  /** Default 64 MiB: four files of PostgreSQL's log. */
  readonly leastFreeBytes?: number | undefined;
  /** Default 0: no file. A server keeps RESERVE_BYTES. */
  readonly reserveBytes?: number | undefined;
  /** Pause between two looks at the disk, besides those before each write. */
  readonly diskLookEveryMs?: number | undefined;
}

const MIB = 2 ** 20;
const WAL_FILE_BYTES = 16 * MIB;
const LEAST_FREE_BYTES = 4 * WAL_FILE_BYTES;
/** What a recovery needs: the next file of the log, and one for the checkpoint at its end. */
export const RESERVE_BYTES = 2 * WAL_FILE_BYTES;
const LOOK_EVERY_MS = 2_000;

const reservePath = (dataDir: string): string => join(dataDir, "lodestone.reserve");

/** Bytes that may still be written; null where the file system does not say. */
function freeBytes(dataDir: string): number | null {
  try {
    const { blocks, bavail, bsize } = statfsSync(dataDir);
    return blocks === 0 ? null : bavail * bsize;
  } catch {
    return null;
  }
}

/** Before the directory is opened: gives up the reserve if the disk is full. */
export function makeRoom(dataDir: string): void {
  const free = freeBytes(dataDir);
  if (free !== null && free < RESERVE_BYTES) rmSync(reservePath(dataDir), { force: true });
}

export class DiskReserve {
  readonly #dataDir: string;
  readonly #leastFreeBytes: number;
  readonly #reserveBytes: number;
  readonly #lookEveryMs: number;
  readonly #fault: FaultState;
  readonly #refusal: LodestoneError;
  #isLow = false;
  #timer: NodeJS.Timeout | undefined;
  #filling: Promise<void> | null = null;
  #isStopped = false;

  constructor(dataDir: string, options: DiskReserveOptions) {
    this.#dataDir = dataDir;
    this.#leastFreeBytes = options.leastFreeBytes ?? LEAST_FREE_BYTES;
    this.#reserveBytes = options.reserveBytes ?? 0;
    this.#lookEveryMs = options.diskLookEveryMs ?? LOOK_EVERY_MS;
    this.#fault = new FaultState("Writing to the disk of the embedded database", options);
    const sentence =
      `The disk of the database has less than ${this.#leastFreeBytes / MIB} MB left, so nothing is written; reads and searches go on. ` +
      "Make room, and writes go on by themselves.";
    this.#refusal = new LodestoneError("UNAVAILABLE", `${sentence} Nothing was changed.`, { retryAfterSeconds: 10 });
  }

  /** Why nothing may be written, as of the last look; null when it may. */
  get refusal(): LodestoneError | null {
    return this.#isLow ? this.#refusal : null;
  }

  /** From now on looks regularly, and keeps the reserve. */
  start(): void {
    this.#timer = setInterval(() => this.#tend(), this.#lookEveryMs).unref();
    this.#tend();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#filling;
  }

  /** Looks at the disk now. Two microseconds. @returns why nothing may be written; null when it may. */
  look(): LodestoneError | null {
    this.#look();
    return this.refusal;
  }

  #tend(): void {
    const free = this.#look();
    const hasRoom = free !== null && free > this.#leastFreeBytes + this.#reserveBytes + 2 * WAL_FILE_BYTES;
    if (!hasRoom || this.#reserveBytes === 0 || this.#isStopped) return;
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = null;
    });
  }

  /** @returns the bytes that are free; null: unknown. */
  #look(): number | null {
    const free = freeBytes(this.#dataDir);
    // It ends a little later than it begins, or the log would say both again and again.
    if (free !== null) this.#isLow = free < this.#leastFreeBytes + (this.#isLow ? WAL_FILE_BYTES : 0);
    if (this.#isLow) this.#fault.failed(new Error(`less than ${this.#leastFreeBytes / MIB} MB are free; reads and searches go on`));
    else this.#fault.works();
    return free;
  }

  /** Random bytes: file systems that compress would keep no room for others. Not synced: after a crash it is made again. */
  async #fill(): Promise<void> {
    const path = reservePath(this.#dataDir);
    if ((await stat(path).catch(() => null))?.size === this.#reserveBytes) return;
    const chunk = randomBytes(MIB);
    try {
      const file = await open(path, "w", 0o600);
      try {
        for (let left = this.#reserveBytes; left > 0 && !this.#isStopped; left -= MIB) await file.write(chunk, 0, Math.min(MIB, left));
      } finally {
        await file.close();
      }
    } catch {
      // Without a reserve everything works but the recovery on a full disk. The next look tries again.
      await rm(path, { force: true }).catch(() => {});
    }
  }
}
