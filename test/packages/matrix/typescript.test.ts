import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runTool } from "../outcome.ts";
import { createProject, removeFolder, write } from "../packed.ts";
import { tool } from "../tools.ts";

const SOURCE = `import { Columns, IndexedDbStore, init, LodestoneError, OpfsStore, ParallelVectorIndex, type SearchResult, TextColumns, type TextSearchResult, VectorIndex } from "lodestone";

export async function keep(films: ParallelVectorIndex): Promise<VectorIndex> {
  const store = new IndexedDbStore();
  await store.save("films", films, { onProgress: ({ rows, totalRows }) => void (rows / totalRows) });
  await new OpfsStore().delete("films");
  const copy: VectorIndex = await VectorIndex.fromStream(films.toStream());
  copy.free();
  return store.load("films", VectorIndex, { columns: new Columns({ year: "int", tags: "multiple" }) });
}

// @ts-expect-error: there is no such type of column
new Columns({ year: "number" });

export async function typed(): Promise<string | null | undefined> {
  const columns = new Columns({ title: "string", year: "int" });
  const index: VectorIndex<Columns<{ title: "string"; year: "int" }>> = await VectorIndex.create({ dimension: 3, columns });
  // @ts-expect-error: the year is an int
  index.upsert("alien", [1, 2, 3], { title: "Alien", year: "1979" });
  // @ts-expect-error: there is no such column
  index.search([1, 2, 3], { filter: { yeer: 1979 } });
  return index.search([1, 2, 3], { filter: { year: { $gte: 1970 } }, columns: ["title"] }).results[0]?.columns?.title;
}

export async function both(films: ParallelVectorIndex, index: VectorIndex): Promise<TextSearchResult> {
  const { results } = index.search({ text: "space", target: ["title"], stemmer: (word) => word.toLowerCase(), explain: true });
  const total: number = results.reduce((sum, { explanation }) => sum + (explanation?.text?.words.length ?? 0), 0);
  await ParallelVectorIndex.create({ dimension: 3, columns: new TextColumns({ title: "string" }) });
  return films.search({ text: "space", vector: [1, 2, total], fusion: { method: "rrf" } });
}

export async function nearest(query: Float32Array): Promise<SearchResult> {
  init({ build: "simd", wasm: new Uint8Array(8) });
  const index: VectorIndex = await VectorIndex.create({ dimension: query.length });
  index.upsert("a", [1, 2, 3]);
  const shards = await ParallelVectorIndex.create({ dimension: 3, shards: 1 });
  await shards.upsertMany(["a"], Float32Array.of(1, 2, 3));
  const [none, limit]: [undefined, number | undefined] = [undefined, query.at(0)];
  await ParallelVectorIndex.create({ dimension: 3, shards: limit, rows: none, maximumMemoryBytes: limit, columns: none });
  index.search(query, { k: limit, similarity: none, cosine: none, filter: none, offset: limit, scoreThreshold: limit, columns: none });
  try {
    return index.search(query, { k: 3, similarity: "l2", filter: (id) => id !== "b", offset: 1, scoreThreshold: 0.5 });
  } catch (error) {
    if (error instanceof LodestoneError && error.code === "OUT_OF_MEMORY") throw error;
    return shards.search(query, { filter: { year: { $gte: 2020 } }, columns: ["year"] });
  }
}

// @ts-expect-error: the dimension is a number
void VectorIndex.create({ dimension: "3" });
`;
const WASM = `import core from "lodestone/core.wasm";
import { init } from "lodestone";
init({ wasm: core });
`;

const COMPILERS = ["typescript-5.7", "typescript-5.8", "typescript-5.9", "typescript-6", "typescript-7"];
const MODES = [
  { module: "node16", moduleResolution: "node16" },
  { module: "nodenext", moduleResolution: "nodenext" },
  { module: "esnext", moduleResolution: "bundler" },
];

describe.each(COMPILERS)("%s", (compiler) => {
  let project: string;
  beforeAll(() => {
    project = createProject(compiler, { "main.ts": SOURCE, "wasm.ts": WASM, "common.cts": SOURCE });
  });
  afterAll(() => removeFolder(project));

  it.each(
    MODES.flatMap((mode) =>
      [true, false].map((hasDom) => [mode.moduleResolution, hasDom ? "with lib dom" : "without lib dom", mode, hasDom] as const),
    ),
  )("%s, %s", (_, __, mode, hasDom) => {
    const compilerOptions = {
      ...mode,
      target: "es2022",
      lib: hasDom ? ["es2022", "dom"] : ["es2022"],
      types: [],
      noEmit: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
    };
    const files = mode.moduleResolution === "bundler" ? ["main.ts", "wasm.ts"] : ["main.ts", "wasm.ts", "common.cts"];
    write(project, { "tsconfig.json": JSON.stringify({ compilerOptions, files }) });
    expect(runTool(project, process.execPath, [tool(`${compiler}/bin/tsc`), "-p", "."])).toBe("");
  });
});
