/**
 * How well the search for words ranks, on collections with judged queries: nDCG@10, MAP and recall@100 beside
 * MiniSearch, Orama and SQLite's FTS5 on the same texts.
 *
 *   npm run bench:relevance -- --collection FOLDER [--collection FOLDER ...]
 *
 * A folder has documents (*.all*), queries (*.qry) and judgements (*rel*) in the format of the SMART collections
 * (Cranfield, CISI, Medline, NPL …; many public repositories have them), or in TREC's (<doc>, <top>, qrels). No
 * collection is part of this repository.
 */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
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
    const peer = await textPeer("lodestone", options);
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

function readCollection(folder) {
  const read = (pattern) => {
    const name = readdirSync(folder).find((file) => pattern.test(file));
    if (name === undefined) throw new Error(`${folder} has no file like ${pattern}.`);
    return readFileSync(join(folder, name), "latin1");
  };
  const documents = readRecords(read(/\.all/i));
  const asked = readRecords(read(/qry|topics/i));
  // SMART's judgements count queries by their order, whatever their numbers are.
  const isTrec = asked.some(({ isTrec }) => isTrec);
  const relevant = new Map();
  for (const line of read(/rel/i).split("\n")) {
    const fields = line.trim().split(/\s+/);
    if (fields.length < 2) continue;
    // `query document grade`, or with a second field that is always 0.
    const [query, document, grade] =
      fields.length === 4 && /^0$/.test(fields[1])
        ? [fields[0], fields[2], fields[3]]
        : [fields[0], fields[1], fields.length === 3 ? fields[2] : 1];
    if (Number(grade) <= 0) continue;
    const id = isTrec ? query : String(Number(query));
    relevant.set(id, (relevant.get(id) ?? new Set()).add(isTrec ? document : String(Number(document))));
  }
  const queries = asked.map(({ id, title, text }, i) => ({ id: isTrec ? id : String(i + 1), text: `${title} ${text}`.trim() }));
  return { documents, queries: queries.filter(({ id }) => relevant.has(id)), relevant };
}

function readRecords(text) {
  if (/<doc>|<top>/i.test(text)) {
    return text
      .split(/<(?:doc|top)>/i)
      .slice(1)
      .map((record) => {
        const part = (name) => new RegExp(`<${name}>([^]*?)(?:</${name}>|<|$)`, "i").exec(record)?.[1].trim() ?? "";
        return { isTrec: true, id: part("docno") || part("num").replace(/\D/g, ""), title: part("title"), text: part("text") };
      });
  }
  return text
    .split(/^\.I\s+/m)
    .slice(1)
    .map((record) => {
      const [first, ...parts] = record.split(/^\.([A-Z])\s*$/m);
      const fields = {};
      for (let i = 0; i < parts.length; i += 2) fields[parts[i]] = `${fields[parts[i]] ?? ""} ${parts[i + 1].trim()}`.trim();
      return { id: String(Number.parseInt(first, 10)), title: fields.T ?? "", text: fields.W ?? "" };
    });
}
