/** What the page and the worker of the map tell each other. */
import type { Similarity } from "lodestone";
import type { PointColors } from "./point-colors.ts";
import type { PointSizes } from "./point-sizes.ts";

/** Reads the first records by their ids, or those after the ones that are there. */
export interface LoadRequest {
  readonly kind: "load";
  /** `http://…/db/a:b/tables/t`. */
  readonly tableUrl: string;
  /** "" if the server requires none. */
  readonly key: string;
  readonly column: string;
  readonly dimension: number;
  /** A column whose values colour the points. */
  readonly colorColumn: string | undefined;
  readonly filter: unknown;
  /** Maximum number of rows, with those that are there. */
  readonly limit: number;
  /** What the index may take. */
  readonly memoryBytes: number;
}

/** Ends the load that is under way: what has come is shown. */
interface StopRequest {
  readonly kind: "stop";
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

/** Asks for records by id: where they are, and their vectors. */
interface LookUpRequest {
  readonly kind: "look up";
  readonly ticket: number;
  readonly ids: readonly string[];
}

/** The records of the map. */
export type MapSource = Pick<LoadRequest, "tableUrl" | "key" | "column" | "filter">;

/** Colours the points by another column, without reading their vectors again. */
export interface ColorRequest extends MapSource {
  readonly kind: "color";
  readonly ticket: number;
  readonly colorColumn: string | undefined;
}

/** Sizes the points by a column of numbers. */
export interface SizeRequest extends MapSource {
  readonly kind: "size";
  readonly ticket: number;
  readonly sizeColumn: string;
}

/** Asks for other places of the points; a later request takes the place of one that is under way. */
export interface LayoutRequest {
  readonly kind: "lay out";
  readonly ticket: number;
  readonly layout: Layout;
  readonly similarity: Similarity;
}

/** The principal plane; or neighbours beside each other. */
export type Layout = "plane" | "neighbors";

export type MapRequest = LoadRequest | StopRequest | ColorRequest | SizeRequest | NearestRequest | LookUpRequest | LayoutRequest;

export interface Neighbor {
  readonly id: string;
  /** Index of the point on the map. */
  readonly row: number;
  readonly score: number;
}

export interface FoundRecord {
  /** Index of the point on the map. */
  readonly row: number;
  readonly vector: Float32Array;
}

/** All that the page itself holds of the records; the rest stays in the worker. */
export interface Plane extends PointColors {
  readonly ids: PackedIds;
  /** x0, y0, x1, y1, … */
  readonly points: Float32Array<ArrayBuffer>;
  /** undefined: all are of one size. */
  readonly sizes: PointSizes | undefined;
  /** Share of the spread that lies in the plane, 0 to 1. */
  readonly share: number;
  /** Some rows were left out. */
  readonly isPartial: boolean;
  /** Of the load: what was asked of another one is not for this one. */
  readonly load: number;
  /** Another one: all points have other places. */
  readonly fit: number;
}

export interface PlaneReply {
  readonly kind: "plane";
  readonly plane: Plane;
  /** The column that colours them; one that was chosen during the load may not colour all, and then none does. */
  readonly colorColumn: string | undefined;
  /** The browser gives the page no more memory. */
  readonly isFull: boolean;
  /** Why the rest did not come. */
  readonly fault: string | undefined;
}

/** Records have changed, come or gone. */
interface ChangedReply {
  readonly kind: "changed";
  readonly plane: Plane;
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
  | PlaneReply
  | ChangedReply
  /** What the map shows cannot be brought up to date: it has to be read again. */
  | { readonly kind: "outdated" }
  | NearestReply
  | { readonly kind: "found"; readonly ticket: number; readonly records: readonly (FoundRecord | undefined)[] }
  | ({ readonly kind: "colored"; readonly ticket: number } & PointColors)
  | { readonly kind: "sized"; readonly ticket: number; readonly sizes: PointSizes }
  /** Without points it was stopped. */
  | { readonly kind: "laid out"; readonly ticket: number; readonly points: Float32Array<ArrayBuffer> | undefined; readonly fit: number }
  | { readonly kind: "laying out"; readonly share: number }
  /** Without a ticket it belongs to the load. */
  | { readonly kind: "fault"; readonly ticket: number | undefined; readonly message: string };

/**
 * Ids as bytes, which a worker transfers to the page without a copy. 100,000 strings would block the page
 * while they are created there.
 */
interface PackedIds {
  /** UTF-8, one id after the other. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The end of each id, in bytes. */
  readonly ends: Uint32Array<ArrayBuffer>;
}

export function packIds(ids: readonly string[]): PackedIds {
  const bytes = new TextEncoder().encode(ids.join(""));
  const ends = new Uint32Array(ids.length);
  let end = 0;
  for (const [row, id] of ids.entries()) {
    end += utf8Length(id);
    ends[row] = end;
  }
  return { bytes, ends };
}

const decoder = new TextDecoder();

export function idAt({ bytes, ends }: PackedIds, row: number): string {
  return decoder.decode(bytes.subarray(row === 0 ? 0 : ends[row - 1], ends[row]));
}

function utf8Length(text: string): number {
  let length = 0;
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    length += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return length;
}
