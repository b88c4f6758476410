/**
 * Builds what ships. Into dist/: assembly/ -> WebAssembly (asc), src/ -> JavaScript and declarations (tsc),
 * src/console -> the files of a page (esbuild), and the database that every data directory begins with. Into
 * dist/packages/: the library, its adapters and the server, each a folder for `npm pack`. The same sources give the same bytes. `npm ci` runs it through `prepare`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { stageAdapters } from "./adapters-package.mjs";
import { writeBuildIdentity } from "./build-identity.mjs";
import { bundle } from "./bundle.mjs";
import { buildConsole } from "./console.mjs";
import { stageLibrary } from "./library-package.mjs";
import { packedBuildsModule } from "./packed-builds.mjs";
import { stageServer } from "./server-package.mjs";
import { coreStamp, coreStampFile, isCoreBuilt, sourceStamp, stampFile } from "./source-stamp.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const stamp = sourceStamp(root);

async function run(command, ...args) {
  const [code, signal] = await once(spawn(command, args, { cwd: root, stdio: "inherit" }), "exit");
  if (code !== 0) throw new Error(`${[command, ...args].join(" ")} ended with ${signal ?? code}`);
}

/** Most of a build's time, unless the core is as it was. */
async function buildCore() {
  if (isCoreBuilt(root)) return;
  const coreBuiltFrom = coreStamp(root);
  rmSync(coreStampFile(root), { force: true });
  await run(process.execPath, "scripts/core.mjs", "simd", "relaxed");
  writeFileSync(coreStampFile(root), coreBuiltFrom);
}

/** Types are checked by `npm run check`, which takes as long again. */
async function buildServer() {
  await run(`${root}node_modules/.bin/tsc`, "-p", "tsconfig.json", "--noCheck");
  await run(process.execPath, "scripts/pristine-database.mjs");
}

mkdirSync(`${root}build`, { recursive: true });
mkdirSync(`${root}dist/wasm`, { recursive: true });
await Promise.all([buildCore(), buildServer()]);

const wasm = (target) => readFileSync(`${root}build/core.${target}.wasm`);
writeFileSync(`${root}dist/wasm/core.wasm`, wasm("simd"));
writeFileSync(`${root}dist/wasm/core.relaxed.wasm`, wasm("relaxed"));
writeFileSync(`${root}dist/core/wasm-bytes.js`, packedBuildsModule(wasm("simd"), wasm("relaxed")));

// An immediately invoked function: a script for `eval` in a thread of Node, and a module for a Web Worker.
const worker = await bundle({ entryPoints: [`${root}dist/core/shard-worker.js`], format: "iife", minify: true, write: false });
writeFileSync(`${root}dist/core/shard-worker-source.js`, `export const SHARD_WORKER_SOURCE = ${JSON.stringify(worker)};\n`);

writeBuildIdentity(root);
await stageLibrary(root, worker);
await buildConsole(root);
await stageServer(root);
stageAdapters(root);

// Of the sources as they were when the build began: what changed since makes it old.
writeFileSync(stampFile(root), stamp);
