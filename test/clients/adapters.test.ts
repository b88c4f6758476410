/** The package of adapters as it is installed, with the published frameworks: over an index of the library and over a table of the service. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const KEY = "the-key-of-the-adapter";

/** Made beforehand by a model: the examples' vectors of words. */
const { words, dimension } = JSON.parse(readFileSync(join(ROOT, "examples/text-search/vectors.json"), "utf8")) as {
  words: Record<string, number[]>;
  dimension: number;
};

function embed(text: string): number[] {
  const sum = new Array<number>(dimension).fill(0);
  for (const word of text.toLowerCase().split(/[^a-z]+/)) for (const [i, x] of (words[word] ?? []).entries()) sum[i]! += x;
  return sum;
}

const TEXTS = [
  { id: "rocket", text: "rocket planet astronaut", year: 1969, topic: "space" },
  { id: "rocket again", text: "rocket planet astronaut orbit", year: 1970, topic: "space" },
  { id: "probe", text: "probe asteroid telescope", year: 2004, topic: "space" },
  { id: "dough", text: "dough flour butter", year: 1950, topic: "food" },
].map((one) => ({ ...one, id: one.id.replace(" ", "-") }));

const question = "rocket planet";

// biome-ignore lint/suspicious/noExplicitAny: the frameworks are installed by the clients' own package, without their types here.
type Loaded = any;

