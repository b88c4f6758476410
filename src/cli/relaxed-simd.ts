/**
 * Relaxed SIMD for a whole process: for programs of our own (server, benches, tests), since the library changes
 * no flags.
 */
import { setFlagsFromString } from "node:v8";
import { isRelaxedAvailable, RELAXED_SIMD_FLAG } from "../core/wasm-module.ts";

/**
 * Sets V8's flag where the relaxed build needs it (Node 20). Call it before the first index is created.
 * @returns whether the build runs now.
 */
export function enableRelaxedSimd(): boolean {
  if (isRelaxedAvailable()) return true;
  setFlagsFromString(RELAXED_SIMD_FLAG);
  return isRelaxedAvailable();
}
