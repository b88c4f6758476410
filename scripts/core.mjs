/**
 * Compiles the core for one target of asconfig.json: node scripts/core.mjs simd
 */
import { setFlagsFromString } from "node:v8";

// Before the compiler's own WebAssembly is compiled. It runs for a few seconds, and optimising it takes longer than that saves.
setFlagsFromString("--liftoff-only");
const { main } = await import("assemblyscript/asc");
const { error } = await main(["assembly/index.ts", "--target", process.argv[2]], { stdout: process.stdout, stderr: process.stderr });
if (error !== null) throw error;
