/**
 * npm run bench:library-sizes: what each feature of the library takes in a page, as esbuild bundles and minifies it, beside
 * others. Bytes do not depend on the machine's load. Writes the table into docs/library.md.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { bundlePage, installedBytes, ROOT } from "./library-bundles.mjs";

/** What a page imports. */
const FEATURES = [
  ["**lodestone**: `VectorIndex`", "lodestone", "VectorIndex"],
  ["with filters: and `Columns`", "lodestone", "VectorIndex, Columns"],
  ["with words, and words with vectors: and `TextColumns`", "lodestone", "VectorIndex, TextColumns"],
  ["in workers: `ParallelVectorIndex`", "lodestone", "ParallelVectorIndex"],
  ["in workers, with words", "lodestone", "ParallelVectorIndex, TextColumns"],
  ["kept in the browser: `VectorIndex`, `OpfsStore`", "lodestone", "VectorIndex, OpfsStore"],
  ["everything", "lodestone", "*"],
  ["@orama/orama: words, vectors and filters", "@orama/orama", "create, insert, search"],
  ["@orama/orama: everything", "@orama/orama", "*"],
  ["minisearch: words", "minisearch", "default"],
];

const kilobytes = (bytes) => (bytes / 1000).toFixed(1);
const lines = [];
for (const [name, from, what] of FEATURES) {
  const clause = what === "*" ? "* as used" : what === "default" ? "used" : `{ ${what} }`;
  const kept = clause.startsWith("{") ? clause : "used";
  const bytes = await bundlePage(`import ${clause} from "${from}"; globalThis.kept = ${kept};`);
  lines.push(
    `| ${name} | ${[bytes, gzipSync(bytes, { level: 9 }), brotliCompressSync(bytes)].map(({ length }) => kilobytes(length)).join(" | ")} |`,
  );
  console.log(lines.at(-1));
}
const installed = kilobytes(installedBytes("lodestone"));
const table = `Bundles of esbuild, minified; \`npm run bench:library-sizes\`. The package takes ${installed} kB when it is installed.

| what a page imports | kB | gzipped | brotli |
|---|---|---|---|
${lines.join("\n")}`;
const path = `${ROOT}docs/library.md`;
const text = readFileSync(path, "utf8");
writeFileSync(
  path,
  text.replace(
    /<!-- library-bundles -->[\s\S]*<!-- \/library-bundles -->/,
    `<!-- library-bundles -->\n${table}\n<!-- /library-bundles -->`,
  ),
);
