/** Brings what is kept beside the rows of a segment up to date. */
import { encodeSegment } from "../codes/codes";
import { segmentRows, staleCountPtr, stalePtr } from "../rows/rows";
import { allowanceLeft, spend } from "./schedule";
import { dropSketches, hasSketches, sketchingCost, sketchRows } from "./sketches";

/**
 * Codes the stale rows of a segment, and sketches them where the segment has sketches and time is left; else the segment does without until
 * there is (schedule.ts).
 */
export function refreshSegment(segment: usize): void {
  const stale = load<u32>(staleCountPtr(segment));
  if (stale === 0) return;
  if (hasSketches(segment)) {
    // Few rows cost as much as a block of four for each block of them.
    const cost = sketchingCost(min(segmentRows, 4 * ((stale + 3) >> 2)));
    if (cost <= allowanceLeft()) {
      spend(cost);
      sketchRows(segment, stalePtr(segment));
    } else {
      dropSketches(segment);
    }
  }
  encodeSegment(segment);
}
