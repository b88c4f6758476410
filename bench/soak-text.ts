/**
 * npm run soak:text -- [--minutes 60] [--seed N] [--records 1200] [--parts N]: one real search store over a real record
 * store, or with --parts as many servers that hold a search part each (needs PostgreSQL), with
 * random inserts, updates, deletes, changes of columns' languages, and restarts from snapshots. Between them random
 * searches for words, and for words with a vector: fuzzy, prefixes, languages, weights, filters, boosters, pages. Every
 * answer is compared with the float64 oracle of the tests to the last bit: ids, order, scores, totalCount. Ends with the
 * number of comparisons, or at the first difference, with its seed.
 */
import fc from "fast-check";
import { parseQuery, queryTerms } from "../dist/full-text/query.js";
import { loadStemmers } from "../dist/full-text/stemmers.js";
import type { TextSearchRequest } from "../src/search/text/text-request.ts";
import { referenceSearch, SIMILARITIES } from "../test/reference.ts";
import { someTexts } from "../test/support/random-texts.ts";
import { fusedScores, inOrder, type Texts, textScores } from "../test/support/text-oracle.ts";
import { seededRandom } from "./data.mjs";
import { readOptions } from "./read-options.mjs";
import { inParts, oneStore } from "./soak-text-services.ts";

const values = readOptions(import.meta.url, {
  minutes: { type: "string", default: "60" },
  seed: { type: "string", default: String(Date.now() % 1e9) },
  /** At least 1,000: smaller branches have no snapshots. */
  records: { type: "string", default: "1200" },
  parts: { type: "string", default: "1" },
});
const COLUMNS = ["title", "tags"] as const;
const LANGUAGES = ["none", "english", "german"] as const;
const QUERIES_A_ROUND = 6;
const parts = Number(values.parts);
/** Servers need seconds to start. */
const ROUNDS_A_RESTART = parts > 1 ? 40 : 10;
const deadline = Date.now() + Number(values.minutes) * 60_000;

const seed = Number(values.seed);
const random = seededRandom(seed);
const upTo = (most: number): number => Math.floor(random() * most);
const pick = <T>(list: readonly T[]): T => list[upTo(list.length)]!;
/** Texts are taken from a pool: making them one by one takes most of the time. */
const pool = fc
  .sample(someTexts, { seed, numRuns: 3_000 })
  .map(({ title, tags }) => ({ title, tags: tags?.filter((tag) => tag !== null) ?? null }));
const stemmers = await loadStemmers(["english", "german"]);
const stemmerOf = (language: (typeof LANGUAGES)[number]) => (language === "none" ? undefined : stemmers.get(language));

interface Item {
  readonly texts: Texts;
  readonly price: number;
  readonly embedding: readonly number[] | null;
}
const item = (): Item => ({
  texts: pick(pool),
  price: upTo(10),
  embedding: random() < 0.1 ? null : Array.from({ length: 4 }, () => upTo(7) - 3 + (random() < 0.5 ? 0.5 : 0)),
});
const vector = (): number[] => [upTo(7) - 3, upTo(7) - 3, upTo(7) - 3, upTo(7) - 2.75];
const wanted = Number(values.records);
const model = new Map<string, Item>();
const languages: Record<(typeof COLUMNS)[number], (typeof LANGUAGES)[number]> = { title: "none", tags: "none" };
const counts = { changes: 0, words: 0, hybrid: 0, results: 0, restarts: 0 };

const service = parts > 1 ? await inParts(parts) : await oneStore();

async function write(ids: ReadonlySet<string>, deleted: ReadonlySet<string>): Promise<void> {
  const operations = [];
  for (const id of ids) {
    const before = model.get(id);
    if (before !== undefined && random() < 0.5) {
      const texts = pick(pool);
      model.set(id, { ...before, texts });
      operations.push({ update: { table: "items", id, fields: texts } });
    } else {
      const { texts, ...rest } = item();
      model.set(id, { texts, ...rest });
      operations.push({ insert: { table: "items", record: { id, ...texts, ...rest } } });
    }
  }
  for (const id of deleted) {
    model.delete(id);
    operations.push({ delete: { table: "items", id } });
  }
  counts.changes += operations.length;
  for (let i = 0; i < operations.length; i += 1_000) await service.write(operations.slice(i, i + 1_000));
}

async function change(): Promise<void> {
  const ids = [...model.keys()];
  const deleted = new Set(Array.from({ length: upTo(30) }, () => pick(ids)));
  const written = new Set(Array.from({ length: upTo(30) }, () => pick(ids)).filter((id) => !deleted.has(id)));
  for (let left = wanted - model.size + deleted.size + upTo(20) - 10; left > 0; left--) written.add(`r${upTo(1e6)}`);
  await write(written, new Set([...deleted].filter((id) => !written.has(id))));
  if (random() < 0.1) {
    const column = pick(COLUMNS);
    languages[column] = pick(LANGUAGES);
    await service.setLanguage(column, languages[column]);
  }
}

