/**
 * PostgreSQL's WebAssembly, compiled once per process. A thread that is reopened (after a statement ran too
 * long) reuses the machine code; compiling 9 MB again would take most of the time of reopening.
 */
import { readFile } from "node:fs/promises";
import { withSharedMemory } from "./shared-memory.ts";

export interface CompiledModules {
  readonly postgres: WebAssembly.Module;
  readonly initdb: WebAssembly.Module;
}

let compiled: Promise<CompiledModules> | null = null;

export function compiledModules(): Promise<CompiledModules> {
  compiled ??= compile();
  compiled.catch(() => {
    compiled = null;
  });
  return compiled;
}

async function compile(): Promise<CompiledModules> {
  const bytesOf = (name: string): Promise<Buffer> => readFile(new URL(name, import.meta.resolve("@electric-sql/pglite")));
  const [postgres, initdb] = await Promise.all([bytesOf("pglite.wasm"), bytesOf("initdb.wasm")]);
  return { postgres: await WebAssembly.compile(withSharedMemory(postgres)), initdb: await WebAssembly.compile(new Uint8Array(initdb)) };
}
