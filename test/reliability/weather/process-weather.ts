/**
 * What a machine does to a process: a tenth of a processor, a slow disk, a disk that fails, no descriptors, no
 * space. Each begins at once and is over when the returned function has resolved. All act on a running process
 * from outside, as the kernel does: signals, strace's injected faults, limits, a file system that is full.
 */
import { execFileSync, spawn } from "node:child_process";
import { readdirSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Ends the weather. */
export type Clears = () => Promise<void>;

const PULSE_MS = 200;
const PULSE_RUNS_MS = 20;
/** Descriptors that the process may still open. */
const DESCRIPTORS_LEFT = 2;

/** A tenth of a processor: the process runs for 20 ms of every 200. */
export function slowProcessor(pid: number): Clears {
  let isOver = false;
  const pulses = (async () => {
    while (!isOver && signal(pid, "SIGSTOP")) {
      await sleep(PULSE_MS - PULSE_RUNS_MS);
      if (!signal(pid, "SIGCONT")) return;
      await sleep(PULSE_RUNS_MS);
    }
    signal(pid, "SIGCONT");
  })();
  return async () => {
    isOver = true;
    await pulses;
  };
}

const SYNCS = "fsync,fdatasync";

/** Every fsync takes a fifth of a second longer. */
export const slowDisk = (strace: string, pid: number): Promise<Clears> => inject(strace, pid, SYNCS, "delay_enter=200000");

/** The next fsyncs fail, as on a disk that loses sectors. */
export const failingDisk = (strace: string, pid: number): Promise<Clears> => inject(strace, pid, SYNCS, "error=EIO:when=1..3");

/** No byte of these files can be read, as on a disk whose sectors are damaged. */
export const failingReads = (strace: string, pid: number, files: readonly string[]): Promise<Clears> =>
  inject(strace, pid, "pread64", "error=EIO", files);

/** @param files  only calls on these; default: on all. */
async function inject(strace: string, pid: number, calls: string, fault: string, files: readonly string[] = []): Promise<Clears> {
  const paths = files.flatMap((file) => ["-P", file]);
  const tracer = spawn(
    strace,
    ["-f", "-p", String(pid), "-o", "/dev/null", ...paths, "-e", `trace=${calls}`, "-e", `inject=${calls}:${fault}`],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const ended = new Promise<void>((resolve) => tracer.once("exit", () => resolve()));
  // It says "attached" once all threads are traced; it ends by itself when there is no such process.
  await Promise.race([new Promise<void>((resolve) => tracer.stderr.once("data", () => resolve())), ended]);
  return async () => {
    tracer.kill("SIGINT");
    await ended;
  };
}

/** The process can open two files or sockets more than it has open now. */
export async function noDescriptors(pid: number): Promise<Clears> {
  const before = execFileSync("prlimit", ["--pid", String(pid), "--nofile", "--noheadings", "-o", "SOFT"], { encoding: "utf8" }).trim();
  const open = readdirSync(`/proc/${pid}/fd`).length;
  const set = (limit: number | string) => execFileSync("prlimit", ["--pid", String(pid), `--nofile=${limit}:`]);
  set(open + DESCRIPTORS_LEFT);
  return async () => {
    if (isAlive(pid)) set(before);
  };
}

/** Somebody else fills the file system of `folder` to the last byte. */
export async function fullDisk(folder: string): Promise<Clears> {
  const path = join(folder, "filled-by-somebody-else");
  // The process itself writes meanwhile, so once is not enough.
  const fill = (): void => {
    const { bavail, bsize } = statfsSync(folder);
    if (bavail === 0) return;
    try {
      execFileSync("fallocate", ["--offset", String(sizeOf(path)), "--length", String(bavail * bsize), path], { stdio: "ignore" });
    } catch {
      // Less was left than a moment ago: the next time takes it.
    }
  };
  fill();
  const timer = setInterval(fill, 250);
  return async () => {
    clearInterval(timer);
    rmSync(path, { force: true });
  };
}

function sizeOf(path: string): number {
  try {
    return Number(execFileSync("stat", ["-c", "%s", path], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  } catch {
    return 0;
  }
}

/** False when there is no such process any more. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
