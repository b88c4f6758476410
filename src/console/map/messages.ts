/** What the page and the map's worker tell each other. */
import type { Similarity } from "lodestone";

export interface LoadRequest {
  readonly kind: "load";
  /** `http://…/db/a:b/tables/t`. */
  readonly tableUrl: string;
  /** "" where the server asks for none. */
  readonly key: string;
  readonly column: string;
  readonly dimension: number;
  /** A column whose values colour the points. */
  readonly colorColumn: string | undefined;
  readonly filter: unknown;
  /** Rows at most. */
  readonly limit: number;
}

/** Where a query comes from: a record, a place in the plane, or numbers. */
export type QuerySource =
  | { readonly from: "record"; readonly id: string }
  | { readonly from: "plane"; readonly x: number; readonly y: number }
  | { readonly from: "vector"; readonly vector: readonly number[] };

export interface NearestRequest {
  readonly kind: "nearest";
  readonly ticket: number;
  readonly source: QuerySource;
  readonly size: number;
  readonly similarity: Similarity;
}

export interface VectorsRequest {
  readonly kind: "vectors";
  readonly ticket: number;
  readonly ids: readonly string[];
}

export type MapRequest = LoadRequest | NearestRequest | VectorsRequest;

export interface Neighbor {
  readonly id: string;
  /** Of the map's points. */
  readonly row: number;
  readonly score: number;
}

export interface Plane {
  readonly ids: readonly string[];
  /** x0, y0, x1, y1, … */
  readonly points: Float32Array;
  /** The colour column's values; null where there is none. */
  readonly values: readonly (string | null)[];
  /** Share of the spread that lies in the plane, 0 to 1. */
  readonly share: number;
  /** Rows that were left out by the limit. */
  readonly isPartial: boolean;
}

export type MapReply =
  | { readonly kind: "progress"; readonly rows: number }
  | { readonly kind: "plane"; readonly plane: Plane }
  | {
      readonly kind: "nearest";
      readonly ticket: number;
      readonly neighbors: readonly Neighbor[];
      readonly query: Float32Array;
      /** Where the query lies in the plane. */
      readonly x: number;
      readonly y: number;
      readonly ms: number;
    }
  | { readonly kind: "vectors"; readonly ticket: number; readonly vectors: readonly (Float32Array | undefined)[] }
  | { readonly kind: "fault"; readonly ticket: number | undefined; readonly message: string };
