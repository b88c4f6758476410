/**
 * Puts the packages that the server imports into its own package (npm's `bundleDependencies`): of each its manifest,
 * its licence and the files that are reached by imports, and nothing else. PGlite alone ships 40 extensions, a second
 * build and its source maps: more than the server and everything else it needs. What is installed is what the
 * project's lock file names, and what the tests ran.
 */
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { build } from "esbuild";
import { BUNDLED } from "./manifest.mjs";

/** Read at run time, not imported. */
const READ = ["@electric-sql/pglite/dist/pglite.wasm", "@electric-sql/pglite/dist/pglite.data", "libpg-query/wasm/libpg-query.wasm"];
const LEGAL = /^(?:licen[cs]e|copying|notice|copyright)/i;
const FOLDER = /^node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/;

/**
 * @param entryPoints  the files with which the server's threads begin.
 * @param to  the staged package.
 */
export async function bundlePackages(root, entryPoints, to) {
  const imported = await importedFiles(root, entryPoints);
  const traced = new Set(imported.map((file) => FOLDER.exec(file)[0]));
  const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, "utf8"));
  const copy = (path) => cpSync(root + path, to + path, { recursive: true, dereference: true });
  for (const [folder, { dev, optional }] of Object.entries(packages)) {
    if (!FOLDER.test(folder) || dev || (optional && !traced.has(folder)) || BUNDLED.some((name) => folder === `node_modules/${name}`))
      continue;
    // Nothing imports it, but another's manifest asks for it (types), and npm would fetch what is missing.
    if (!traced.has(folder)) copy(folder);
    else for (const name of readdirSync(root + folder)) if (name === "package.json" || LEGAL.test(name)) copy(`${folder}/${name}`);
  }
  for (const file of [...imported, ...READ.map((file) => `node_modules/${file}`)]) {
    copy(file);
    // It says whether the files beside it are modules.
    for (let at = dirname(file); FOLDER.exec(at)[0] !== at; at = dirname(at))
      if (existsSync(`${root}${at}/package.json`)) copy(`${at}/package.json`);
  }
}

async function importedFiles(root, entryPoints) {
  const { metafile } = await build({
    entryPoints,
    absWorkingDir: root,
    preserveSymlinks: true,
    bundle: true,
    write: false,
    metafile: true,
    outdir: "unused",
    format: "esm",
    platform: "node",
    external: ["lodestone", "pg-native"],
    logLevel: "warning",
  });
  return Object.keys(metafile.inputs).filter((file) => FOLDER.test(file));
}
