/**
 * What bench:text and bench:relevance compare: the text index of the server and of the library, and what people
 * use otherwise. Each as its own documentation shows it, over documents {id, group, title, text}.
 */
import { existsSync } from "node:fs";
import { parseQuery, queryTerms } from "../dist/full-text/query.js";
import { loadStemmer } from "../dist/full-text/stemmers.js";
import { TextIndex } from "../dist/full-text/text-index.js";
import { scoreTexts } from "../dist/full-text/text-scores.js";

const PEERS = new URL("library-peers/", import.meta.url);
const load = (path) => import(new URL(`node_modules/${path}`, PEERS).href);

/** In the order of the tables. FTS5 needs a Node with node:sqlite. */
export const TEXT_PEERS = ["MiniSearch", "Orama", "SQLite FTS5", "SQLite FTS5, porter"];

/** Runs a generator of steps to its end. */
function finish(work) {
  let step = work.next();
  while (step.done !== true) step = work.next();
  return step.value;
}

const TARGETS = [
  { column: "title", weight: 1 },
  { column: "text", weight: 1 },
];

const MAKERS = {
  async Lodestone({ fuzziness = 1, language, prefix = false }) {
    const stemmer = language === undefined ? undefined : await loadStemmer(language);
    const index = new TextIndex();
    for (const { column } of TARGETS) index.addColumn(column);
    const ids = [];
    const groups = [];
    return {
      async add(documents) {
        for (const { id, group, title, text } of documents) {
          finish(
            index.set(
              ids.length,
              new Map([
                ["title", title],
                ["text", text],
              ]),
            ),
          );
          ids.push(id);
          groups.push(group);
        }
      },
      search: search({ fuzziness, prefix }),
      searchWith: (settings) => search({ fuzziness: 0, prefix: false, ...settings }),
      memoryBytes: () => index.memoryBytes,
    };

    function search({ fuzziness, prefix, group }) {
      return async (query, limit) => {
        const view = index.view();
        const terms = queryTerms(parseQuery(query, "words"), { fuzziness, prefix });
        const { documents, scores } = finish(scoreTexts(view, TARGETS, terms, { records: ids.length, stemmer }));
        const best = [];
        let least = 0;
        for (let i = 0; i < documents.length; i++) {
          const score = scores[i];
          const row = view.rowOf(documents[i]);
          if (score < least || (group !== undefined && groups[row] !== group)) continue;
          best.push({ row, score });
          if (best.length < 4 * limit + 64) continue;
          best.sort((a, b) => b.score - a.score || a.row - b.row).length = limit;
          least = best[limit - 1].score;
        }
        return best
          .sort((a, b) => b.score - a.score || a.row - b.row)
          .slice(0, limit)
          .map(({ row }) => ids[row]);
      };
    }
  },

  async MiniSearch({ fuzziness = 0, prefix = false }) {
    const { default: MiniSearch } = await load("minisearch/dist/es/index.js");
    const index = new MiniSearch({
      fields: ["title", "text"],
      storeFields: ["group"],
      searchOptions: { fuzzy: fuzziness === 0 ? false : fuzziness, prefix },
    });
    return {
      add: async (documents) => index.addAll(documents),
      search: async (query, limit) =>
        index
          .search(query)
          .slice(0, limit)
          .map(({ id }) => id),
      searchWith:
        ({ fuzziness = false, prefix = false, group }) =>
        async (query, limit) => {
          const filter = group === undefined ? {} : { filter: (result) => result.group === group };
          return index.search(query, { fuzzy: fuzziness, prefix, ...filter }).slice(0, limit);
        },
    };
  },

  async Orama({ fuzziness = 0, language = "english" }) {
    const { create, insertMultiple, search } = await load("@orama/orama/dist/esm/index.js");
    const stemming = { stemming: true, stemmer: await loadStemmer(language), language };
    const database = create({ schema: { title: "string", text: "string", group: "number" }, components: { tokenizer: stemming } });
    return {
      async add(documents) {
        await insertMultiple(
          database,
          documents.map((document) => ({ ...document, id: String(document.id) })),
          5_000,
        );
      },
      async search(query, limit) {
        const { hits } = await search(database, { term: query, limit, tolerance: fuzziness, threshold: 1 });
        return hits.map(({ id }) => id);
      },
      // It always finds beginnings, too, unless it is told "exact".
      searchWith:
        ({ fuzziness, prefix, group }) =>
        async (query, limit) =>
          search(database, {
            term: query,
            limit,
            ...(group !== undefined && { where: { group: { eq: group } } }),
            threshold: 1,
            exact: prefix !== true && fuzziness === undefined,
            tolerance: fuzziness ?? 0,
          }),
    };
  },

  "SQLite FTS5": () => fts5("unicode61"),
  "SQLite FTS5, porter": () => fts5("porter unicode61"),
};

async function fts5(tokenizer) {
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(":memory:");
  database.exec(`CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, kind UNINDEXED, title, text, tokenize = '${tokenizer}')`);
  const insert = database.prepare("INSERT INTO texts VALUES (?, ?, ?, ?)");
  const select = database.prepare("SELECT id FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?");
  const selectOfKind = database.prepare("SELECT id FROM texts WHERE texts MATCH ? AND kind = ? ORDER BY rank LIMIT ?");
  // As it stands, with the words that it repeats: FTS5 adds them up.
  const matching = (query) => (query.match(/[\p{L}\p{N}\p{M}]+/gu) ?? []).map((word) => `"${word}"`).join(" OR ");
  return {
    async add(documents) {
      database.exec("BEGIN");
      for (const { id, group, title, text } of documents) insert.run(id, group ?? null, title, text);
      database.exec("COMMIT");
    },
    search: async (query, limit) => select.all(matching(query), limit).map(({ id }) => id),
    /** It knows no edits; prefixes it does. */
    searchWith: ({ fuzziness, prefix, group }) =>
      fuzziness !== undefined
        ? undefined
        : async (query, limit) => {
            const words = prefix === true ? `${matching(query)} *` : matching(query);
            return group === undefined ? select.all(words, limit) : selectOfKind.all(words, group, limit);
          },
    memoryBytes: () => {
      const { page_count: pages } = database.prepare("PRAGMA page_count").get();
      const { page_size: bytes } = database.prepare("PRAGMA page_size").get();
      return pages * bytes;
    },
  };
}

export async function textPeer(name, options) {
  if (name !== "Lodestone" && !name.startsWith("SQLite") && !existsSync(new URL("node_modules/", PEERS))) {
    throw new Error("First run `npm ci --prefix bench/library-peers --ignore-scripts`.");
  }
  return MAKERS[name](options);
}
