/**
 * A search for words in the tables of a branch, inside the worker. Everything that depends on the state of the
 * branch is taken at once, when it begins: the index, filters, boosts. So however many steps the scoring takes, its
 * answer is that of one position of the feed.
 */
import { tooLarge } from "../../budget/memory-budget.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { clearBit, hasBit } from "../../filter/bit-mask.ts";
import { compileToMask } from "../../filter/mask.ts";
import { parseFilter } from "../../filter/parse.ts";
import { type BestRow, BestRows } from "../../full-text/best-rows.ts";
import type { HalfScore } from "../../full-text/hybrid.ts";
import { hasPhrase, type Phrase, rarestTerms } from "../../full-text/query.ts";
import { loadStemmers } from "../../full-text/stemmers.ts";
import type { Stemmer, Term } from "../../full-text/terms.ts";
import type { TextView } from "../../full-text/text-index.ts";
import { documentsWith, scoreTexts, type TextContribution, type TextTarget } from "../../full-text/text-scores.ts";
import type { Language } from "../../text/languages.ts";
import { Slices } from "../../threads/event-loop.ts";
import type { FollowedSchema } from "../followed-schema.ts";
import { RESULT_BYTES } from "../search-messages.ts";
import type { SearchTable } from "../table-index.ts";
import { type Booster, boostsOf } from "./boosts.ts";
import type { TableTexts } from "./table-texts.ts";
import { searchBothHalves, type VectorHalf } from "./vector-half.ts";

export interface TextTableJob {
  readonly tableId: number;
  readonly targets: readonly { readonly columnId: number; readonly weight: number; readonly language?: Language | undefined }[];
  readonly filter: unknown;
  readonly boosters: readonly Booster[];
  /** What messages put before the names of members: "" or `tables[0].`. */
  readonly place: string;
}

/** A search for words, checked. */
export interface TextJob {
  readonly tables: readonly TextTableJob[];
  /** undefined: every record that passes the filter is found, in the order of its boosts. */
  readonly terms: readonly Term[] | undefined;
  readonly required: readonly Phrase[];
  readonly excluded: readonly Phrase[];
  /** How many of the best of each table. */
  readonly size: number;
  /** With words and a vector in one search; of one table. */
  readonly vector?: VectorHalf | undefined;
  /** Results below are left out. */
  readonly minScore: number | undefined;
  readonly explain: boolean;
  /** Size limit of the answer, counted as RESULT_BYTES for each result plus its id. */
  readonly maxBytes: number;
}

/**
 * What made the score of a result: of a search for words alone their scores, otherwise the contributions of the two
 * halves, and the boost. They add up to it in this order.
 */
export interface TextExplanation {
  readonly vector?: HalfScore | undefined;
  readonly text?: (Partial<HalfScore> & { readonly words: readonly TextContribution[] }) | undefined;
  readonly boost: number;
}

export interface TextTableAnswer {
  readonly totalCount: number;
  /** Best first; equal scores by id. */
  readonly ids: readonly string[];
  readonly scores: Float64Array;
  readonly explanations?: readonly TextExplanation[];
}

/** Some ten seconds of work, on whatever machine: postings, words and characters looked at. */
const MAX_UNITS = 2 ** 30;
const NO_DOCUMENT = -1;

interface Begun {
  readonly job: TextTableJob;
  readonly data: SearchTable;
  readonly texts: TableTexts;
  readonly targets: readonly TextTarget[];
  readonly view: TextView;
  /** By id. */
  readonly columnNames: ReadonlyMap<number, string>;
  readonly records: number;
  /** See SearchTable. */
  readonly releases: number;
  readonly mask: Uint32Array;
  readonly boosts: Float64Array | undefined;
}

/**
 * @param schemaNow  it may change while words are read.
 * @returns undefined when a table, one of its columns or its words are not there (yet, or any more).
 * @param maxUnits  for tests.
 * @throws {LodestoneError} INVALID for a filter, TOO_LARGE, TIMEOUT.
 */
