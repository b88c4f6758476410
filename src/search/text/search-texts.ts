/**
 * A search for words in the tables of a branch, inside the worker. Everything that depends on the state of the
 * branch is taken at once, when it begins: the index, filters, boosts. So however many steps the scoring takes, its
 * answer is that of one position of the feed.
 */
import { tooLarge } from "../../budget/memory-budget.ts";
import { hasBit } from "../../filter/bit-mask.ts";
import { compileToMask } from "../../filter/mask.ts";
import { parseFilter } from "../../filter/parse.ts";
import { hasPhrase, type Phrase, rarestTerms } from "../../full-text/query.ts";
import { loadStemmer } from "../../full-text/stemmers.ts";
import type { Stemmer, Term } from "../../full-text/terms.ts";
import type { TextView } from "../../full-text/text-index.ts";
import { documentsWith, scoreTexts, type TextContribution, type TextTarget } from "../../full-text/text-scores.ts";
import { Slices } from "../../threads/event-loop.ts";
import type { FollowedSchema } from "../followed-schema.ts";
import { RESULT_BYTES } from "../search-messages.ts";
import type { SearchTable } from "../table-index.ts";
import { type Booster, boostsOf } from "./boosts.ts";

export interface TextTableJob {
  readonly tableId: number;
  readonly targets: readonly { readonly columnId: number; readonly weight: number }[];
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
  /** Of the stems of the terms. */
  readonly language: string | undefined;
  /** How many of the best of each table. */
  readonly size: number;
  readonly explain: boolean;
  /** Size limit of the answer, counted as RESULT_BYTES for each result plus its id. */
  readonly maxBytes: number;
}

/** What made the score of a result; the parts add up to it in this order. */
export interface TextExplanation {
  readonly words: readonly TextContribution[];
  readonly boost: number;
}

export interface TextTableAnswer {
  readonly totalCount: number;
  /** Best first; equal scores by id. */
  readonly ids: readonly string[];
  readonly scores: Float64Array;
  readonly explanations?: readonly TextExplanation[];
}

interface Begun {
  readonly job: TextTableJob;
  readonly data: SearchTable;
  readonly targets: readonly TextTarget[];
  readonly view: TextView;
  readonly records: number;
  /** See SearchTable. */
  readonly releases: number;
  readonly mask: Uint32Array;
  readonly boosts: Float64Array | undefined;
}

/**
 * @returns undefined when a table, one of its columns or its words are not there (yet, or any more).
 * @throws {LodestoneError} INVALID for a filter, TOO_LARGE.
 */
export async function searchTexts(
  job: TextJob,
  schema: FollowedSchema,
  tableNamed: (name: string) => SearchTable,
): Promise<TextTableAnswer[] | undefined> {
  const stemmer = job.language === undefined ? undefined : await loadStemmer(job.language);
  const begun = await beginAll(job.tables, schema, tableNamed);
  if (begun === undefined) return undefined;
  const slices = new Slices();
  const answers: TextTableAnswer[] = [];
  let bytes = 0;
  for (const table of begun) {
    const work = searchTable(table, job, stemmer);
    let step = work.next();
    for (; step.done !== true; step = work.next()) if (slices.spend(step.value)) await slices.rest();
    for (const id of step.value.ids) bytes += id.length + RESULT_BYTES;
    if (bytes > job.maxBytes) throw tooLarge(job.maxBytes);
    answers.push(step.value);
  }
  return answers;
}

/** Waits until the words of all tables are those of the records, then takes all at once. */
async function beginAll(
  jobs: readonly TextTableJob[],
  schema: FollowedSchema,
  tableNamed: (name: string) => SearchTable,
): Promise<Begun[] | undefined> {
  for (;;) {
    const pending = jobs.map((job) => {
      const table = tableOf(job, schema);
      return table === undefined ? undefined : tableNamed(table.name).texts?.pending;
    });
    if (pending.every((wait) => wait === undefined)) break;
    await Promise.all(pending);
  }
  const begun: Begun[] = [];
  for (const job of jobs) {
    const table = tableOf(job, schema);
    const data = table && tableNamed(table.name);
    if (table === undefined || data?.texts === undefined) return undefined;
    const names = new Map([...table.columns.values()].map(({ id, name }) => [id, name]));
    const targets: TextTarget[] = [];
    for (const { columnId, weight } of job.targets) {
      const column = names.get(columnId);
      if (column === undefined || !data.texts.has(column)) return undefined;
      targets.push({ column, weight });
    }
    const tables = { table: tableNamed };
    begun.push({
      job,
      data,
      targets,
      view: data.texts.index.view(),
      records: data.rows.size,
      releases: data.releases,
      mask: compileToMask(parseFilter(job.filter, table, schema, `${job.place}filter`), table.name, tables),
      boosts: job.boosters.length === 0 ? undefined : boostsOf(job.boosters, table, schema, tables),
    });
  }
  return begun;
}

const tableOf = ({ tableId }: TextTableJob, schema: FollowedSchema) => [...schema.values()].find(({ id }) => id === tableId);

