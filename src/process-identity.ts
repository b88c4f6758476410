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
  try {
    process.kill(identity.pid, 0);
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return "dead";
  }
  const startTime = startTimeOf(identity.pid);
  if (startTime === null && process.platform === "linux") return "dead"; // it ended just now, or is a zombie that holds nothing
  return startTime === null || identity.startTime === null || startTime === identity.startTime ? "alive" : "dead";
}

function realm(): string {
  if (process.platform !== "linux") return hostname();
  return `${readOr("/proc/sys/kernel/random/boot_id", hostname())} ${linkOr("/proc/self/ns/pid", "")}`;
}

function startTimeOf(pid: number): string | null {
  if (process.platform === "linux") {
    const stat = readOr(`/proc/${pid}/stat`, "");
    // Field 2 is the command in parentheses and may hold anything. Field 3 is the state, field 22 the start
    // time.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? null : (fields[19] ?? null);
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
