/** How the memory of one process (`--max-memory`) is divided. */
import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import type { BudgetLimits } from "./memory-budget.ts";

const MIB = 2 ** 20;

/** Less cannot hold the embedded database, the index and this program at once. */
export const LEAST_MEMORY_BYTES = 512 * MIB;

export interface MemoryLimits {
  readonly answers: BudgetLimits;
  /** Bodies of requests, as text, that are held at once. */
  readonly bodyBytes: number;
  /** Linear memory of the embedded PostgreSQL. */
  readonly databaseBytes: number;
}

/**
 * Of M bytes: a quarter at most (and a GiB) for the embedded database, an eighth for answers, a thirty-second for bodies as text, of which the values take a
 * few times as much. Half is left for vectors, columns and the program. Answers and bodies live in V8's heap, whose own limit bounds them as well.
 *
 * @param maxMemoryBytes  default: what the machine has, or the control group that the process is in.
 */
export function memoryLimits(
  maxMemoryBytes: number = machineMemoryBytes(),
  heapBytes: number = getHeapStatistics().heap_size_limit,
): MemoryLimits {
  const totalBytes = Math.floor(Math.min(maxMemoryBytes / 8, heapBytes / 4));
  return {
    // A caller who is alone gets half of all, and an answer at its limit takes four times its bytes.
    answers: { totalBytes, answerBytes: Math.min(64 * MIB, Math.floor(totalBytes / 8)) },
    bodyBytes: Math.floor(Math.max(24 * MIB, Math.min(256 * MIB, maxMemoryBytes / 32, heapBytes / 16))),
    databaseBytes: Math.floor(Math.min(1024 * MIB, Math.max(256 * MIB, maxMemoryBytes / 4))),
  };
}

function machineMemoryBytes(): number {
  const machine = totalmem();
  // Without a control group Node answers 0, or a number beyond every machine.
  const group = process.constrainedMemory();
  return group > 0 && group < machine ? group : machine;
}
