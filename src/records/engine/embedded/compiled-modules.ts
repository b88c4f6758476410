/**
 * PostgreSQL's WebAssembly, compiled once for the process: a thread that is opened again (after a statement ran
 * too long) takes the machine code that is there. Compiling 9 MB again would be most of the time that reopening
 * takes.
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
