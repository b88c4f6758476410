/** What the page and the map's worker tell each other. */
import type { Similarity } from "lodestone";
import type { PackedIds } from "./packed-ids.ts";
import type { LegendEntry } from "./point-colors.ts";

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
  /** Rows at most; undefined: all. */
  readonly limit: number | undefined;
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

/** Records by their ids: where they are, and their vectors. */
export interface LookUpRequest {
  readonly kind: "look up";
  readonly ticket: number;
  readonly ids: readonly string[];
}

/** Ids that hold a text. */
export interface SuggestRequest {
  readonly kind: "suggest";
  readonly ticket: number;
  readonly typed: string;
  readonly size: number;
}

export type MapRequest = LoadRequest | NearestRequest | LookUpRequest | SuggestRequest;

export interface Neighbor {
  readonly id: string;
  /** Of the map's points. */
  readonly row: number;
  readonly score: number;
}

export interface FoundRecord {
  /** Of the map's points. */
  readonly row: number;
  readonly vector: Float32Array;
}

/** All that the page holds of the records itself; the rest stays with the worker. */
export interface Plane {
  readonly ids: PackedIds;
  /** x0, y0, x1, y1, … */
  readonly points: Float32Array<ArrayBuffer>;
  /** 0xRRGGBB of each point. */
  readonly colors: Uint32Array<ArrayBuffer>;
  readonly legend: readonly LegendEntry[];
  /** Share of the spread that lies in the plane, 0 to 1. */
  readonly share: number;
  /** Rows that were left out by the limit. */
  readonly isPartial: boolean;
}

export interface NearestReply {
  readonly kind: "nearest";
  readonly ticket: number;
  readonly neighbors: readonly Neighbor[];
  readonly query: Float32Array;
  /** Where the query lies in the plane. */
  readonly x: number;
  readonly y: number;
  readonly ms: number;
}

export type MapReply =
  | { readonly kind: "progress"; readonly rows: number }
  | { readonly kind: "plane"; readonly plane: Plane }
  | NearestReply
  | { readonly kind: "found"; readonly ticket: number; readonly records: readonly (FoundRecord | undefined)[] }
  | { readonly kind: "suggested"; readonly ticket: number; readonly ids: readonly string[] }
  /** Of the load where there is no ticket. */
  | { readonly kind: "fault"; readonly ticket: number | undefined; readonly message: string };
