/** One file out of what tsc wrote and the small packages that go into the library. */
import { readFile } from "node:fs/promises";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const TARGET = "es2022";
const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Lines of @assemblyscript/loader that run when it is imported, and what replaces them. */
const LOADER_PATCHES = [
  // Fails at once where there is no TextDecoder (Jest's jsdom). Only texts of a module need it, and the core has none.
  [
    'const utf16 = new TextDecoder("utf-16le", { fatal: true }); // != wtf16',
    'const utf16 = { decode: (text) => new TextDecoder("utf-16le", { fatal: true }).decode(text) };',
  ],
  // Changes a global. Every runtime of ES2022 has Object.hasOwn.
  ["Object.hasOwn = Object.hasOwn || function(obj, prop) {\n  return Object.prototype.hasOwnProperty.call(obj, prop);\n};", ""],
];

const loaderWithoutSideEffects = {
  name: "loader-without-side-effects",
  setup({ onLoad }) {
    onLoad({ filter: /@assemblyscript[\\/]loader[\\/]index\.js$/ }, async ({ path }) => {
      let contents = await readFile(path, "utf8");
      for (const [line, instead] of LOADER_PATCHES) {
        if (!contents.includes(line)) throw new Error(`@assemblyscript/loader has changed; look again for: ${line}`);
        contents = contents.replace(line, instead);
      }
      return { contents: `/*! ${relative(ROOT, path)} */\n${contents}`, loader: "js" };
    });
  },
};

/**
 * The declarations have the comments; the bundles have the names of their parts, where `legalComments` keeps them. What a file calls
 * its functions, classes and methods stays, for traces and profiles; variables within them do not keep their names.
 */
const withoutComments = {
  name: "without-comments",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]dist[\\/].*\.js$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { minifyWhitespace: true, minifyIdentifiers: true, target: TARGET });
      return { contents: `/*! ${relative(ROOT, path)} */\n${code}`, loader: "js" };
    });
  },
};

/** @param options  of esbuild, beside what all bundles have in common. @returns the text, where nothing is written to a file. */
export async function bundle(options) {
  const { outputFiles } = await build({
    // The bundle's comments contain paths: they must be the same wherever the checkout is, even if node_modules is a link.
    absWorkingDir: ROOT,
    preserveSymlinks: true,
    bundle: true,
    platform: "neutral",
    // What "neutral" leaves out.
    mainFields: ["module", "main"],
    conditions: ["browser"],
    external: ["*.wasm"],
    target: TARGET,
    legalComments: "none",
    logLevel: "warning",
    plugins: [loaderWithoutSideEffects, withoutComments],
    ...options,
  });
  return outputFiles?.[0].text;
}
