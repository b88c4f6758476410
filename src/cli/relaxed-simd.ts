/**
 * Relaxed SIMD for a whole process: for programs of our own (server, benches, tests), since the library changes
 * no flags.
 */
import { setFlagsFromString } from "node:v8";

/**
 * One function, of one instruction: i8x16.relaxed_swizzle. The library's `isRelaxedAvailable` would import its builds,
 * which the server's main thread never runs.
 */
const RELAXED_MODULE = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 7, 1, 0x60, 2, 0x7b, 0x7b, 1, 0x7b],
  ...[3, 2, 1, 0],
  ...[10, 11, 1, 9, 0, 0x20, 0, 0x20, 1, 0xfd, 0x80, 2, 0x0b],
]);

/** Sets V8's flag where the relaxed build needs it (Node 20). Call it before the first index is created. */
export function enableRelaxedSimd(): void {
  if (!WebAssembly.validate(RELAXED_MODULE)) setFlagsFromString("--experimental-wasm-relaxed-simd"); // the library's RELAXED_SIMD_FLAG
}
