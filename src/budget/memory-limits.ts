/** How the memory of one process (`--max-memory`) is divided. */
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
 * Of M bytes: a quarter at most (and a GiB) for the embedded database, an eighth for answers, and a thirty-second
 * for bodies as text, which take four times as much with their values. The rest, after these and the program
 * itself, is for indexes. Answers and bodies live in V8's heap. Each of the two gets a quarter of its limit at
 * most, so that no requests can exhaust it.
 *
 * @param maxMemoryBytes  default: what the machine has, or the control group that the process is in.
 */
export function memoryLimits(
  maxMemoryBytes: number = machineMemoryBytes(),
  heapBytes: number = getHeapStatistics().heap_size_limit,
): MemoryLimits {
  const totalBytes = Math.floor(Math.min(maxMemoryBytes / 8, heapBytes / 4));
  const bodyBytes = Math.floor(Math.max(LEAST_BODY_BYTES, Math.min(256 * MIB, maxMemoryBytes / 32, heapBytes / 16)));
  const databaseBytes = Math.floor(Math.min(1024 * MIB, Math.max(256 * MIB, maxMemoryBytes / 4)));
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