interface Hit {
  readonly row: number;
  readonly id: string;
  readonly score: number;
  readonly document: number;
}

function* searchTable(table: Begun, job: TextJob, stemmer: Stemmer | undefined): Generator<number, TextTableAnswer, undefined> {
  const { data, targets, view, records, releases, mask, boosts } = table;
  const best = new BestHits(job.size, data, releases);
  let totalCount = 0;
  if (job.terms === undefined) {
    for (let row = 0; row < 32 * mask.length; row++) {
      if (!hasBit(mask, row)) continue;
      totalCount++;
      best.add(row, boosts?.[row] ?? 0, -1);
    }
    return answerOf(totalCount, best.inOrder());
  }
  const columns = targets.map(({ column }) => column);
  const terms = rarestTerms(job.terms, view, columns);
  const { documents, scores } = yield* scoreTexts(view, targets, terms, { records, stemmer });
  const phrases = yield* phrasesOf(table, job, columns);
  for (let i = 0; i < documents.length; i++) {
    const document = documents[i]!;
    const row = view.rowOf(document);
    if (!hasBit(mask, row) || !(yield* passes(phrases, document, row))) continue;
    totalCount++;
    best.add(row, scores[document]! + (boosts?.[row] ?? 0), document);
    if (i % 16_384 === 0) yield 16_384;
  }
  const hits = best.inOrder();
  if (!job.explain) return answerOf(totalCount, hits);
  const explained = new Map<number, TextContribution[]>(hits.map(({ document }) => [document, []]));
  yield* scoreTexts(view, targets, terms, { records, stemmer, explained });
  const explanations = hits.map(({ document, row }) => ({ words: explained.get(document)!, boost: boosts?.[row] ?? 0 }));
  return { ...answerOf(totalCount, hits), explanations };
}

function answerOf(totalCount: number, hits: readonly Hit[]): TextTableAnswer {
  return { totalCount, ids: hits.map(({ id }) => id), scores: Float64Array.from(hits, ({ score }) => score) };
}

/** A phrase that records must have, or must not have. */
interface PhraseTest {
  readonly phrase: Phrase;
  readonly isWanted: boolean;
  /** Those that have all of its words in one column, by column. */
  readonly candidates: readonly { readonly column: string; readonly documents: ReadonlySet<number> }[];
  readonly table: Begun;
}

function* phrasesOf(table: Begun, { required, excluded }: TextJob, columns: readonly string[]): Generator<number, PhraseTest[], undefined> {
  const tests: PhraseTest[] = [];
  for (const [phrases, isWanted] of [
    [required, true],
    [excluded, false],
  ] as const) {
    for (const phrase of phrases) {
      const candidates: { column: string; documents: ReadonlySet<number> }[] = [];
      for (const column of columns) {
        let documents: ReadonlySet<number> | undefined;
        for (const word of new Set(phrase)) {
          const having = yield* documentsWith(table.view, [column], word);
          const before: ReadonlySet<number> | undefined = documents;
          documents = before === undefined ? having : new Set([...having].filter((document) => before.has(document)));
        }
        candidates.push({ column, documents: documents ?? new Set() });
      }
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
    if (!documents.has(document)) continue;
    if (phrase.length === 1) return true;
    const text = table.data.texts!.textOf(column, row);
    for (const item of typeof text === "string" ? [text] : (text ?? [])) {
      if (item !== null && (yield* hasPhrase(item, phrase))) return true;
    }
  }
  return false;
}

/** The best so far: a list that is sorted and cut when it has grown to several times the size that is wanted. */
class BestHits {
  readonly #size: number;
  readonly #data: SearchTable;
  readonly #releases: number;
  #hits: { readonly row: number; readonly score: number; readonly document: number }[] = [];
  /** Once there are enough: a lower score is not among the best. */
  #least = Number.NEGATIVE_INFINITY;

  constructor(size: number, data: SearchTable, releases: number) {
    this.#size = size;
    this.#data = data;
    this.#releases = releases;
  }

  add(row: number, score: number, document: number): void {
    if (score < this.#least) return;
    this.#hits.push({ row, score, document });
    if (this.#hits.length >= 4 * this.#size + 64) this.#cut();
  }

  /** Those whose record has been deleted meanwhile are left out. */
  inOrder(): Hit[] {
    this.#cut();
    return this.#hits.flatMap((hit) => {
      return this.#isGone(hit.row) ? [] : [{ ...hit, id: this.#data.idOf(hit.row)! }];
    });
  }

  #cut(): void {
    this.#hits.sort((a, b) => b.score - a.score || this.#byId(a.row, b.row));
    this.#hits = this.#hits.slice(0, this.#size);
    if (this.#hits.length === this.#size && this.#size > 0) this.#least = this.#hits.at(-1)!.score;
  }

  #isGone(row: number): boolean {
    return this.#data.wasReleasedSince(row, this.#releases);
  }

  #byId(a: number, b: number): number {
    if (this.#isGone(a) || this.#isGone(b)) return a - b;
    return this.#data.rows.isBefore(a, b) ? -1 : 1;
  }
}
