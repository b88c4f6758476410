/** What the library and others like it take when they are installed, and in a page. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
export const PEERS = `${ROOT}bench/library-peers/`;

/** Bytes of node_modules after installing one package with its dependencies. */
export function installedBytes(name) {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-install-"));
  try {
    writeFileSync(join(folder, "package.json"), `{"private":true}`);
    const { version } = JSON.parse(readFileSync(join(folderOf(name), "package.json"), "utf8"));
    const what = name === "lodestone" ? packLibrary(folder) : `${name}@${version}`;
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", what], {
      cwd: folder,
      stdio: "ignore",
    });
    const modules = join(folder, "node_modules");
    const files = readdirSync(modules, { recursive: true }).map((path) => statSync(join(modules, path)));
    return files.filter((stat) => stat.isFile()).reduce((sum, { size }) => sum + size, 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function packLibrary(folder) {
  const output = execFileSync("npm", ["pack", "--json", `${ROOT}dist/packages/library`], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  return `./${JSON.parse(output)[0].filename}`;
}

const folderOf = (name) => (name === "lodestone" ? `${ROOT}dist/packages/library` : `${PEERS}node_modules/${name}`);

/** @param source  a module. @returns the minified bytes, with what it imports of the library as it is packed, or of a peer. */
export async function bundlePage(source) {
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: PEERS },
    alias: { lodestone: `${ROOT}dist/packages/library/dist/index.js` },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    external: ["module", "fs", "path", "url"],
    loader: { ".wasm": "binary" },
    write: false,
    logLevel: "error",
  });
  return outputFiles[0].contents;
}
