/**
 * Combines two rankings into one by reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009). A
 * record gets 1 / (60 + its rank) from each list that contains it. Scores of different kinds therefore need
 * not be comparable, and the contribution of each list is visible.
 */
const RANK_OFFSET = 60;

export interface Ranked {
  readonly id: string;
  readonly score: number;
}

/** A record's place in one of the lists. */
export interface Part {
  /** From 1. */
  readonly rank: number;
  /** The list's own score. */
  readonly score: number;
  /** Its share of the fused score. */
  readonly contribution: number;
}

export interface Fused extends Ranked {
  /** undefined if that list did not contain the record. */
  readonly nearness: Part | undefined;
  readonly words: Part | undefined;
}

/** @returns best first; equal ones by id. */
export function fuse(byNearness: readonly Ranked[], byWords: readonly Ranked[], size: number): readonly Fused[] {
  const nearness = partsOf(byNearness);
  const words = partsOf(byWords);
  return [...new Set([...nearness.keys(), ...words.keys()])]
    .map((id) => {
      const parts = { nearness: nearness.get(id), words: words.get(id) };
      return { id, score: (parts.nearness?.contribution ?? 0) + (parts.words?.contribution ?? 0), ...parts };
    })
    .toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
    .slice(0, size);
}

function partsOf(ranked: readonly Ranked[]): ReadonlyMap<string, Part> {
  return new Map(ranked.map(({ id, score }, i) => [id, { rank: i + 1, score, contribution: 1 / (RANK_OFFSET + i + 1) }]));
}
