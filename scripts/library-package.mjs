/**
 * Stages the package `lodestone` in dist/packages/library: one file a module format with everything inside,
 * which asks at run time where it is (so there is one for Node and browsers), its declarations, the WebAssembly
 * and its sources, and the worker as a file.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { bundle } from "./bundle.mjs";
import { BUNDLED, commonFields, projectManifest } from "./manifest.mjs";

/** @param worker  the text of shard-worker.js. */
export async function stageLibrary(root, worker) {
  const to = `${root}dist/packages/library/`;
  rmSync(to, { recursive: true, force: true });
  mkdirSync(`${to}dist`, { recursive: true });
  const entryPoints = [`${root}dist/index.js`];
  // Names of functions, and of the sources, stay: for traces and profiles.
  const readable = { minifySyntax: true, minifyWhitespace: true, legalComments: "inline" };
  await bundle({ entryPoints, format: "esm", ...readable, outfile: `${to}dist/index.js` });
  await bundle({ entryPoints, format: "cjs", minify: true, outfile: `${to}dist/index.cjs` });
  await bundle({
    entryPoints: [`${root}dist/workerd.js`],
    format: "esm",
    external: ["*.wasm", "./index.js"],
    outfile: `${to}dist/workerd.js`,
  });
  for (const ending of ["js", "cjs"]) writeFileSync(`${to}dist/shard-worker.${ending}`, worker);
  for (const name of ["core.wasm", "core.relaxed.wasm"]) cpSync(`${root}dist/wasm/${name}`, `${to}dist/${name}`);
  writeDeclarations(`${root}dist/`, `${to}dist/`);
  // The sources of the core, without the probe, which only tests of its bounds use.
  cpSync(`${root}assembly`, `${to}assembly`, { recursive: true, filter: (path) => !path.endsWith("bounds-probe.ts") });
  for (const name of ["asconfig.json", "LICENSE"]) cpSync(`${root}${name}`, `${to}${name}`);
  // The reference stays in the repository: the declarations say the same.
  writeFileSync(
    `${to}README.md`,
    readFileSync(`${root}docs/library.md`, "utf8").replace(
      "[API reference](api/README.md)",
      "the API reference in the repository, `docs/api`",
    ),
  );
  writeFileSync(`${to}THIRD-PARTY-NOTICES.md`, thirdPartyNotices(root));
  writeFileSync(`${to}package.json`, `${JSON.stringify(libraryManifest(projectManifest(root)), null, 2)}\n`);
}

function libraryManifest(project) {
  const esm = { types: "./dist/index.d.ts", default: "./dist/index.js" };
  const cjs = { types: "./dist/index.d.cts", default: "./dist/index.cjs" };
  const wasm = (name) => ({
    import: { types: `./dist/${name}.d.ts`, default: `./dist/${name}` },
    require: { types: `./dist/${name}.d.cts`, default: `./dist/${name}` },
  });
  return {
    name: "lodestone",
    description: "Exact vector search in WebAssembly, for browsers, Node and edge runtimes. No dependencies.",
    keywords: [
      "vector search",
      "nearest neighbours",
      "exact",
      "embeddings",
      "similarity",
      "cosine",
      "knn",
      "top-k",
      "wasm",
      "webassembly",
      "simd",
    ],
    ...commonFields(project),
    type: "module",
    // The file for workerd hands the module compiled ahead to the core; the rest does nothing when imported.
    sideEffects: ["./dist/workerd.js"],
    main: "./dist/index.cjs",
    module: "./dist/index.js",
    browser: "./dist/index.cjs",
    types: "./dist/index.d.cts",
    unpkg: "./dist/index.js",
    jsdelivr: "./dist/index.js",
    exports: {
      ".": {
        workerd: { types: "./dist/index.d.ts", default: "./dist/workerd.js" },
        import: esm,
        require: cjs,
        default: esm,
      },
      "./shard-worker.js": {
        import: { types: "./dist/shard-worker.d.ts", default: "./dist/shard-worker.js" },
        require: { types: "./dist/shard-worker.d.cts", default: "./dist/shard-worker.cjs" },
      },
      "./core.wasm": wasm("core.wasm"),
      "./core.relaxed.wasm": wasm("core.relaxed.wasm"),
      "./package.json": "./package.json",
    },
    files: ["dist", "assembly", "asconfig.json", "THIRD-PARTY-NOTICES.md"],
  };
}

const SPECIFIER = /(from|import\()( ?)"(\.[^"]+)\.(?:ts|js)"/g;

/**
 * Copies the declarations that index.d.ts reaches, for modules (.d.ts) and for CommonJS (.d.cts); tsc leaves
 * the endings of the sources in them.
 */
function writeDeclarations(from, to) {
  const waiting = ["index.d.ts"];
  const seen = new Set(waiting);
  for (const name of waiting) {
    const text = readFileSync(from + name, "utf8").replace(/\n?\/\/# sourceMappingURL=.*\n?/, "\n");
    for (const [, , , path] of text.matchAll(SPECIFIER)) {
      const reached = relative(".", join(dirname(name), `${path}.d.ts`));
      if (!seen.has(reached)) waiting.push(reached);
      seen.add(reached);
    }
    mkdirSync(dirname(to + name), { recursive: true });
    writeFileSync(to + name, text.replace(SPECIFIER, '$1$2"$3.js"'));
    writeFileSync(to + name.replace(/\.ts$/, ".cts"), text.replace(SPECIFIER, '$1$2"$3.cjs"'));
  }
  for (const [ending, file] of [
    ["ts", "js"],
    ["cts", "cjs"],
  ]) {
    const wasmType = `import type { WasmModule } from "./index.${file}";\ndeclare const module: WasmModule;\nexport default module;\n`;
    for (const name of ["core.wasm", "core.relaxed.wasm"]) writeFileSync(`${to}${name}.d.${ending}`, wasmType);
    writeFileSync(`${to}shard-worker.d.${ending}`, "export {};\n");
  }
}

function thirdPartyNotices(root) {
  const notices = BUNDLED.map((name) => {
    const folder = `${root}node_modules/${name}/`;
    const { version, license, author, homepage } = JSON.parse(readFileSync(`${folder}package.json`, "utf8"));
    const who = typeof author === "string" ? author : `${author.name}`;
    // The loader's package has no licence file; Apache-2.0 is the one that is in LICENSE.
    const text =
      license === "MIT"
        ? readFileSync(`${folder}LICENSE`, "utf8").trim()
        : "The text of this licence is in the file LICENSE of this package.";
    return `## ${name} ${version}\n\n${who}${homepage ? `, ${homepage}` : ""}. Licence: ${license}.\n\n${text}\n`;
  });
  return `# What else is in the files of this package\n\n${notices.join("\n")}`;
}
