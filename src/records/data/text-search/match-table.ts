/**
 * Finds the records of a table that match, and the best of them. Memory is bounded whatever matches: if there
 * are too many matches to keep until everything is known that their scores need, they are found a second time.
 */

import type { Slices } from "../../../threads/event-loop.ts";
import type { Connection } from "../../engine/engine.ts";
import type { BranchInfo } from "../../schema.ts";
import { type Candidate, CandidateReader } from "./candidates.ts";
import type { Booster, TablePlan } from "./text-search-request.ts";
import { type Term, TermMatcher, wordsIn } from "./words.ts";

export interface TextMatch {
  readonly id: string;
  readonly score: number;
}

export interface TextMatches {
  readonly total: number;
  /** Best first; equal scores by id. */
  readonly best: readonly TextMatch[];
}

/** Some 32 MB of heap: about 100,000 matches of two words each. */
const MAX_KEPT_BYTES = 32 << 20;
const BYTES_PER_MATCH = 200;
const BYTES_PER_FREQUENCY = 56;
/** The cost of scoring and comparing a match, in letters looked at. */
const MATCH_COST = 100;

/**
 * @param terms  undefined: every record that passes the filter.
 * @param size  how many of the best to return, at most.
 * @param maxKeptBytes  for tests.
 */
export async function searchTable(
  connection: Connection,
  branch: BranchInfo,
  plan: TablePlan,
  terms: readonly Term[] | undefined,
  size: number,
  slices: Slices,
  maxKeptBytes = MAX_KEPT_BYTES,
): Promise<TextMatches> {
  if (terms === undefined) return everyRecord(connection, branch, plan, size, slices);
  const reader = new CandidateReader(connection, branch, plan, terms);
  if (terms.length === 0 || plan.targets.length === 0) return { total: 0, best: [] };
  const statistics = new MatchStatistics(plan, terms.length);
  let kept: Pick<RecordMatch, "id" | "boost" | "frequencies">[] | undefined = [];
  let keptBytes = 0;
  for await (const match of matchesOf(reader, plan, terms, slices)) {
    statistics.add(match);
    keptBytes += BYTES_PER_MATCH + BYTES_PER_FREQUENCY * match.frequencies.length;
    if (keptBytes > maxKeptBytes) kept = undefined;
    kept?.push({ id: match.id, boost: match.boost, frequencies: match.frequencies });
  }
  const score = statistics.scorer(await reader.countRecords());
  const best = new BestMatches(size);
  for await (const match of kept ?? matchesOf(reader, plan, terms, slices)) {
    best.add({ id: match.id, score: score(match) });
    if (slices.spend(MATCH_COST)) await slices.rest();
  }
  return { total: statistics.matches, best: best.inOrder() };
}

/** Without words a record's score is its boosts. */
async function everyRecord(
  connection: Connection,
  branch: BranchInfo,
  plan: TablePlan,
  size: number,
  slices: Slices,
): Promise<TextMatches> {
  const best = new BestMatches(size);
  let total = 0;
  for await (const page of new CandidateReader(connection, branch, { ...plan, targets: [] }, []).pages()) {
    total += page.length;
    for (const [id, ...boosts] of page) {
      best.add({ id: id!, score: boostOf(plan.boosters, boosts) });
      if (slices.spend(MATCH_COST)) await slices.rest();
    }
  }
  return { total, best: best.inOrder() };
}

async function* matchesOf(
  reader: CandidateReader,
  plan: TablePlan,
  terms: readonly Term[],
  slices: Slices,
): AsyncGenerator<RecordMatch, void, undefined> {
  const matcher = new RecordMatcher(plan, terms, slices);
  for await (const page of reader.pages()) {
    for (const candidate of page) {
      const match = await matcher.match(candidate);
      if (match !== undefined) yield match;
    }
  }
}

class RecordMatcher {
  readonly #plan: TablePlan;
  readonly #terms: TermMatcher;
  readonly #slices: Slices;
  /** By term, of the column that is looked at. */
  readonly #found: Float64Array;

  constructor(plan: TablePlan, terms: readonly Term[], slices: Slices) {
    this.#plan = plan;
    this.#terms = new TermMatcher(terms);
    this.#slices = slices;
    this.#found = new Float64Array(terms.length);
  }

