/**
 * Relaxed SIMD for a whole process: for programs of our own (server, benches, tests), since the library changes
 * no flags.
 */
import { setFlagsFromString } from "node:v8";

/**
 * Sets V8's flag where the relaxed build needs it: Node 20, whose later versions need none. Call it before the first
 * index is created.
 */
export function enableRelaxedSimd(): void {
  // The library's RELAXED_SIMD_FLAG. Importing that would import the builds, which the server's main thread never runs.
  if (process.versions.node.startsWith("20.")) setFlagsFromString("--experimental-wasm-relaxed-simd");
}
