/**
 * Identifies a process by more than its pid (which is reused): enough to tell later whether the very same
 * process still runs.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

export interface ProcessIdentity {
  readonly pid: number;
  /** The kernel's start time of the process; null where it cannot be learnt. */
  readonly startTime: string | null;
  /** Where the pid is meaningful: this boot of this kernel and pid namespace (Linux), or the host's name. */
  readonly realm: string;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startTime: startTimeOf(process.pid), realm: realm() };
}

/** "unknown": the pid belongs to another boot, container or host, and cannot be judged from here. */
export function liveness(identity: ProcessIdentity): "alive" | "dead" | "unknown" {
  if (identity.realm !== realm()) return "unknown";
  if (!exists(identity.pid)) return "dead";
  const startTime = startTimeOf(identity.pid);
  // Without a start time it may have ended just now.
  if (startTime === "ended" || (startTime === null && !exists(identity.pid))) return "dead";
  return startTime === null || identity.startTime === null || startTime === identity.startTime ? "alive" : "dead";
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it belongs to another user.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function realm(): string {
  if (process.platform !== "linux") return hostname();
  return `${readOr("/proc/sys/kernel/random/boot_id", hostname())} ${linkOr("/proc/self/ns/pid", "")}`;
}

/**
 * @returns "ended" for a zombie, which holds nothing. null when it cannot be learnt: the file of a living process may be
 *   hidden from this user, or no descriptor may be free.
 */
function startTimeOf(pid: number): string | null {
  if (process.platform === "linux") {
    const stat = readOr(`/proc/${pid}/stat`, "");
    // Field 2 is the command in parentheses and may hold anything. Field 3 is the state, field 22 the start
    // time.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? "ended" : (fields[19] ?? null);
  }
  try {
    return (
      execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim() || null
    );
  } catch {
    return null;
  }
}

function readOr(path: string, fallback: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return fallback;
  }
}

function linkOr(path: string, fallback: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return fallback;
  }
}
