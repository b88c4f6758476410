/** Updates the codes and sketches of a segment's rows. */
import { encodeSegment } from "../codes/codes";
import { segmentRows, staleCountPtr, stalePtr } from "../rows/rows";
import { allowanceLeft, spend } from "./schedule";
import { dropSketches, hasSketches, sketchingCost, sketchRows } from "./sketches";

/**
 * Codes the stale rows of a segment. Also sketches them if the segment has sketches and the allowance lasts;
 * otherwise the segment has no sketches until it does (schedule.ts).
 */
export function refreshSegment(segment: usize): void {
  const stale = load<u32>(staleCountPtr(segment));
  if (stale === 0) return;
  if (hasSketches(segment)) {
    // A few rows cost as much as a block of four for each of their blocks.
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
