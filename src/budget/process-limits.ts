/** How the memory of one process (`--max-memory`) is divided, and the file descriptors that it may open. */
import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import type { BudgetLimits } from "./memory-budget.ts";

const MIB = 2 ** 20;

/** The embedded database, the index and this program do not fit into less. */
export const LEAST_MEMORY_BYTES = 512 * MIB;

/** The program: its code, the threads' own heaps. */
const PROGRAM_BYTES = 192 * MIB;
/** A body's text, and its values. A body that takes more is counted as more bytes (http/admission). */
export const MEMORY_PER_BODY_BYTE = 4;
/** A single caller gets three quarters of it, and the largest body has to fit in that. */
const LEAST_BODY_BYTES = 28 * MIB;
const LEAST_INDEX_BYTES = 64 * MIB;

export interface MemoryLimits {
  readonly answers: BudgetLimits;
  /** Request bodies held at once: their text, or 1/MEMORY_PER_BODY_BYTE of what they take with their values. */
  readonly bodyBytes: number;
  /** Linear memory of the embedded PostgreSQL. */
  readonly databaseBytes: number;
  /** Indexes: vectors, and what filters read of records. */
  readonly indexBytes: number;
}

/**
 * Of M bytes: a quarter for the embedded database, an eighth for answers, and a thirty-second for bodies as text, which take
 * four times as much with their values. What requests need does not grow with the data, so from some size on these shares are
 * smaller. The rest, after these and the program itself, is for indexes. Answers and bodies live in V8's heap. Each of the two
 * gets a quarter of its limit at most, so that no requests can exhaust it.
 *
 * @param maxMemoryBytes  default: what the machine has, or the control group that the process is in.
 */
export function memoryLimits(
  maxMemoryBytes: number = machineMemoryBytes(),
  heapBytes: number = getHeapStatistics().heap_size_limit,
): MemoryLimits {
  /** A share of 1/n up to `bytes`, and of 1/m of a memory for which that is more. */
  const share = (n: number, bytes: number, m: number): number => Math.min(maxMemoryBytes / n, Math.max(bytes, maxMemoryBytes / m));
  const totalBytes = Math.floor(Math.min(share(8, 256 * MIB, 16), heapBytes / 4));
  const bodyBytes = Math.floor(Math.max(LEAST_BODY_BYTES, Math.min(256 * MIB, share(32, 48 * MIB, 64), heapBytes / 16)));
  const databaseBytes = Math.floor(Math.min(1024 * MIB, Math.max(256 * MIB, share(4, 512 * MIB, 6))));
  const others = totalBytes + MEMORY_PER_BODY_BYTE * bodyBytes + databaseBytes + PROGRAM_BYTES;
  return {
    // A single caller gets half of all, and an answer at its limit takes four times its bytes.
    answers: { totalBytes, answerBytes: Math.min(64 * MIB, Math.floor(totalBytes / 8)) },
    bodyBytes,
    databaseBytes,
    indexBytes: Math.floor(Math.max(LEAST_INDEX_BYTES, maxMemoryBytes - others)),
  };
}

function machineMemoryBytes(): number {
  const machine = totalmem();
  // Without a control group Node answers 0, or a number beyond every machine.
  const group = process.constrainedMemory();
  return group > 0 && group < machine ? group : machine;
}

/** Files of the embedded database that are open at once; it closes others to open more, and needs these. */
const LEAST_DATABASE_FILES = 64;
/** PostgreSQL's own default. */
const MOST_DATABASE_FILES = 1_000;
/** Threads (a few each), logs, snapshots, backups, imports, connections to other servers. */
const OTHERS = 256;

interface DescriptorLimits {
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
