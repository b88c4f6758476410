/** Compiles the core, once for each target of asconfig.json: node scripts/core.mjs simd relaxed */
import { setFlagsFromString } from "node:v8";

// Before the compiler's own WebAssembly is compiled. It runs for a few seconds, and optimising it takes longer than that saves.
setFlagsFromString("--liftoff-only");
const { main } = await import("assemblyscript/asc");
for (const target of process.argv.slice(2)) {
  const { error } = await main(["assembly/index.ts", "--target", target], { stdout: process.stdout, stderr: process.stderr });
  if (error !== null) throw error;
}
