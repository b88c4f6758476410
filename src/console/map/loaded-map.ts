/**
 * The records that the map's worker holds, as points: a row of the index is a point. The rows that have points are the first ones,
 * without a gap: the last point takes the row of one that goes.
 */
import type { VectorIndex } from "lodestone";
import type { ChangedRecords } from "./live-changes.ts";
import { type PrincipalPlane, principalPlane, project } from "./principal-plane.ts";

export interface LoadedMap {
  readonly index: VectorIndex;
  /** Of the column that colours the points, or null. */
  values: (string | null)[];
  colorColumn: string | undefined;
  /** Of the column that sizes the points. */
  sizeValues: (string | null)[];
  sizeColumn: string | undefined;
  /** The last that was read: records come in the order of their ids. */
  lastId: string | undefined;
  /** There are later ones. */
  isPartial: boolean;
  /** Where in the changes of the table it is; undefined: they cannot be followed. */
  position: string | undefined;
  plane: PrincipalPlane;
  /** In the principal plane. While more is read, the index has more rows than these. */
  points: Float32Array<ArrayBuffer>;
  /** Number of the arrangement: with another one, all points have other places. */
  fit: number;
  /** Records of which the plane was computed. */
  arranged: number;
  /** Other places of the points, if they are shown there. */
  laidOut: Float32Array<ArrayBuffer> | undefined;
  /** The rows that have points, for searches; undefined: all. */
  mask: Uint32Array | undefined;
}

export const countOf = ({ points }: LoadedMap): number => points.length / 2;
/** A row that has an id, and therefore one of the index. */
export const idOf = ({ index }: LoadedMap, row: number): string => index.rows.idOf(row) as string;

/** The row, if it has a point. */
export function pointOf(map: LoadedMap, id: string): number | undefined {
  const row = map.index.rows.rowOf(id);
  return row !== undefined && row < countOf(map) ? row : undefined;
}

/** Gives every row its place in the principal plane of all. */
export function arrange(map: LoadedMap): void {
  const { index } = map;
  const vectorAt = (row: number): Float32Array => index.get(idOf(map, row)) as Float32Array;
  map.fit++;
  map.laidOut = undefined;
  map.arranged = index.size;
  map.plane = principalPlane(index.size, index.dimension, vectorAt);
  map.points = new Float32Array(index.size * 2);
  for (let row = 0; row < index.size; row++) map.points.set(project(map.plane, vectorAt(row)), row * 2);
  map.mask = undefined;
}

export function maskOfFirst(rows: number): Uint32Array {
  const mask = new Uint32Array(Math.ceil(rows / 32)).fill(0xffff_ffff);
  if (rows % 32 > 0) mask[rows >> 5] = 2 ** (rows % 32) - 1;
  return mask;
}

/** @returns whether any of it is of a record that is shown, or comes to be. */
export function applyChanges(map: LoadedMap, { records, deleted }: ChangedRecords): boolean {
  const isShown = (id: string): boolean => !map.isPartial || (map.lastId !== undefined && id <= map.lastId);
  const count = countOf(map);
  const put = records.filter(({ id, vector }) => vector !== undefined && (pointOf(map, id) !== undefined || isShown(id)));
  const gone = [...deleted, ...records.flatMap(({ id, vector }) => (vector === undefined ? [id] : []))].filter(
    (id) => pointOf(map, id) !== undefined,
  );
  if (put.length === 0 && gone.length === 0) return false;
  const isNew = new Set(put.flatMap(({ id }) => (pointOf(map, id) === undefined ? [id] : [])));
  map.points = longer(map.points, 2 * (count + isNew.size));
  if (map.laidOut !== undefined) map.laidOut = longer(map.laidOut, 2 * (count + isNew.size));
  for (const { id, vector, values } of put) {
    map.index.upsert(id, vector!);
    const row = map.index.rows.rowOf(id)!;
    map.points.set(project(map.plane, vector!), 2 * row);
    // Between its neighbours; it stays there when it moves, until they are laid out again.
    if (isNew.has(id)) map.laidOut?.set(placeBeside(map, map.laidOut, row, vector!), 2 * row);
    map.values[row] = (map.colorColumn === undefined ? null : values.get(map.colorColumn)) ?? null;
    map.sizeValues[row] = (map.sizeColumn === undefined ? null : values.get(map.sizeColumn)) ?? null;
  }
  for (const id of gone) remove(map, id);
  // The plane of a few says little of many.
  if (map.laidOut === undefined && countOf(map) > 2 * map.arranged) arrange(map);
  return true;
}

function longer(points: Float32Array, length: number): Float32Array<ArrayBuffer> {
  const all = new Float32Array(length);
  all.set(points);
  return all;
}

/** Where its nearest record is that has a place. */
function placeBeside({ index }: LoadedMap, laidOut: Float32Array, own: number, vector: Float32Array): readonly number[] {
  const rows = index.search(vector, { k: 2, similarity: "l2" }).results.map(({ id }) => index.rows.rowOf(id)!);
  const row = rows.find((row) => row !== own) ?? own;
  return [laidOut[2 * row]!, laidOut[2 * row + 1]!];
}

/** The last row's record takes the row of the one that goes. */
function remove(map: LoadedMap, id: string): void {
  const { index } = map;
  const [row, last] = [pointOf(map, id)!, countOf(map) - 1];
  const lastId = idOf(map, last);
  const vector = index.get(lastId)!;
  index.delete(lastId);
  if (row < last) {
    index.delete(id);
    // A new id gets the row that was freed last.
    index.upsert(lastId, vector);
    for (const points of [map.points, map.laidOut]) points?.copyWithin(2 * row, 2 * last, 2 * last + 2);
    for (const values of [map.values, map.sizeValues]) values[row] = values[last] ?? null;
  }
  map.points = map.points.slice(0, 2 * last);
  map.laidOut = map.laidOut?.slice(0, 2 * last);
  for (const values of [map.values, map.sizeValues]) values.length = Math.min(values.length, last);
}
