/**
 * A search for words, or for words and a vector, over the records of an index: checks the request, scores the words,
 * and asks for vectors what the algorithm wants to know (full-text/hybrid.ts). Everything that depends on the state
 * of the records is taken before anything is asked.
 */
import { checkInteger, checkOptions, checkType, SEARCH_OPTIONS } from "../core/options.ts";
import type { RowColumns } from "../core/row-columns.ts";
import type { RowDirectory } from "../core/row-directory.ts";
import { scoreRows } from "../core/score-rows.ts";
import { type SearchPlan, toQuery, toSearchPlan, toSearchResult } from "../core/search-input.ts";
import type { HeldVectors, TextExplanation, TextSearch, TextSearchHit, TextSearchResult } from "../core/text-search.ts";
import type { ShardSearch, VectorShard } from "../core/vector-shard.ts";
import { inWords, quoted, quotedNames } from "../errors/value-in-words.ts";
import { hasBit } from "../filter/bit-mask.ts";
import { type BestRow, BestRows } from "../full-text/best-rows.ts";
import { FUSION_METHODS, type Fusion } from "../full-text/fusion.ts";
import { type Answer, type Ask, type HybridSource, searchHybrid } from "../full-text/hybrid.ts";
import { parseQuery, queryTerms, rarestTerms } from "../full-text/query.ts";
import type { Term } from "../full-text/terms.ts";
import type { TextView } from "../full-text/text-index.ts";
import { type ScoreOptions, scoreTexts, type TextContribution, type TextScores, type TextTarget } from "../full-text/text-scores.ts";

/** The records as they are when the search begins. */
export interface RecordState extends HybridSource {
  readonly columns: RowColumns;
  readonly rows: RowDirectory;
  /** Rows that hold a record: maskWords(capacity) words. */
  readonly live: Uint32Array;
  /** How many. */
  readonly records: number;
  readonly view: TextView;
  /** Columns with words. */
  readonly names: readonly string[];
  idOf(row: number): string;
}

const OPTIONS = ["text", "vector", "fusion", "target", "fuzziness", "prefix", "stemmer", "explain"] as const;

/** A request, checked. */
interface TextPlan {
  readonly plan: SearchPlan;
  readonly mask: Uint32Array;
  /** undefined: every record is found. */
  readonly terms: readonly Term[] | undefined;
  readonly targets: readonly TextTarget[];
  readonly scoring: ScoreOptions;
  readonly fusion: Fusion;
  readonly vector: Float32Array | undefined;
  readonly explain: boolean;
}

interface Step extends Ask {
  readonly query: Float32Array;
  readonly search: ShardSearch;
}
type Steps = Generator<Step, TextSearchResult, Answer>;

export function searchShard(request: TextSearch, state: RecordState, shard: VectorShard): TextSearchResult {
  const steps = searchSteps(request, state, shard.dimension);
  for (let step = steps.next(); ; ) {
    if (step.done === true) return step.value;
    const { query, search, k, rows } = step.value;
    const nearest = k === 0 ? noNearest() : shard.search(query, search)[0]!;
    step = steps.next({ ...nearest, wanted: scoreRows(shard, query, rows, search.similarity) });
  }
}

/** @param vectors  asked for the first time before this returns. */
export async function searchHeld(request: TextSearch, state: RecordState, vectors: HeldVectors): Promise<TextSearchResult> {
  const steps = searchSteps(request, state, vectors.dimension);
  for (let step = steps.next(); ; ) {
    if (step.done === true) return step.value;
    const { query, search, k, rows } = step.value;
    // Together: the threads have both from the start.
    const [nearest, wanted] = await Promise.all([
      k === 0 ? noNearest() : vectors.search(query, search),
      vectors.scoreRows(query, rows, search.similarity),
    ]);
    step = steps.next({ ...nearest, wanted });
  }
}

function* searchSteps(request: TextSearch, state: RecordState, dimension: number): Steps {
  const found = readRequest(request, state, dimension);
  const { plan, mask, terms, targets, scoring, fusion, vector } = found;
  const { k: size, similarity, plan: kind } = plan.shardSearch;
  const words = finish(scoreTexts(state.view, targets, terms ?? [], scoring));
  if (vector === undefined) {
    const { totalCount, hits } = bestByWords(found, state, words);
    return resultOf(found, state, words, totalCount, hits, ({ score }, own) => ({ text: { score, words: own } }));
  }
  const text = { rows: words.documents.map((document) => state.view.rowOf(document)), scores: words.scores };
  const steps = searchHybrid({ source: state, fusion, text, mask, boosts: undefined, size });
  let step = steps.next();
  while (step.done !== true) {
    const { k, rows } = step.value;
    step = steps.next(yield { query: vector, search: { k, similarity, mask, plan: kind }, k, rows });
  }
  const { totalCount, hits } = step.value;
  return resultOf(found, state, words, totalCount, hits, (hit, own) => ({
    ...(hit.vector && { vector: hit.vector }),
    ...(hit.text && { text: { ...hit.text, words: own } }),
  }));
}

