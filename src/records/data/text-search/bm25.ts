/**
 * The score of a record: BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) over its
 * columns, each with its weight, plus its boosts. What BM25 needs to know about the whole table is known only
 * when the last record has been read. So a match holds the parts of its score.
 */
import type { Booster, TablePlan } from "./text-search-request.ts";

const K1 = 1.2;
const B = 0.75;

/**
 * How often and how well a term was found in a column, and how many words that column has. Ordered by column,
 * then term.
 */
export interface Frequency {
  readonly column: number;
  readonly term: number;
  readonly frequency: number;
  readonly words: number;
}

export interface RecordMatch {
  readonly id: string;
  readonly boost: number;
  readonly frequencies: readonly Frequency[];
  /** Words of each target column. */
  readonly lengths: Float64Array;
}

/** Collects what the scores need of all matches. */
export class MatchStatistics {
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
export function boostOf(boosters: readonly Booster[], values: readonly (string | null)[]): number {
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
