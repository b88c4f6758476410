/** Builds what ships, into dist/: assembly/ -> WebAssembly (asc), src/ -> JavaScript and declarations (tsc), a single file for browsers (esbuild). `npm ci` runs it through `prepare`. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const bin = (name) => `${root}node_modules/.bin/${name}`;
const run = (command, ...args) => execFileSync(command, args, { cwd: root, stdio: "inherit" });

mkdirSync(`${root}build`, { recursive: true });
mkdirSync(`${root}dist/wasm`, { recursive: true });
run(bin("asc"), "assembly/index.ts", "--target", "simd");
run(bin("tsc"), "-p", "tsconfig.json");

const simd = readFileSync(`${root}build/core.simd.wasm`);
writeFileSync(`${root}dist/wasm/core.wasm`, simd);
writeFileSync(`${root}dist/core/wasm-bytes.js`, `export const SIMD_WASM = "${simd.toString("base64")}";\n`);

await build({
  absWorkingDir: root,
  entryPoints: ["dist/index.js"],
  outfile: "dist/browser/lodestone.js",
  bundle: true,
  minify: true,
  sourcemap: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  logLevel: "warning",
});
