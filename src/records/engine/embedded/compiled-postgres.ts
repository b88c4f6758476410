/**
 * PostgreSQL's WebAssembly, compiled once per process. A thread that is reopened (after a statement ran too
 * long) reuses the machine code; compiling 9 MB again would take most of the time of reopening.
 */
import { readFile } from "node:fs/promises";
import { setFlagsFromString } from "node:v8";
import { withSharedMemory } from "./shared-memory.ts";

/**
 * V8 compiles a function again, with optimisations, when it has executed about this many bytes of code. Its own
 * value (1.8 million in Node 20) is made for small functions. PostgreSQL's parser and interpreter of expressions are
 * the opposite: a start alone would optimise them, which takes longer than all that they do in it, and hundreds of
 * megabytes. With this value they are optimised once they have run for about a second.
 */
const POSTGRES_TIERING_BUDGET = 1_000_000_000;
/** What newer versions of V8 have for all modules. */
const TIERING_BUDGET = 13_000_000;

let compiled: Promise<WebAssembly.Module> | null = null;

export function compiledPostgres(): Promise<WebAssembly.Module> {
  compiled ??= compile();
  compiled.catch(() => {
    compiled = null;
  });
  return compiled;
}

async function compile(): Promise<WebAssembly.Module> {
  const bytes = await readFile(new URL("pglite.wasm", import.meta.resolve("@electric-sql/pglite")));
  // A module keeps the value that it was compiled under.
  setTieringBudget(POSTGRES_TIERING_BUDGET);
  try {
    return await WebAssembly.compile(withSharedMemory(bytes));
  } finally {
    setTieringBudget(TIERING_BUDGET);
  }
}

function setTieringBudget(executedBytes: number): void {
  setFlagsFromString(`--wasm-tiering-budget=${executedBytes}`);
}
