/** Semantic search over texts, entirely in the page; the vectors were made beforehand (make-vectors.mjs). */
import { ParallelVectorIndex } from "lodestone";
import texts from "./texts.json";
import vectors from "./vectors.json";
import { words } from "./words.js";

/** The mean of the words' vectors; undefined when none of them is known. */
function vectorOf(text) {
  const known = words(text).filter((word) => Object.hasOwn(vectors.words, word));
  if (known.length === 0) return undefined;
  return Float32Array.from({ length: vectors.dimension }, (_, d) => known.reduce((sum, word) => sum + vectors.words[word][d], 0));
}

// One shard: searches run in a worker, and typing never waits for them.
const index = await ParallelVectorIndex.create({ dimension: vectors.dimension, shards: 1 });
for (const [i, text] of texts.entries()) await index.upsert(String(i), vectorOf(text));

let running = new AbortController();

async function show() {
  running.abort();
  running = new AbortController();
  const query = vectorOf(document.querySelector("#query").value);
  try {
    const { results } =
      query === undefined ? { results: [] } : await index.search(query, { k: 5, scoreThreshold: 1.3, signal: running.signal });
    document.querySelector("#results").replaceChildren(
      ...results.map(({ id }) => {
        const item = document.createElement("li");
        item.textContent = texts[Number(id)];
        return item;
      }),
    );
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

document.querySelector("#query").addEventListener("input", show);
await show();
