/**
 * A search for words, or for words and a vector, as the indexes know it. What it does is in TextColumns
 * (src/library), which the caller gives to the index: an index without words does not include that code.
 * Of full-text the core knows types alone.
 */
import type { Fusion } from "../full-text/fusion.ts";
import type { HalfScore } from "../full-text/hybrid.ts";
import type { TextContribution } from "../full-text/text-scores.ts";
import type { ColumnName, RowColumns } from "./row-columns.ts";
import type { SearchHit, SearchOptions, SearchResult } from "./search-input.ts";
import type { ShardHits, ShardSearch } from "./vector-shard.ts";

export interface TextSearch<Columns extends RowColumns = RowColumns> extends Omit<SearchOptions<Columns>, "cosine"> {
  /** Words to look for; a record needs one of them. "": every record that passes the filter. */
  text: string;
  /** Records near this vector are found as well, and both scores made one. As the query of a vector search. */
  vector?: ArrayLike<number> | undefined;
  /** How both scores are made one. Default: standardized, vectorWeight 0.5, k 60. */
  fusion?: Partial<Fusion> | undefined;
  /** Columns to look in, by name or with a weight (default 1). Default: all that have words. */
  target?: readonly (ColumnName<Columns> | { column: ColumnName<Columns>; weight?: number | undefined })[] | undefined;
  /** How many edits may be between a word of the text and one of a record: 0, 1 (the default) or 2. */
  fuzziness?: number | undefined;
  /** The last word may be the beginning of one. Default false. */
  prefix?: boolean | undefined;
  /**
   * The stem of a word in lower case, for example a function of @orama/stemmers: words of the same stem match, too.
   * Give the same function each time: stems of all words are remembered for each.
   */
  stemmer?: ((word: string) => string) | undefined;
  /** Each result says what made its score. */
  explain?: boolean | undefined;
}

/** What made a score: of words alone what each added, otherwise what the halves contributed. It is their sum. */
export interface TextExplanation {
  /** Absent for a record without a vector. */
  vector?: HalfScore;
  /** Absent for a record without a matching word, where its score is not standardized. */
  text?: Partial<HalfScore> & { score: number; words: readonly TextContribution[] };
}

export interface TextSearchHit<Row = Record<string, unknown>> extends SearchHit<Row> {
  explanation?: TextExplanation;
}

export interface TextSearchResult<Row = Record<string, unknown>> extends SearchResult<Row> {
  /** Best first; equal scores: lower id first, by code points. */
  results: TextSearchHit<Row>[];
}

/** The vectors of a ParallelVectorIndex, as they are when the search begins, whatever is written meanwhile. */
export interface HeldVectors {
  readonly dimension: number;
  readonly size: number;
  has(row: number): boolean;
  search(query: Float32Array, search: ShardSearch): Promise<ShardHits>;
  scoreRows(query: Float32Array, rows: Uint32Array, similarity: ShardSearch["similarity"]): Promise<Float64Array>;
}

export const isTextSearch = (query: ArrayLike<number> | TextSearch): query is TextSearch => "text" in Object(query);