/** A filter, and what it selects. */
const FILTERS: readonly (readonly [object, (item: Item, id: string) => boolean])[] = [
  [{}, () => true],
  [{ price: { $lt: 3 } }, ({ price }) => price < 3],
  [{ price: 99 }, () => false],
  [{ id: { $startsWith: "r1" } }, (_, id) => id.startsWith("r1")],
  [{ $exists: "title" }, ({ texts }) => texts.title !== null],
];

async function compare(): Promise<void> {
  const [filter, passes] = pick(FILTERS);
  const query = [pick(pool).title ?? "garden", pick(pool).title ?? "the 北京"]
    .join(" ")
    .split(" ")
    .slice(0, 1 + upTo(5))
    .join(" ");
  const fuzziness = upTo(3);
  const prefix = random() < 0.3;
  const language = random() < 0.5 ? undefined : pick(LANGUAGES);
  const factor = pick([0, 0.05]);
  const targets = COLUMNS.map((column) => ({ column, weight: pick([1, 2.5]), stemmer: stemmerOf(language ?? languages[column]) }));
  const page = { size: 1 + upTo(40), offset: pick([0, 0, 7, 160]) };
  const request = {
    query: query.trim() === "" ? "garden" : query,
    fuzziness,
    prefix: prefix ? ("phrase" as const) : ("disabled" as const),
    target: targets.map(({ column, weight }) => ({ column, weight })),
    highlight: { enabled: false },
    filter: filter as never,
    page,
    ...(language !== undefined && { language }),
    ...(factor > 0 && { boosters: [{ numericBooster: { column: "price", factor } }] }),
  };
  const terms = queryTerms(parseQuery(request.query, "words"), { fuzziness, prefix });
  const texts = new Map([...model].map(([id, { texts }]) => [id, texts]));
  const ids = [...model].filter(([id, found]) => passes(found, id)).map(([id]) => id);
  const words = new Map([...textScores(texts, targets, terms)].filter(([id]) => passes(model.get(id)!, id)));
  const boostOf = (id: string): number => factor * model.get(id)!.price;
  if (random() < 0.5) {
    counts.words++;
    await check(request, inOrder([...words].map(([id, score]) => [id, score + boostOf(id)])));
    return;
  }
  counts.hybrid++;
  const near = vector();
  const similarity = pick(SIMILARITIES);
  const fusion = { method: pick(service.methods), vectorWeight: pick([0, 0.2, 0.5, 0.9, 1]), k: pick([1, 60]) };
  const vectors = ids.flatMap((id) => {
    const { embedding } = model.get(id)!;
    return embedding === null ? [] : [[id, embedding] as const];
  });
  const { results } = referenceSearch(vectors, near, { k: vectors.length, similarity });
  await check(
    { ...request, vector: { column: "embedding", queryVector: near, similarityFunction: similarity }, fusion },
    fusedScores(ids, words, new Map(results.map(({ id, score }) => [id, score])), fusion, boostOf),
  );
}

async function check(
  request: TextSearchRequest & { page: { size: number; offset: number } },
  expected: readonly (readonly [string, number])[],
): Promise<void> {
  const where = `seed ${seed}, after ${counts.changes} changes: ${JSON.stringify(request)}, columns ${JSON.stringify(languages)}`;
  const got = await service.search(request);
  if (got.totalCount !== expected.length) throw new Error(`${where}: totalCount ${got.totalCount}; expected ${expected.length}`);
  const { offset, size } = request.page;
  const page = expected.slice(offset, offset + size);
  if (got.records.length !== page.length) throw new Error(`${where}: ${got.records.length} results; expected ${page.length}`);
  page.forEach(([id, score], i) => {
    counts.results++;
    const found = got.records[i]!;
    if (found.id !== id || !Object.is(found.xata.score, score))
      throw new Error(`${where}: result ${i} is ${found.id} ${found.xata.score}; expected ${id} ${score}`);
  });
}

/** A restart must read its snapshot, and then changes alone. */
let readsBefore: number | undefined;
const readAgain = (): string => {
  const reads = service.wholeReads();
  return reads === undefined ? "" : ` (${reads - (readsBefore ?? 0)} of them read the records again)`;
};
const summary = (): string =>
  `${counts.changes} changes, ${counts.restarts} restarts${readAgain()}, ` +
  `${counts.words} searches for words and ${counts.hybrid} for words and vectors, ${counts.results} results compared, no difference`;

try {
  console.log(`seed ${seed}, until ${new Date(deadline).toISOString()}`);
  await service.createTable([
    { name: "title", type: "text" },
    { name: "tags", type: "multiple" },
    { name: "price", type: "float" },
    { name: "embedding", type: "vector", vector: { dimension: 4 } },
  ]);
  await write(new Set(Array.from({ length: wanted }, () => `r${upTo(1e6)}`)), new Set());
  await compare();
  readsBefore = service.wholeReads();
  let lastReport = Date.now();
  for (let round = 1; Date.now() < deadline; round++) {
    await change();
    for (let i = 0; i < QUERIES_A_ROUND; i++) await compare();
    if (round % ROUNDS_A_RESTART === 0) {
      await service.restart(change);
      counts.restarts++;
    }
    if (Date.now() - lastReport > 30_000) {
      lastReport = Date.now();
      console.log(summary());
    }
  }
  console.log(`done: ${summary()}`);
} finally {
  await service.close();
}
