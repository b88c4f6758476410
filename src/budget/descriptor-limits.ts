/** How the file descriptors that a process may open are divided. */
import { readFileSync } from "node:fs";

/** Files of the embedded database that are open at once; it closes others to open more, and needs these. */
const LEAST_DATABASE_FILES = 64;
/** PostgreSQL's own default. */
const MOST_DATABASE_FILES = 1_000;
/** Threads (a few each), logs, snapshots, backups, imports, connections to other servers. */
const OTHERS = 256;

export interface DescriptorLimits {
  /** Connections of clients: at least one. */
  readonly connections: number;
  /** Files of the embedded database. */
  readonly databaseFiles: number;
}

/**
 * Of n descriptors: a quarter at most for the embedded database's files, 256 (or a quarter, if that is less) for
 * everything else, and the rest for clients.
 *
 * @param openFiles  what the process may open.
 */
export function descriptorLimits(openFiles = mostOpenFiles()): DescriptorLimits {
  const quarter = Math.floor(openFiles / 4);
  const databaseFiles = Math.max(LEAST_DATABASE_FILES, Math.min(MOST_DATABASE_FILES, quarter));
  const connections = openFiles - databaseFiles - Math.min(OTHERS, quarter);
  return { databaseFiles, connections: Math.max(1, connections) };
}

/** RLIMIT_NOFILE of this process; Infinity where there is none. Node raises it to the hard limit at its start. */
export function mostOpenFiles(): number {
  return process.platform === "linux" ? ofProc(readFileSync("/proc/self/limits", "utf8")) : ofReport();
}

const ofProc = (limits: string): number => toNumber(/^Max open files\s+(\S+)/m.exec(limits)?.[1]);

function ofReport(): number {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  return toNumber(report.userLimits?.open_files?.soft);
}

/** "unlimited", or nothing on a system without limits. */
function toNumber(limit: unknown): number {
  const count = Number(limit);
  return Number.isFinite(count) && count > 0 ? count : Number.POSITIVE_INFINITY;
}