  /** undefined when nothing matches. */
  async match(candidate: Candidate): Promise<RecordMatch | undefined> {
    const { targets, boosters } = this.#plan;
    const lengths = new Float64Array(targets.length);
    const frequencies: Frequency[] = [];
    for (let column = 0; column < targets.length; column++) {
      const text = candidate[column + 1];
      if (text === null || text === undefined) continue;
      const words = await this.#count(text);
      lengths[column] = words;
      for (let term = 0; term < this.#found.length; term++) {
        const frequency = this.#found[term]!;
        if (frequency > 0) frequencies.push({ column, term, frequency, words });
      }
    }
    if (this.#slices.spend(targets.length)) await this.#slices.rest();
    if (frequencies.length === 0) return undefined;
    return { id: candidate[0]!, boost: boostOf(boosters, candidate.slice(1 + targets.length)), frequencies, lengths };
  }

  /**
   * Leaves in `#found` how often and how well each term is in the text.
   * @returns how many words the text has.
   */
  async #count(text: string): Promise<number> {
    this.#found.fill(0);
    let words = 0;
    for (const word of wordsIn(text)) {
      if (word.plain !== "") words++;
      for (const { index, quality } of this.#terms.match(word)) this.#found[index]! += quality;
      if (this.#slices.spend(this.#terms.lastCost)) await this.#slices.rest();
    }
    return words;
  }
}

/** The best so far: a list that is sorted and cut when it has grown to several times the size that is wanted. */
class BestMatches {
  readonly #size: number;
  readonly #matches: TextMatch[] = [];
  /** Once there are enough: a lower score is not among the best. */
  #least = Number.NEGATIVE_INFINITY;

  constructor(size: number) {
    this.#size = size;
  }

  add(match: TextMatch): void {
    if (match.score < this.#least) return;
    this.#matches.push(match);
    if (this.#matches.length >= 4 * this.#size + 64) this.#cut();
  }

  inOrder(): readonly TextMatch[] {
    this.#cut();
    return this.#matches;
  }

  #cut(): void {
    this.#matches.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
    if (this.#matches.length < this.#size) return;
    this.#matches.length = this.#size;
    this.#least = this.#matches.at(-1)?.score ?? Number.POSITIVE_INFINITY;
  }
}

const K1 = 1.2;
const B = 0.75;

/**
 * How often and how well a term was found in a column, and how many words that column has. Ordered by column,
 * then term.
 */
interface Frequency {
  readonly column: number;
  readonly term: number;
  readonly frequency: number;
  readonly words: number;
}

interface RecordMatch {
  readonly id: string;
  readonly boost: number;
  readonly frequencies: readonly Frequency[];
  /** Words of each target column. */
  readonly lengths: Float64Array;
}

/**
 * The score of a record: BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) over its
 * columns, each with its weight, plus its boosts. What BM25 needs to know about the whole table is known only
 * when the last record has been read. So a match holds the parts of its score, and this what they need of all matches.
 */
class MatchStatistics {
  readonly #plan: TablePlan;
  readonly #lengths: Float64Array;
  readonly #having: Float64Array;
  /** The last match that had the term. */
  readonly #lastHaving: Float64Array;
  #matches = 0;

  constructor(plan: TablePlan, termCount: number) {
    this.#plan = plan;
    this.#lengths = new Float64Array(plan.targets.length);
    this.#having = new Float64Array(termCount);
    this.#lastHaving = new Float64Array(termCount);
  }

  get matches(): number {
    return this.#matches;
  }

  add({ frequencies, lengths }: RecordMatch): void {
    this.#matches++;
    for (let column = 0; column < lengths.length; column++) this.#lengths[column]! += lengths[column]!;
    for (const { term } of frequencies) {
      if (this.#lastHaving[term] === this.#matches) continue;
      this.#lastHaving[term] = this.#matches;
      this.#having[term]!++;
    }
  }

  /** @param total  records of the table, matching or not. */
  scorer(total: number): (match: Pick<RecordMatch, "boost" | "frequencies">) => number {
    const rarity = this.#having.map((having) => Math.log(1 + (Math.max(total, having) - having + 0.5) / (having + 0.5)));
    const averages = this.#lengths.map((length) => length / this.#matches || 1);
    return ({ boost, frequencies }) => {
      let score = boost;
      for (const { column, term, frequency, words } of frequencies) {
        const norm = K1 * (1 - B + (B * words) / averages[column]!);
        score += (this.#plan.targets[column]!.weight * rarity[term]! * frequency * (K1 + 1)) / (frequency + norm);
      }
      return score;
    };
  }
}

/** @param values  of each booster its value and whether it applies. */
function boostOf(boosters: readonly Booster[], values: readonly (string | null)[]): number {
  let boost = 0;
  boosters.forEach((booster, index) => {
    const [value, applies] = [values[2 * index], values[2 * index + 1]];
    if (value === null || value === undefined || applies !== "t") return;
    const added = booster.factor * boosterValue(booster, value);
    if (Number.isFinite(added)) boost += added;
  });
  return boost;
}

function boosterValue(booster: Booster, value: string): number {
  switch (booster.kind) {
    case "value":
      return value === "t" ? 1 : 0;
    case "date":
      return booster.decay ** (Math.abs(Number(value) - booster.originMs) / booster.scaleMs);
    case "numeric": {
      const x = Number(value);
      const modified = {
        none: x,
        log: Math.log10(x),
        log1p: Math.log10(1 + x),
        ln: Math.log(x),
        ln1p: Math.log1p(x),
        square: x * x,
        sqrt: Math.sqrt(x),
        reciprocal: 1 / x,
      };
      return modified[booster.modifier];
    }
  }
}
