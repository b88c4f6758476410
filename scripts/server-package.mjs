/**
 * Stages the package `lodestone-server` in dist/packages/server: everything that tsc wrote except the library,
 * which it depends on, and the console's files. Each module of the library that the server's files import is
 * replaced by one line that re-exports the library. The packages it imports are inside (bundled-packages.mjs).
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bundlePackages } from "./bundled-packages.mjs";
import { BUNDLED, commonFields, projectManifest } from "./manifest.mjs";

/**
 * Of dist/; the class of errors is the library's, so that `instanceof` holds for what it throws. The scores'
 * definition in plain JavaScript (core/exact.js), which holds no state and which the library does not export,
 * is in both packages.
 */
const isLibrary = (path) => /^(core\/(?!exact\.)|library\/|errors\.|index\.|workerd\.)/.test(path);
const isShipped = (path) => path.endsWith(".js") && !/^(packages|browser|console|wasm)\//.test(path);

/** What scripts/pristine-database.mjs made. */
const PRISTINE_DATABASE = "records/engine/embedded/pristine-database.br";

const IMPORT = /^(?:import|export) (?:\{([^}]*)\}|\*) from "(\.[^"]+)";$/gm;
const PASS_ON = 'export * from "lodestone";\n';

export async function stageServer(root) {
  const from = `${root}dist/`;
  const to = `${root}dist/packages/server/`;
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const library = await import(`${from}index.js`);
  for (const path of readdirSync(from, { recursive: true }).filter(
    (path) => isShipped(path) && !isLibrary(path) && hasSource(root, path),
  )) {
    const text = readFileSync(from + path, "utf8").replace(/\n?\/\/# sourceMappingURL=.*\n?/, "\n");
    write(`${to}dist/${path}`, text);
    for (const [, names = "", specifier] of text.matchAll(IMPORT)) {
      const imported = join(dirname(path), specifier);
      if (!isLibrary(imported)) continue;
      const missing = names
        .split(",")
        .map((name) => name.trim().split(" as ")[0])
        .filter((name) => name !== "" && !(name in library));
      if (missing.length > 0) throw new Error(`${path} imports ${missing.join(", ")}, which src/index.ts does not export`);
      write(`${to}dist/${imported}`, PASS_ON);
    }
  }
  await bundlePackages(root, entryPoints(to), to);
  cpSync(`${from}console`, `${to}dist/console`, { recursive: true });
  cpSync(from + PRISTINE_DATABASE, `${to}dist/${PRISTINE_DATABASE}`);
  cpSync(`${from}build.json`, `${to}dist/build.json`);
  for (const name of ["LICENSE", "CHANGELOG.md", "README.md"]) cpSync(`${root}${name}`, `${to}${name}`);
  cpSync(`${root}docs`, `${to}docs`, { recursive: true });
  writeFileSync(`${to}package.json`, `${JSON.stringify(serverManifest(projectManifest(root)), null, 2)}\n`);
}

/** The program, and what it starts as threads. */
function entryPoints(to) {
  const workers = readdirSync(`${to}dist`, { recursive: true }).filter((path) => path.endsWith("-worker.js"));
  return ["cli/main.js", ...workers].map((path) => `${to}dist/${path}`);
}

function serverManifest(project) {
  const dependencies = Object.entries(project.dependencies).filter(([name]) => !BUNDLED.includes(name));
  return {
    name: "lodestone-server",
    description: "Exact vector search as a service you run yourself: records, SQL and vectorSearch over HTTP, PostgreSQL inside.",
    keywords: ["vector search", "database", "server", "exact", "embeddings", "postgresql", "pglite", "sql", "http"],
    ...commonFields(project),
    type: "module",
    bin: project.bin,
    dependencies: { ...Object.fromEntries(dependencies), lodestone: project.version },
    bundleDependencies: dependencies.map(([name]) => name),
    exports: { "./package.json": "./package.json" },
    files: ["dist", "docs", "CHANGELOG.md"],
  };
}

/** What an earlier build left in dist/ does not ship. */
function hasSource(root, path) {
  return existsSync(`${root}src/${path.replace(/\.js$/, ".ts")}`);
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
