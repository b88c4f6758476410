/**
 * Collections of texts with queries and judgements, for bench:relevance: in the format of SMART (Cranfield, CISI,
 * Medline …), of TREC (<doc>, <top>, qrels), or of NPL (records that end in a line with a slash).
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * @returns `documents` {id, title, text}; `queries` {id, text}, those with a relevant document alone; `relevant`: ids
 *     of documents by the id of a query.
 */
export function readCollection(folder) {
  const read = (pattern) => {
    const name = readdirSync(folder).find((file) => pattern.test(file));
    if (name === undefined) throw new Error(`${folder} has no file like ${pattern}.`);
    return readFileSync(join(folder, name), "latin1");
  };
  const documents = readRecords(read(/\.all|doc-text/i));
  const asked = readRecords(read(/qry|topics|query-text/i));
  // SMART's judgements count queries by their order, whatever their numbers are.
  const isTrec = asked.some(({ isTrec }) => isTrec);
  const relevant = new Map();
  for (const [query, document] of readJudgements(read(/rel|rlv/i))) {
    const id = isTrec ? query : String(Number(query));
    relevant.set(id, (relevant.get(id) ?? new Set()).add(isTrec ? document : String(Number(document))));
  }
  const queries = asked.map(({ id, title, text }, i) => ({ id: isTrec ? id : String(i + 1), text: `${title} ${text}`.trim() }));
  return { documents, queries: queries.filter(({ id }) => relevant.has(id)), relevant };
}

/** A line with nothing but a slash ends a record. */
const SLASH = /^\s*\/\s*$/m;

function readJudgements(text) {
  if (SLASH.test(text)) {
    return text.split(SLASH).flatMap((record) => {
      const [query, ...documents] = record.match(/\d+/g) ?? [];
      return documents.map((document) => [query, document]);
    });
  }
  return text.split("\n").flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    if (fields.length < 2) return [];
    // `query document grade`, or with a second field that is always 0.
    const [query, document, grade] =
      fields.length === 4 && fields[1] === "0"
        ? [fields[0], fields[2], fields[3]]
        : [fields[0], fields[1], fields.length === 3 ? fields[2] : 1];
    return Number(grade) > 0 ? [[query, document]] : [];
  });
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
  if (SLASH.test(text)) {
    return text.split(SLASH).flatMap((record) => {
      const [, id, words] = /^\s*(\d+)\s+([\s\S]*)$/.exec(record) ?? [];
      return id === undefined ? [] : [{ id, title: "", text: words.trim() }];
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
