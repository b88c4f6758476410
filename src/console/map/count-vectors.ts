/** Asks how many vectors there are to load, before they are loaded. */
import { call } from "../api/client.ts";
import { type Place, tablePath } from "../api/paths.ts";

/** Records that fit the filter and have a vector in the column. */
export async function countVectors(place: Place, table: string, column: string, filter: unknown): Promise<number> {
  const hasVector = { $exists: column };
  const all = filter === undefined ? hasVector : { $all: [hasVector, filter] };
  const body = { aggs: { rows: { count: { filter: all } } } };
  return (await call<{ aggs: { rows: number } }>("POST", `${tablePath(place, table)}/aggregate`, body)).aggs.rows;
}