export async function searchTexts(
  job: TextJob,
  schemaNow: () => FollowedSchema,
  tableNamed: (name: string) => SearchTable,
  maxUnits = MAX_UNITS,
): Promise<TextTableAnswer[] | undefined> {
  const stemmers = await loadStemmers(job.tables.flatMap(({ targets }) => targets.map(({ language }) => language)));
  const begun = await beginAll(job.tables, stemmers, schemaNow, tableNamed);
  if (begun === undefined) return undefined;
  const slices = new Slices();
  let units = 0;
  const finish = async <Result>(work: Generator<number, Result, undefined>): Promise<Result> => {
    let step = work.next();
    for (; step.done !== true; step = work.next()) {
      units += step.value;
      if (units > maxUnits)
        throw new LodestoneError("TIMEOUT", "The search looks at too many words; ask for fewer words, phrases or columns.");
      if (slices.spend(step.value)) await slices.rest();
    }
    return step.value;
  };
  const answers: TextTableAnswer[] = [];
  let bytes = 0;
  for (const table of begun) {
    const found = await (job.vector === undefined
      ? finish(searchTable(table, job))
      : searchBoth(table, job, job.vector, finish, () => slices.rest()));
    if (found === undefined) return undefined;
    const answer = job.minScore === undefined ? found : atLeast(job.minScore, found);
    for (const id of answer.ids) bytes += id.length + RESULT_BYTES;
    if (bytes > job.maxBytes) throw tooLarge(job.maxBytes);
    answers.push(answer);
  }
  return answers;
}

function atLeast(minScore: number, { ids, scores, explanations, ...answer }: TextTableAnswer): TextTableAnswer {
  const first = scores.findIndex((score) => score < minScore);
  const end = first === -1 ? scores.length : first;
  return {
    ...answer,
    ids: ids.slice(0, end),
    scores: scores.slice(0, end),
    ...(explanations && { explanations: explanations.slice(0, end) }),
  };
}

async function searchBoth(
  table: Begun,
  job: TextJob,
  half: VectorHalf,
  finish: <Result>(work: Generator<number, Result, undefined>) => Promise<Result>,
  rest: () => Promise<void>,
): Promise<TextTableAnswer | undefined> {
  const { data, targets, view, records, boosts } = table;
  const column = table.columnNames.get(half.columnId);
  if (column === undefined || !data.columns.has(column)) return undefined;
  const columns = targets.map((target) => target.column);
  const terms = rarestTerms(job.terms ?? [], view, columns);
  const { documents, scores } = await finish(scoreTexts(view, targets, terms, { records }));
  const mask = await finish(havingPhrases(table, job, columns));
  const rows = documents.map((document) => view.rowOf(document));
  const search = { text: { rows, scores }, mask, boosts, size: job.size };
  const both = await searchBothHalves(data, column, half, search, rest);
  if (both === undefined) return undefined;
  const { totalCount, hits } = both;
  const answer = answerOf(data, totalCount, hits);
  if (!job.explain) return answer;
  const documentOf = new Map<number, number>();
  rows.forEach((row, i) => {
    documentOf.set(row, documents[i]!);
  });
  const explained = new Map(hits.map(({ row }): [number, TextContribution[]] => [documentOf.get(row) ?? -1, []]));
  await finish(scoreTexts(view, targets, terms, { records, explained }));
  const explanations = hits.map(({ row, vector, text, boost }): TextExplanation => {
    const words = explained.get(documentOf.get(row) ?? -1) ?? [];
    return { ...(vector && { vector }), ...(text && { text: { ...text, words } }), boost };
  });
  return { ...answer, explanations };
}

/** The rows that pass the filter, have every required phrase and none that is excluded. */
function* havingPhrases(table: Begun, job: TextJob, columns: readonly string[]): Generator<number, Uint32Array, undefined> {
  const tests = yield* phrasesOf(table, job, columns);
  if (tests.length === 0) return table.mask;
  const mask = table.mask.slice();
  const documents = new Map<number, number>();
  for (let document = 0; document < table.view.end; document++)
    if (table.view.isLive(document)) documents.set(table.view.rowOf(document), document);
  for (let row = 0; row < 32 * mask.length; row++) {
    if (hasBit(mask, row) && !(yield* passes(tests, documents.get(row) ?? NO_DOCUMENT, row))) clearBit(mask, row);
    if (row % 16_384 === 0) yield 16_384;
  }
  return mask;
}

/** Waits until the words of all tables are those of the records, then takes all at once. */
async function beginAll(
  jobs: readonly TextTableJob[],
  stemmers: ReadonlyMap<Language | undefined, Stemmer>,
  schemaNow: () => FollowedSchema,
  tableNamed: (name: string) => SearchTable,
): Promise<Begun[] | undefined> {
  for (;;) {
    const pending = jobs.map((job) => {
      const table = tableOf(job, schemaNow());
      return table === undefined ? undefined : tableNamed(table.name).texts?.pending;
    });
    if (pending.every((wait) => wait === undefined)) break;
    await Promise.all(pending);
  }
  const schema = schemaNow();
  const begun: Begun[] = [];
  for (const job of jobs) {
    const table = tableOf(job, schema);
    const data = table && tableNamed(table.name);
    if (table === undefined || data?.texts === undefined) return undefined;
    const names = new Map([...table.columns.values()].map(({ id, name }) => [id, name]));
    const targets: TextTarget[] = [];
    for (const { columnId, weight, language } of job.targets) {
      const column = names.get(columnId);
      if (column === undefined || !data.texts.has(column)) return undefined;
      targets.push({ column, weight, stemmer: stemmers.get(language) });
    }
    const tables = { table: tableNamed };
    begun.push({
      job,
      data,
      texts: data.texts,
      targets,
      view: data.texts.index.view(),
      columnNames: names,
      records: data.rows.size,
      releases: data.releases,
      mask: compileToMask(parseFilter(job.filter, table, schema, `${job.place}filter`), table.name, tables),
      boosts: job.boosters.length === 0 ? undefined : boostsOf(job.boosters, table, schema, tables),
    });
  }
  return begun;
}

