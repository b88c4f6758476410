/** The data sets of `npm run bench`, and what is measured on each. Kinds: data.mjs. */

const ALL = ["cosineSimilarity", "l2", "l1"];
const LARGE = { rows: 100_000, dimension: 768 };

const set = (kind, options) => ({
  kind,
  similarities: ["cosineSimilarity"],
  ...options,
  name: `${kind}, ${options.rows} × ${options.dimension}`,
});

/** With a spectrum, queries differ: some take three times as long as others. So more of them are asked, each once. */
const SPECTRUM = { single: 75, describe: true };
/** What is measured on data like real text. */
const LIKE_LSA = { ...SPECTRUM, similarities: ALL, filters: [0.01], many: true, shards: true };

export const SETS = [
  set("steep spectrum", { ...LARGE, ...SPECTRUM, similarities: ALL, filters: [0.001, 0.01, 0.1, 0.5], many: true, shards: true }),
  set("flat spectrum", { ...LARGE, ...LIKE_LSA }),
  set("random", { ...LARGE, similarities: ALL, filters: [0.001, 0.01, 0.1, 0.5], many: true, shards: true }),
  set("256 clusters", { ...LARGE, similarities: ALL, many: true }),
  set("common mean", { ...LARGE, similarities: ALL }),
  ...["steep spectrum", "random", "256 clusters"].flatMap((kind) => [
    set(kind, { rows: 10_000, dimension: 1536 }),
    set(kind, { rows: 100_000, dimension: 128 }),
  ]),
  // Here the fixed cost of a search, before its first row, matters.
  ...["steep spectrum", "random"].flatMap((kind) =>
    [10_000, 1_000].flatMap((rows) => [128, 384, 768].map((dimension) => set(kind, { rows, dimension, many: rows === 10_000 }))),
  ),
  ...["all equal", "within one ulp", "one huge coordinate", "constant vectors", "rows of zeros"].map((kind) =>
    set(kind, { rows: 20_000, dimension: 768, similarities: ALL }),
  ),
];

/**
 * What is measured on files of real text.
 * @param found  of findLsaSets (lsa-files.mjs).
 */
export const lsaSet = (found) => set(found.kind, { ...found, ...LIKE_LSA });
