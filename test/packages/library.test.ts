import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type * as Lodestone from "../../src/index.ts";
import { expectAnswers, runProgram } from "./outcome.ts";
import { createProject, newFolder, pack, removeFolder, write } from "./packed.ts";
import { CJS_PROGRAM, CONSOLE_MAIN, ESM_PROGRAM } from "./program.ts";

const CJS_MAIN = `require("./program.cjs").run().then((result) => console.log("OUTCOME " + JSON.stringify(result)));\n`;

describe("the library's package", () => {
  let project: string;
  let installed: string;

  beforeAll(() => {
    project = createProject("library", {
      "program.js": ESM_PROGRAM,
      "main.js": CONSOLE_MAIN,
      "program.cjs": CJS_PROGRAM,
      "main.cjs": CJS_MAIN,
    });
    installed = join(project, "node_modules/lodestone");
  });
  afterAll(() => removeFolder(project));

  const files = () =>
    readdirSync(installed, { recursive: true, encoding: "utf8" }).filter((path) => statSync(join(installed, path)).isFile());

  it("installs nothing else, is under 1.2 MB, and contains no file of the server", () => {
    expect(readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["lodestone"]);
    expect(files().reduce((bytes, path) => bytes + statSync(join(installed, path)).size, 0)).toBeLessThan(1_200_000);
    expect(
      files().filter(
        (path) =>
          !/^(dist\/((core|frames|library|library\/replica|columns|errors|full-text)\/[^/]+\.d\.c?ts$|[^/]+$)|assembly\/|[^/]+$)/.test(
            path,
          ),
      ),
    ).toEqual([]);
    const text = readFileSync(join(installed, "dist/index.js"), "utf8");
    // Before each part the bundle names its source.
    const parts = [...text.matchAll(/\/\*! ((?:dist|node_modules)\/.*?) \*\//g)].map(([, path]) => path);
    expect(parts).toContain("dist/core/vector-index.js");
    const allowed =
      /^(dist\/((core|columns|errors|filter|frames|full-text|library|text|threads)\/|[^/]+$)|node_modules\/@assemblyscript\/loader\/)/;
    expect(parts.filter((path) => !allowed.test(path ?? ""))).toEqual([]);
  });

  it("contains every file that its manifest names, and no source map", () => {
    const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Record<string, unknown>;
    const targets = JSON.stringify([
      manifest.exports,
      manifest.main,
      manifest.module,
      manifest.browser,
      manifest.types,
      manifest.unpkg,
    ]).match(/\.\/[^"]+/g)!;
    expect(targets.length).toBeGreaterThan(10);
    for (const target of targets.filter((path) => path.startsWith("./dist/") || path === "./package.json")) {
      expect(files()).toContain(target.slice(2));
    }
    expect(manifest).toMatchObject({ sideEffects: ["./dist/workerd.js"], license: "Apache-2.0" });
    expect(manifest).not.toHaveProperty("dependencies");
    for (const field of ["repository", "homepage", "keywords", "engines"]) expect(manifest).toHaveProperty(field);
    for (const path of files()) {
      expect(path).not.toMatch(/\.map$/);
      if (/\.(js|cjs|d\.ts|d\.cts)$/.test(path)) expect(readFileSync(join(installed, path), "utf8")).not.toContain("sourceMappingURL");
    }
  });

  it("tools that do not read `exports` find it through main, module, browser and types", async () => {
    const old = newFolder("old-tools");
    try {
      cpSync(installed, join(old, "node_modules/lodestone"), { recursive: true });
      const { exports: _, ...manifest } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Record<string, string>;
      write(old, { "node_modules/lodestone/package.json": JSON.stringify(manifest), "program.cjs": CJS_PROGRAM, "main.cjs": CJS_MAIN });
      expectAnswers(runProgram(old, process.execPath, ["main.cjs"]));
      for (const field of ["main", "module", "browser"]) {
        const { outputFiles } = await build({
          stdin: { contents: `export { VectorIndex } from "lodestone";`, resolveDir: old },
          bundle: true,
          format: "esm",
          mainFields: [field],
          write: false,
        });
        expect([field, outputFiles[0]?.text]).toEqual([field, expect.stringContaining("LODESTN")]);
      }
      expect(readFileSync(join(installed, manifest.types ?? "missing"), "utf8")).toContain("VectorIndex");
    } finally {
      removeFolder(old);
    }
  });

  it("contains the notice of each package whose code is inside", () => {
    const notices = readFileSync(join(installed, "THIRD-PARTY-NOTICES.md"), "utf8");
    expect(notices).toContain("## @assemblyscript/loader ");
    expect(readFileSync(join(installed, "LICENSE"), "utf8")).toContain("Apache License");
  });

  it("the file for browsers imports nothing and has no top-level await", () => {
    for (const name of ["index.js", "shard-worker.js"]) {
      const text = readFileSync(join(installed, "dist", name), "utf8");
      expect(text).not.toMatch(/^\s*import\b/m);
      expect(text).not.toMatch(/^await\b|import\(|new URL\(|import\.meta/m);
    }
  });

  it.each([
    ["import", "main.js"],
    ["require", "main.cjs"],
  ])("answers as the oracle by %s, and lets the process end", (_, main) => {
    expectAnswers(runProgram(project, process.execPath, [main]));
  });

  /** Like Jest's jsdom: a separate realm with few of Node's globals. */
  function inBareRealm(): { lodestone: typeof Lodestone; before: string; after: string } {
    const context = createContext({ process, atob, console, setTimeout });
    const globals = () =>
      runInContext("[...Reflect.ownKeys(globalThis).map(String), Object.hasOwn, typeof TextDecoder].join()", context) as string;
    const load = runInContext(
      `(module) => { (function (module, exports) { ${readFileSync(join(installed, "dist/index.cjs"), "utf8")}\n})(module, module.exports); }`,
      context,
    );
    const module = { exports: {} };
    const before = globals();
    load(module);
    return { lodestone: module.exports as typeof Lodestone, before, after: globals() };
  }

  it("can be loaded without TextDecoder, and leaves the globals as they are", () => {
    const { lodestone, before, after } = inBareRealm();
    expect(lodestone.VectorIndex).toBeTypeOf("function");
    expect(after).toBe(before);
    expect(after).toMatch(/undefined$/);
    expect(readFileSync(join(installed, "dist/index.js"), "utf8")).not.toMatch(/Object\.hasOwn\s*=[^=]/);
  });

  it("works in another realm than that of its typed arrays, with TextEncoder hidden, shards included", async () => {
    const { lodestone } = inBareRealm();
    const index = await lodestone.VectorIndex.create({ dimension: 1 });
    index.upsertMany(["ä€😀"], Float32Array.of(1));
    expect(index.build).not.toBe("scalar");
    const copy = await lodestone.ParallelVectorIndex.fromBytes(index.toBytes(), { shards: 1 });
    const { results } = await copy.search(Float32Array.of(1), { filter: Uint32Array.of(1) });
    expect(JSON.stringify(results)).toBe('[{"id":"ä€😀","score":2}]');
    await copy.free();
  });

  it("without WebAssembly it uses the scalar build, and says so once, or names what is missing when another was requested", () => {
    const script = `
      delete globalThis.WebAssembly;
      const { init, VectorIndex } = await import("lodestone");
      const said = [];
      console.warn = console.info = (text) => said.push(text);
      const { build } = await VectorIndex.create({ dimension: 1 });
      init({}); // The build is chosen again.
      await VectorIndex.create({ dimension: 1 });
      init({ build: "simd" });
      const error = await VectorIndex.create({ dimension: 1 }).catch((error) => error);
      console.log(JSON.stringify([build, said, error.code, error.message]));`;
    const output = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: project, encoding: "utf8" });
    expect(JSON.parse(output)).toEqual([
      "scalar",
      [expect.stringContaining("WebAssembly")],
      "UNAVAILABLE",
      expect.stringMatching(/simd build of the core does not run here: .*WebAssembly/),
    ]);
  });

  it("its classes have their names, also where a bundler has renamed them", async () => {
    const ofModule = (path: string) => {
      const script = `const library = await import(${JSON.stringify(path)});
        console.log(JSON.stringify(Object.entries(library).flatMap(([name, value]) => typeof value === "function" ? [[name, value.name]] : [])));`;
      return JSON.parse(
        execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: project, encoding: "utf8" }),
      ) as string[][];
    };
    const names = ofModule("lodestone");
    expect(names.map(([name]) => name)).toEqual(expect.arrayContaining(["Columns", "LodestoneError", "VectorIndex"]));
    expect(names.filter(([exported, own]) => exported !== own)).toEqual([]);
    const both = ["ParallelVectorIndex", "VectorIndex"];
    await build({
      stdin: { contents: `export { ${both} } from "lodestone";`, resolveDir: project },
      bundle: true,
      minify: true,
      format: "esm",
      outfile: join(project, "renamed.mjs"),
    });
    expect(ofModule("./renamed.mjs")).toEqual(both.map((name) => [name, name]));
  });

  it("accepts the WebAssembly of its subpaths, as bytes or module", () => {
    const script = `
      import { readFileSync } from "node:fs";
      import { init, VectorIndex } from "lodestone";
      const bytes = readFileSync(new URL(import.meta.resolve("lodestone/core.wasm")));
      const builds = [];
      for (const wasm of [bytes, await WebAssembly.compile(bytes)]) {
        init({ wasm });
        builds.push((await VectorIndex.create({ dimension: 1 })).build);
      }
      console.log(builds.join());`;
    expect(execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: project, encoding: "utf8" })).toBe("simd,simd\n");
  });

  it("a bundle of a page that uses VectorIndex alone has at most 45.2 kB gzipped, with all builds of the core", async () => {
    const { outputFiles } = await build({
      stdin: { contents: `import { VectorIndex } from "lodestone"; globalThis.VectorIndex = VectorIndex;`, resolveDir: project },
      bundle: true,
      minify: true,
      format: "esm",
      write: false,
    });
    const text = outputFiles[0]!.contents;
    // 0.14 kB of it load an index with its vectors in a file without taking a page's thread for 0.3 s.
    expect(gzipSync(text, { level: 9 }).length).toBeLessThanOrEqual(45_200);
    expect(Buffer.from(text).toString()).not.toContain("worker_threads");
    // Nothing of what searches words.
    for (const part of ["vectorWeight", "sc=Khmr", "DataView(new ArrayBuffer"]) expect(Buffer.from(text).toString()).not.toContain(part);
  });

  it("is the same tarball, byte for byte, when it is packed again", () => {
    const [first, second] = [newFolder("pack"), newFolder("pack")];
    try {
      expect(sha256(pack("library", first))).toBe(sha256(pack("library", second)));
    } finally {
      removeFolder(first);
      removeFolder(second);
    }
  });
});

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}
