/** Records of the change feed as frames of one replica's definition. */
import type { ColumnValues } from "../columns/column-values.ts";
import { encodeFrame, type RecordsFrame } from "../frames/frames.ts";
import type { FeedBatch } from "../records/feed/feed-types.ts";
import type { Definition } from "./definition.ts";

/**
 * @param tellsLeft  whether records that do not pass the filter are said to be gone: they may have been there before.
 * @returns undefined when there is nothing to say.
 */
export function batchFrame(definition: Definition, batch: FeedBatch, tellsLeft: boolean): Uint8Array<ArrayBuffer> | undefined {
  const isIn = definition.select(batch);
  const places: number[] = [];
  const deleted: string[] = tellsLeft ? [...batch.deleted] : [];
  batch.ids.forEach((id, place) => {
    if (isIn(place)) places.push(place);
    else if (tellsLeft) deleted.push(id);
  });
  if (places.length === 0 && deleted.length === 0) return undefined;
  const values: (readonly unknown[] | null)[] = [];
  const present: (readonly number[] | "all" | null)[] = [];
  const vectors: Float32Array[] = [];
  for (const { name } of definition.columns) {
    const column = batch.columns.get(name)!;
    if (column.kind === "vector") {
      const taken = takeVectors(column, places);
      values.push(null);
      present.push(taken.rows.length === places.length ? "all" : taken.rows);
      vectors.push(taken.elements);
    } else {
      values.push(places.map((place) => jsonValue(column, place)));
      present.push(null);
    }
  }
  const frame: RecordsFrame = {
    type: "records",
    ids: places.map((place) => batch.ids[place]!),
    values,
    ...(present.some((rows) => Array.isArray(rows)) && { present }),
    ...(deleted.length > 0 && { deleted }),
  };
  return encodeFrame(frame, vectors);
}

/** Of the records at `places` (ascending), those that have a vector, counted from 0, and these. */
function takeVectors(column: ColumnValues & { kind: "vector" }, places: readonly number[]): { rows: number[]; elements: Float32Array } {
  const { dimension, elements } = column;
  const at = new Map([...column.rows].map((place, n) => [place, n]));
  const rows: number[] = [];
  const taken = new Float32Array(places.length * dimension);
  places.forEach((place, i) => {
    const n = at.get(place);
    if (n === undefined) return;
    taken.set(elements.subarray(n * dimension, (n + 1) * dimension), rows.length * dimension);
    rows.push(i);
  });
  return { rows, elements: taken.subarray(0, rows.length * dimension) };
}

function jsonValue(column: Exclude<ColumnValues, { kind: "vector" }>, place: number): unknown {
  const value = column.values[place] ?? null;
  if (typeof value === "bigint") return value.toString();
  // What JSON has no number for.
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}
