/**
 * Rows that are left after all bounds. A few are gathered, so that their float32 are fetched together, and
 * then scored.
 */
import { costLimit } from "../exact/cost-limit";
import { beginWanted, wantFloats } from "../exact/fetched";
import { scoreRow } from "../exact/float-scan";
import { Query } from "../exact/query";
import { segmentPtr, segmentRows, segmentShift } from "../rows/rows";

const MAX_LISTED: u32 = 8;
/** Entries: row u32, bound f32. */
const list = memory.data(64, 16);
let listed: u32 = 0;

/** Rows scored since beginSurvivors. */
export let scoredRows: u32 = 0;

export function beginSurvivors(): void {
  listed = 0;
  scoredRows = 0;
}

/** Adds a row that its bound does not rule out yet. */
export function listSurvivor(query: Query, row: u32, bound: f32): void {
  const at = list + ((<usize>listed) << 3);
  store<u32>(at, row);
  store<f32>(at, bound, 4);
  listed++;
  if (listed === MAX_LISTED) scoreListed(query);
}

/** Scores the listed rows, except those whose bounds have been overtaken by a limit raised meanwhile. */
export function scoreListed(query: Query): void {
  const end = list + ((<usize>listed) << 3);
  listed = 0;
  beginWanted();
  for (let at = list; at < end; at += 8) wantFloats(segmentPtr(load<u32>(at) >> segmentShift), load<u32>(at) & (segmentRows - 1));
  for (let at = list; at < end; at += 8) {
    if (load<f32>(at, 4) > costLimit(query, query.heap.threshold)) continue;
    const row = load<u32>(at);
    const local = row & (segmentRows - 1);
    scoredRows++;
    scoreRow(query, segmentPtr(row >> segmentShift), local, row - local);
  }
}
