/**
 * Segments that came in faster than they can be coded: many at once, before anybody searches them. They are coded when the
 * host has nothing else to do; until then a search of one query reads their float32. Which rows are coded is told by the
 * stale bits, as always: this decides only when.
 */
import { segmentPtr, segmentRows, staleCountPtr } from "../rows/rows";
import { refreshSegment } from "./refresh";
import { workWhileLoading } from "./schedule";

/** Those that wait are among these. */
let next: u32 = 0;
let end: u32 = 0;

/** Segment `s` is full, and none of its rows is coded. */
export function deferSegment(s: u32): void {
  next = hasDeferred() ? min(next, s) : s;
  end = max(end, s + 1);
}

export function hasDeferred(): bool {
  return next < end;
}

/** Codes one, and does its share of learning: about 10 ms. @returns whether others wait. */
export function codeDeferred(): bool {
  while (hasDeferred()) {
    const segment = segmentPtr(next++);
    // What has changed since then is coded when it is searched.
    if (load<u32>(staleCountPtr(segment)) !== segmentRows) continue;
    refreshSegment(segment);
    workWhileLoading();
    break;
  }
  return hasDeferred();
}
