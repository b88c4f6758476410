/**
 * How well the search for words ranks, on collections with judged queries: nDCG@10, MAP and recall@100 beside
 * MiniSearch, Orama and SQLite's FTS5 on the same texts.
 *
 *   npm run bench:relevance -- --collection FOLDER [--collection FOLDER ...]
 *
 * A folder has documents (*.all*), queries (*.qry) and judgements (*rel*) in the format of the SMART collections
 * (Cranfield, CISI, Medline …; many public repositories have them), of NPL (doc-text, query-text, rlv-ass) or of TREC (<doc>, <top>, qrels). No
 * collection is part of this repository.
 */
import { basename } from "node:path";
import { readCollection } from "./judged-collection.mjs";
import { readOptions } from "./read-options.mjs";
import { TEXT_PEERS, textPeer } from "./text-contenders.mjs";

const options = readOptions(import.meta.url, { collection: { type: "string", multiple: true, default: [] } });
const CUT = 10;
const DEPTH = 100;

for (const folder of options.collection) {
  const { documents, queries, relevant } = readCollection(folder);
  console.log(`\n${basename(folder)}: ${documents.length} documents, ${queries.length} judged queries\n`);
  console.log("| | nDCG@10 | MAP | recall@100 |\n|---|---|---|---|");
  for (const [name, options] of [
    ["Lodestone, as it is", {}],
    ["Lodestone, fuzziness 0", { fuzziness: 0 }],
    ["Lodestone, English", { language: "english" }],
    ["Lodestone, English, fuzziness 0", { language: "english", fuzziness: 0 }],
  ]) {
    const peer = await textPeer("Lodestone", options);
    await report(name, peer);
  }
  for (const name of TEXT_PEERS) await report(name, await textPeer(name, {}));

  async function report(name, peer) {
    await peer.add(documents);
    const sums = { ndcg: 0, map: 0, recall: 0 };
    for (const { id, text } of queries) {
      const found = await peer.search(text, documents.length);
      const measured = measure(found, relevant.get(id));
      for (const key of Object.keys(sums)) sums[key] += measured[key] / queries.length;
    }
    console.log(
      `| ${name} | ${Object.values(sums)
        .map((value) => value.toFixed(3))
        .join(" | ")} |`,
    );
  }
}

/** @param found  ids, best first. @param wanted  ids. */
function measure(found, wanted) {
  let gain = 0;
  let precisions = 0;
  let hits = 0;
  let early = 0;
  found.forEach((id, rank) => {
    if (!wanted.has(id)) return;
    hits++;
    precisions += hits / (rank + 1);
    if (rank < CUT) gain += 1 / Math.log2(rank + 2);
    if (rank < DEPTH) early++;
  });
  let ideal = 0;
  for (let rank = 0; rank < Math.min(CUT, wanted.size); rank++) ideal += 1 / Math.log2(rank + 2);
  return { ndcg: gain / ideal, map: precisions / wanted.size, recall: early / wanted.size };
}
