/** One file out of what tsc wrote for the library. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const TARGET = "es2022";
const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The declarations have the comments; the bundles do without. */
const withoutComments = {
  name: "without-comments",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]dist[\\/].*\.js$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { minifyWhitespace: true, target: TARGET });
      return { contents: code, loader: "js" };
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
    external: ["*.wasm"],
    target: TARGET,
    legalComments: "none",
    logLevel: "warning",
    plugins: [withoutComments],
    ...options,
  });
  return outputFiles?.[0].text;
}
