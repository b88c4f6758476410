/** Builds what ships, into dist/: assembly/ -> WebAssembly (asc), src/ -> JavaScript and declarations (tsc), a single file for browsers (esbuild). `npm ci` runs it through `prepare`. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { sourceStamp, stampFile } from "./source-stamp.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const stamp = sourceStamp(root);
const bin = (name) => `${root}node_modules/.bin/${name}`;
const run = (command, ...args) => execFileSync(command, args, { cwd: root, stdio: "inherit" });

mkdirSync(`${root}build`, { recursive: true });
mkdirSync(`${root}dist/wasm`, { recursive: true });
for (const target of ["simd", "relaxed"]) run(bin("asc"), "assembly/index.ts", "--target", target);
run(bin("tsc"), "-p", "tsconfig.json");

const wasm = (target) => readFileSync(`${root}build/core.${target}.wasm`);
writeFileSync(`${root}dist/wasm/core.wasm`, wasm("simd"));
writeFileSync(`${root}dist/wasm/core.relaxed.wasm`, wasm("relaxed"));
writeFileSync(
  `${root}dist/core/wasm-bytes.js`,
  `export const SIMD_WASM = "${wasm("simd").toString("base64")}";\nexport const RELAXED_WASM = "${wasm("relaxed").toString("base64")}";\n`,
);

await build({
  absWorkingDir: root,
  entryPoints: { lodestone: "dist/index.js", "shard-worker": "dist/core/shard-worker.js" },
  outdir: "dist/browser",
  bundle: true,
  minify: true,
  sourcemap: true,
  format: "esm",
  platform: "browser",
  external: ["node:*"],
  target: "es2022",
  logLevel: "warning",
});

// Of the sources as they were when the build began: what changed since makes it old.
writeFileSync(stampFile(root), stamp);