function bestByWords(
  { plan, mask, terms }: TextPlan,
  state: RecordState,
  { documents, scores }: TextScores,
): { totalCount: number; hits: BestRow[] } {
  const best = new BestRows(plan.shardSearch.k, state);
  let totalCount = 0;
  const add = (row: number, score: number): void => {
    if (!hasBit(mask, row)) return;
    totalCount++;
    best.add(row, score);
  };
  if (terms === undefined) for (let row = 0; row < state.capacity; row++) add(row, 0);
  else for (let i = 0; i < documents.length; i++) add(state.view.rowOf(documents[i]!), scores[i]!);
  return { totalCount, hits: best.inOrder() };
}

function resultOf<Hit extends { readonly row: number; readonly score: number }>(
  { plan, terms, targets, scoring, explain }: TextPlan,
  { view, rows, columns, idOf }: RecordState,
  { documents }: TextScores,
  totalCount: number,
  hits: readonly Hit[],
  explanationOf: (hit: Hit, words: readonly TextContribution[]) => TextExplanation,
): TextSearchResult {
  const results: TextSearchHit[] = hits.map(({ row, score }) => ({ id: idOf(row), score }));
  if (explain) {
    const byRow = new Map(hits.map(({ row }): [number, TextContribution[]] => [row, []]));
    const explained = new Map<number, TextContribution[]>();
    for (const document of documents) {
      const words = byRow.get(view.rowOf(document));
      if (words !== undefined) explained.set(document, words);
    }
    finish(scoreTexts(view, targets, terms ?? [], { ...scoring, explained }));
    hits.forEach((hit, i) => {
      results[i]!.explanation = explanationOf(hit, byRow.get(hit.row)!);
    });
  }
  return toSearchResult(totalCount, results, plan, rows, columns);
}

/** @throws {TypeError | RangeError} naming the member; as toSearchPlan. */
function readRequest(request: TextSearch, state: RecordState, dimension: number): TextPlan {
  checkOptions(request, [...OPTIONS, ...SEARCH_OPTIONS.filter((name) => name !== "cosine")]);
  const { text, vector, fusion, target, fuzziness = 1, prefix = false, stemmer, explain = false, ...options } = request;
  const plan = toSearchPlan(options, state.rows, state.columns);
  checkType(typeof text === "string", "text", text, "a string");
  if (fuzziness !== 0 && fuzziness !== 1 && fuzziness !== 2)
    throw new RangeError(`fuzziness is ${inWords(fuzziness)}; expected 0, 1 or 2.`);
  checkType(typeof prefix === "boolean", "prefix", prefix, "true or false");
  checkType(typeof explain === "boolean", "explain", explain, "true or false");
  checkType(stemmer === undefined || typeof stemmer === "function", "stemmer", stemmer, "a function of a word");
  const targets = readTargets(target ?? state.names, state.names);
  const terms = queryTerms(parseQuery(text, "words"), { fuzziness, prefix });
  const columns = targets.map(({ column }) => column);
  const { similarity, mask } = plan.shardSearch;
  return {
    plan,
    mask: mask === undefined ? state.live : state.live.map((word, i) => word & (mask[i] ?? 0)),
    terms: text === "" ? undefined : rarestTerms(terms, state.view, columns),
    targets,
    scoring: { records: state.records, stemmer },
    fusion: readFusion(fusion),
    vector: vector === undefined ? undefined : toQuery(vector, dimension, similarity, "vector"),
    explain,
  };
}

function readTargets(target: NonNullable<TextSearch["target"]>, names: readonly string[]): TextTarget[] {
  checkType(Array.isArray(target), "target", target, "an array of columns");
  const targets = new Map<string, TextTarget>();
  target.forEach((item: NonNullable<TextSearch["target"]>[number], i) => {
    const { column, weight = 1 } = typeof item === "string" ? { column: item } : (item ?? {});
    if (typeof column !== "string") throw new TypeError(`target[${i}] is ${inWords(item)}; expected a column, or { column, weight }.`);
    if (!names.includes(column))
      throw new TypeError(`target[${i}]: column ${quoted(column)} has no words; those that have are ${quotedNames(names, "none")}.`);
    if (typeof weight !== "number" || !(weight > 0 && weight < Number.POSITIVE_INFINITY))
      throw new RangeError(`target[${i}].weight is ${inWords(weight)}; expected a number above 0.`);
    if (targets.has(column)) throw new RangeError(`target[${i}]: column ${quoted(column)} is given twice.`);
    targets.set(column, { column, weight });
  });
  return [...targets.values()];
}

function readFusion(fusion: TextSearch["fusion"] = {}): Fusion {
  checkOptions(fusion, ["method", "vectorWeight", "k"], "fusion");
  const { method = "standardized", vectorWeight = 0.5, k = 60 } = fusion;
  if (!FUSION_METHODS.includes(method))
    throw new TypeError(`fusion.method is ${inWords(method)}; expected ${quotedNames(FUSION_METHODS, "none")}.`);
  if (typeof vectorWeight !== "number" || !(vectorWeight >= 0 && vectorWeight <= 1))
    throw new RangeError(`fusion.vectorWeight is ${inWords(vectorWeight)}; expected a number from 0 to 1.`);
  checkInteger("fusion.k", k, 1);
  return { method, vectorWeight, k };
}

const noNearest = (): Pick<Answer, "rows" | "scores"> => ({ rows: [], scores: new Float64Array(0) });

/** Runs work that could be done in steps at once. */
export function finish<Result>(work: Generator<unknown, Result, undefined>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