describeWith("clients", "the adapters", (modules) => {
  let folder: string;
  let server: TestServer;
  beforeAll(async () => {
    // Below the clients, so that the frameworks are found.
    mkdirSync(join(modules, "../work"), { recursive: true });
    folder = mkdtempSync(join(modules, "../work/adapters-"));
    for (const [name, staged] of [
      ["lodestone", "library"],
      ["lodestone-adapters", "adapters"],
    ] as const)
      cpSync(join(ROOT, "dist/packages", staged), join(folder, "node_modules", name), { recursive: true });
    server = await startServer({ args: ["--api-key", KEY] });
    await server.put("/db/docs:main", {}, { authorization: `Bearer ${KEY}` });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const load = (path: string): Promise<Loaded> => import(pathToFileURL(path).href);
  const adapter = (name: string): Promise<Loaded> => load(join(folder, `node_modules/lodestone-adapters/${name}.js`));
  const placeFor = ({ IndexDocuments, TableDocuments }: Loaded, kind: string, table: string): Loaded =>
    kind === "index" ? new IndexDocuments() : new TableDocuments({ url: server.url, apiKey: KEY, database: "docs", table });

  describe.each(["index", "table"])("of LangChain, over documents in an %s", (kind) => {
    let store: Loaded;
    beforeAll(async () => {
      const [{ LodestoneVectorStore, ...places }, { Embeddings }, { Document }] = await Promise.all([
        adapter("langchain"),
        load(join(modules, "@langchain/core/dist/embeddings.js")),
        load(join(modules, "@langchain/core/dist/documents/index.js")),
      ]);
      class Prepared extends Embeddings {
        embedQuery = async (text: string) => embed(text);
        embedDocuments = async (texts: string[]) => texts.map(embed);
      }
      store = new LodestoneVectorStore(new (Prepared as Loaded)({}), placeFor(places, kind, "langchain"));
      const documents = TEXTS.map(({ id, text, year, topic }) => new Document({ id, pageContent: text, metadata: { year, topic } }));
      expect(await store.addDocuments(documents)).toEqual(TEXTS.map(({ id }) => id));
    });
    const idsOf = (found: { id: string }[]): string[] => found.map(({ id }) => id);

    test("finds what is near, exactly, with its score and metadata", async () => {
      const found = await store.similaritySearchWithScore("rocket planet astronaut", 2);
      expect(found).toMatchObject([
        [{ id: "rocket", pageContent: "rocket planet astronaut", metadata: { year: 1969, topic: "space" } }, expect.closeTo(2, 6)],
        [{ id: "rocket-again" }, expect.any(Number)],
      ]);
    });

    test("filters by metadata, as a retriever, too", async () => {
      const filter = { "metadata->year": { $ge: 1970 }, "metadata->topic": "space" };
      expect(idsOf(await store.similaritySearch("rocket planet", 10, filter))).toEqual(["rocket-again", "probe"]);
      const retriever = store.asRetriever({ k: 1, filter: { "metadata->topic": "food" } });
      expect(idsOf(await retriever.invoke("rocket planet"))).toEqual(["dough"]);
    });

    test("mmr leaves out near duplicates, as a retriever, too", async () => {
      const asked = { k: 2, fetchK: 4, lambda: 0.3, filter: { "metadata->topic": "space" } };
      const first = idsOf(await store.maxMarginalRelevanceSearch("rocket planet astronaut", asked));
      expect(first).toEqual(["rocket", "probe"]);
      const retriever = store.asRetriever({ k: 2, searchType: "mmr", searchKwargs: { fetchK: 4, lambda: 1 } });
      expect(idsOf(await retriever.invoke("rocket planet astronaut"))).toEqual(["rocket", "rocket-again"]);
    });

    test("replaces and deletes documents by id and by filter, and refuses what does not fit", async () => {
      const one = { pageContent: "flour", metadata: { topic: "new" } };
      const ids = await store.addVectors([embed("flour"), embed("butter")], [one, one], { ids: ["x", "y"] });
      expect(ids).toEqual(["x", "y"]);
      await store.addVectors([embed("dough")], [{ pageContent: "replaced", metadata: { topic: "new" } }], { ids: ["x"] });
      const contents = async () =>
        (await store.similaritySearch("dough", 9, { "metadata->topic": "new" })).map((d: Loaded) => d.pageContent);
      expect(await contents()).toEqual(["replaced", "flour"]);
      await store.delete({ ids: ["x"] });
      expect(await contents()).toEqual(["flour"]);
      await store.delete({ filter: { "metadata->topic": "new" } });
      expect(await contents()).toEqual([]);
      await expect(store.addVectors([[1, 2]], [one])).rejects.toThrow(/2 elements.*dimension|dimension/);
      await expect(store.addVectors([], [one])).rejects.toThrow(/as many vectors/);
    });
  });

  describe.each(["index", "table"])("of LlamaIndex, over documents in an %s", (kind) => {
    let store: Loaded;
    let schema: Loaded;
    beforeAll(async () => {
      const { LodestoneVectorStore, ...places } = await adapter("llamaindex");
      schema = await load(join(modules, "@llamaindex/core/schema/dist/index.js"));
      store = new LodestoneVectorStore(placeFor(places, kind, "llamaindex"), { embedModel: {} });
      const nodes = TEXTS.map(({ id, text, year, topic }) => {
        const source = { nodeId: `document of ${id}`, nodeType: schema.ObjectType.DOCUMENT, metadata: {} };
        const relationships = { [schema.NodeRelationship.SOURCE]: source };
        return new schema.TextNode({ id_: id, text, metadata: { year, topic }, embedding: embed(text), relationships });
      });
      expect(await store.add(nodes)).toEqual(TEXTS.map(({ id }) => id));
    });
    const query = (asked: object) =>
      store.query({ queryEmbedding: embed("rocket planet astronaut"), similarityTopK: 2, mode: "default", ...asked });

    test("finds nodes with their text, metadata and source", async () => {
      const { ids, similarities, nodes } = await query({});
      expect([ids, similarities[0]]).toEqual([["rocket", "rocket-again"], expect.closeTo(2, 6)]);
      expect(nodes[0].getContent(schema.MetadataMode.NONE)).toBe("rocket planet astronaut");
      expect(nodes[0].metadata).toEqual({ year: 1969, topic: "space" });
      expect(nodes[0].sourceNode.nodeId).toBe("document of rocket");
    });

    test.each([
      [[{ key: "year", value: 1970, operator: ">=" }], "and", ["rocket-again", "probe"]],
      [[{ key: "topic", value: "space", operator: "!=" }], "and", ["dough"]],
      [[{ key: "year", value: [1950, 2004], operator: "in" }], "and", ["probe", "dough"]],
      [[{ key: "year", value: [1950, 2004], operator: "nin" }], "and", ["rocket", "rocket-again"]],
      [
        [
          { key: "topic", value: "OO", operator: "text_match" },
          { key: "year", value: 1969, operator: "==" },
        ],
        "or",
        ["rocket", "dough"],
      ],
      [[{ key: "topic", operator: "is_empty" }], "and", []],
    ])("filters %j by %s", async (filters, condition, expected) => {
      expect((await query({ similarityTopK: 4, filters: { filters, condition } })).ids).toEqual(expected);
    });

    test("mmr, documents, and what is not offered", async () => {
      expect((await query({ mode: "mmr", mmrThreshold: 0.3 })).ids[1]).not.toBe("rocket-again");
      expect((await query({ docIds: ["document of dough"] })).ids).toEqual(["dough"]);
      await expect(query({ mode: "svm" })).rejects.toThrow(/mode is "svm"/);
      await expect(query({ filters: { filters: [{ key: "a", value: "b", operator: "any" }] } })).rejects.toThrow(/"any"/);
      await store.delete("document of dough");
      expect((await query({ similarityTopK: 9 })).ids).not.toContain("dough");
    });
  });

  test.each([
    ["AI SDK", 'import { embed, embedMany } from "ai";'],
    ["transformers.js", 'import { pipeline } from "@huggingface/transformers";'],
  ])("the recipe for the %s finds what the question is near to", (name, framework) => {
    const [, block = ""] =
      new RegExp(`^## ${name}\n[^#]*?\`\`\`js\n(.*?)\`\`\``, "ms").exec(readFileSync(join(ROOT, "adapters/README.md"), "utf8")) ?? [];
    expect(block).toContain(framework);
    // The framework's model: it answers the vectors that were made beforehand.
    const prepared = {
      "AI SDK": `const model = { specificationVersion: "v3", provider: "prepared", modelId: "words", maxEmbeddingsPerCall: 100,
        supportsParallelCalls: false, doEmbed: async ({ values }) => ({ embeddings: values.map(embedding => vectorOf(embedding)), warnings: [] }) };`,
      "transformers.js": `const pipeline = async () => async (texts) =>
        ({ dims: [texts.length, ${dimension}], data: Float32Array.from(texts.flatMap(vectorOf)) });`,
    }[name];
    // The nearest last: equal scores are in the order of the ids.
    const texts = TEXTS.map(({ text }) => text).reverse();
    const all = [question, ...texts];
    const program = name === "AI SDK" ? block : block.replace(framework, "");
    const given = `const vectorOf = (text) => (${JSON.stringify(Object.fromEntries(all.map((text) => [text, embed(text)])))})[text];
      const texts = ${JSON.stringify(texts)}; const question = ${JSON.stringify(question)}; ${prepared}`;
    writeFileSync(join(folder, `${name}.mjs`), `${given}\n${program}\nconsole.log(JSON.stringify(results.map(({ id }) => id)));`);
    const said = execFileSync(process.execPath, [join(folder, `${name}.mjs`)], { encoding: "utf8" });
    expect(JSON.parse(said).slice(0, 2)).toEqual(["3", "2"]);
  });

  test("the declarations fit the frameworks' own", () => {
    writeFileSync(
      join(folder, "main.ts"),
      `import type { EmbeddingsInterface } from "@langchain/core/embeddings";
      import { IndexDocuments, LodestoneVectorStore, TableDocuments } from "lodestone-adapters/langchain";
      import { LodestoneVectorStore as Nodes } from "lodestone-adapters/llamaindex";
      declare const embeddings: EmbeddingsInterface;
      const store = new LodestoneVectorStore(embeddings, new IndexDocuments());
      store.asRetriever({ filter: { "metadata->year": 1 }, searchType: "mmr", searchKwargs: { fetchK: 3 } });
      new Nodes(new TableDocuments({ url: "", database: "", table: "" })).query;
      // @ts-expect-error: no table is named.
      new TableDocuments({ url: "", database: "" });
      `,
    );
    const options = [
      "--ignoreConfig",
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--module",
      "nodenext",
      "--target",
      "es2022",
      "--types",
      "",
      "main.ts",
    ];
    const said = () => execFileSync(join(ROOT, "node_modules/.bin/tsc"), options, { cwd: folder, encoding: "utf8" });
    expect(said()).toBe("");
  });
});
