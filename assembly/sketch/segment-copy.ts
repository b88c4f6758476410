/** The float32 of a segment outside, in memory for as long as they are sketched. */
import { beginWanted, MAX_WANTED, rowFloats, wantFloats } from "../exact/fetched";
import { allocate } from "../rows/memory";
import { bitAt, livePtr, segmentRows, setFloatsPtr, strideBytes } from "../rows/rows";

/** f32[segmentRows × stride], kept for the next segment. */
let copy: usize = 0;

/** Reads the live rows of a segment. @returns false at the memory limit. */
export function readSegment(segment: usize): bool {
  if (copy === 0) copy = allocate(<u64>segmentRows * <u64>strideBytes());
  if (copy === 0) return false;
  for (let first: u32 = 0; first < segmentRows; first += MAX_WANTED) {
    const end = min(segmentRows, first + MAX_WANTED);
    beginWanted();
    for (let row = first; row < end; row++) if (bitAt(livePtr(segment), row)) wantFloats(segment, row);
    for (let row = first; row < end; row++) {
      if (bitAt(livePtr(segment), row)) memory.copy(copy + <usize>row * strideBytes(), rowFloats(segment, row), strideBytes());
    }
  }
  setFloatsPtr(segment, copy);
  return true;
}

export function leaveSegment(segment: usize): void {
  setFloatsPtr(segment, 0);
}