const tableOf = ({ tableId }: TextTableJob, schema: FollowedSchema) => [...schema.values()].find(({ id }) => id === tableId);

function* searchTable(table: Begun, job: TextJob): Generator<number, TextTableAnswer, undefined> {
  const { data, targets, view, records, releases, mask, boosts } = table;
  const best = new BestRows(job.size, {
    isBefore: (a, b) => data.rows.isBefore(a, b),
    isGone: (row) => data.wasReleasedSince(row, releases),
  });
  let totalCount = 0;
  if (job.terms === undefined) {
    for (let row = 0; row < 32 * mask.length; row++) {
      if (!hasBit(mask, row)) continue;
      totalCount++;
      best.add(row, boosts?.[row] ?? 0);
    }
    return answerOf(data, totalCount, best.inOrder());
  }
  const columns = targets.map(({ column }) => column);
  const terms = rarestTerms(job.terms, view, columns);
  const { documents, scores } = yield* scoreTexts(view, targets, terms, { records });
  const phrases = yield* phrasesOf(table, job, columns);
  for (let i = 0; i < documents.length; i++) {
    const document = documents[i]!;
    const row = view.rowOf(document);
    if (!hasBit(mask, row) || !(yield* passes(phrases, document, row))) continue;
    totalCount++;
    best.add(row, scores[i]! + (boosts?.[row] ?? 0), i);
    if (i % 16_384 === 0) yield 16_384;
  }
  const hits = best.inOrder();
  const answer = answerOf(data, totalCount, hits);
  if (!job.explain) return answer;
  const explained = new Map<number, TextContribution[]>(hits.map(({ place }) => [documents[place]!, []]));
  yield* scoreTexts(view, targets, terms, { records, explained });
  const explanations = hits.map(({ place, row }): TextExplanation => {
    return { text: { score: scores[place]!, words: explained.get(documents[place]!)! }, boost: boosts?.[row] ?? 0 };
  });
  return { ...answer, explanations };
}

function answerOf(data: SearchTable, totalCount: number, hits: readonly Pick<BestRow, "row" | "score">[]): TextTableAnswer {
  return { totalCount, ids: hits.map(({ row }) => data.idOf(row)!), scores: Float64Array.from(hits, ({ score }) => score) };
}

/** A phrase that records must have, or must not have. */
interface PhraseTest {
  readonly phrase: Phrase;
  readonly isWanted: boolean;
  /** Those that have all of its words in one column, by column. */
  readonly candidates: readonly { readonly column: string; readonly documents: Uint32Array }[];
  readonly table: Begun;
}

function* phrasesOf(table: Begun, { required, excluded }: TextJob, columns: readonly string[]): Generator<number, PhraseTest[], undefined> {
  const tests: PhraseTest[] = [];
  for (const [phrases, isWanted] of [
    [required, true],
    [excluded, false],
  ] as const) {
    for (const phrase of phrases) {
      const candidates: { column: string; documents: Uint32Array }[] = [];
      for (const column of columns) candidates.push({ column, documents: yield* documentsWith(table.view, column, phrase) });
      tests.push({ phrase, isWanted, candidates, table });
    }
  }
  return tests;
}

function* passes(tests: readonly PhraseTest[], document: number, row: number): Generator<number, boolean, undefined> {
  for (const test of tests) if ((yield* hasIt(test, document, row)) !== test.isWanted) return false;
  return true;
}

function* hasIt({ phrase, candidates, table }: PhraseTest, document: number, row: number): Generator<number, boolean, undefined> {
  for (const { column, documents } of candidates) {
    if (document === NO_DOCUMENT || !hasBit(documents, document)) continue;
    if (phrase.length === 1) return true;
    const text = table.texts.textOf(column, row);
    for (const item of typeof text === "string" ? [text] : (text ?? [])) {
      if (item !== null && (yield* hasPhrase(item, phrase))) return true;
    }
  }
  return false;
}
