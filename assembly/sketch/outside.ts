/**
 * Out-of-core vectors: where rows go whose float32 are kept outside linear memory (rows/rows.ts, exact/fetched.ts). Rows
 * that come in have a write buffer, of which there is a pool of two. A segment is in one of three states:
 *
 *            a row comes, and a block is free        its block is wanted, or an image is written
 *   EMPTY  ------------------------------------>  OPEN  -------------------------------------->  CLOSED
 *   no rows                                  float32 in a block,                      float32 outside, each row
 *     ^                                      coded when searched                      coded and with a place
 *     |                                                                                      |
 *     +---------------------------------- its last row is cleared ---------------------------+
 *
 * A row that is written again in a closed segment is coded at once, by the segment's centre, and goes to a place of its
 * own.
 *
 * Invariants: a live row of a closed segment has a place and a checksum, is coded, and no other row has this place. The host is asked
 * for room before anything changes: when it has none, an error of its own ends the call, and all is as before.
 */
import { encodeRow } from "../codes/codes";
import { checksumOf } from "../exact/checksum";
import { freePlace, storeRows } from "../host";
import { allocate } from "../rows/memory";
import {
  bitAt,
  checksumsPtr,
  floatsPtr,
  isOutside,
  livePtr,
  NO_PLACE,
  noteRow,
  placesPtr,
  segmentCount,
  segmentPtr,
  segmentRows,
  segmentShift,
  setFloatsPtr,
  stagingPtr,
  stride,
  strideBytes,
} from "../rows/rows";
import { refreshSegment } from "./refresh";
import { hasSketches, sketchRowAt } from "./sketches";

/** Segments that may be open: two, so that a row which comes back to the one before does not close the last. */
const BLOCKS: u32 = 2;
/** u32[BLOCKS] each: addresses of f32[segmentRows × stride], and of the segments that have them, or 0. */
const blocks = memory.data(8, 4);
const owners = memory.data(8, 4);
let blockCount: u32 = 0;
/** u32: where the host writes the place of a single row. */
const newPlace = memory.data(4, 4);
/** The block that is taken next. */
let nextBlock: u32 = 0;

/** Makes room for the first segments' float32. @returns false at the memory limit. */
export function reserveBlocks(): bool {
  if (!isOutside) return true;
  while (blockCount < min(BLOCKS, segmentCount)) {
    const block = allocate(<u64>segmentRows * <u64>strideBytes());
    if (block === 0) return blockCount > 0;
    store<u32>(blocks + ((<usize>blockCount) << 2), <u32>block);
    blockCount++;
  }
  return true;
}

function hasLiveRows(segment: usize): bool {
  for (let w: usize = 0; w < <usize>segmentRows >> 3; w += 4) if (load<u32>(livePtr(segment) + w) !== 0) return true;
  return false;
}

/**
 * Sees to it that the segment of a row which is to be set has its float32 in memory, if it is empty or open. @returns
 * false if it is closed: then the row is set by writeOutside.
 */
export function openForRow(row: u32): bool {
  const segment = segmentPtr(row >> segmentShift);
  if (!isOutside || floatsPtr(segment) !== 0) return true;
  if (hasLiveRows(segment)) return false;
  const at = (<usize>nextBlock) << 2;
  const owner = <usize>load<u32>(owners + at);
  if (owner !== 0) closeSegment(owner);
  store<u32>(owners + at, <u32>segment);
  setFloatsPtr(segment, <usize>load<u32>(blocks + at));
  nextBlock = (nextBlock + 1) % blockCount;
  return true;
}

/** Stores the staged vector at a row of a closed segment. */
export function writeOutside(row: u32): void {
  const segment = segmentPtr(row >> segmentShift);
  const local = row & (segmentRows - 1);
  storeRows(stagingPtr(), 1, newPlace);
  freePlaceOf(segment, local);
  store<u32>(placeOf(segment, local), load<u32>(newPlace));
  keepChecksum(segment, local, stagingPtr());
  noteRow(segment, local);
  encodeRow(segment, local, stagingPtr());
  if (hasSketches(segment)) sketchRowAt(segment, local, stagingPtr());
}

/** Call it when a row was cleared. */
export function forgetPlace(row: u32): void {
  if (isOutside) freePlaceOf(segmentPtr(row >> segmentShift), row & (segmentRows - 1));
}

export function closeIfOpen(segment: usize): void {
  if (floatsPtr(segment) !== 0) closeSegment(segment);
}

/** Codes the rows of an open segment and stores their float32 outside. */
function closeSegment(segment: usize): void {
  refreshSegment(segment);
  let end = segmentRows;
  while (end > 0 && !bitAt(livePtr(segment), end - 1)) end--;
  if (end > 0) {
    storeRows(floatsPtr(segment), end, placesPtr(segment));
    for (let row: u32 = 0; row < end; row++) {
      if (bitAt(livePtr(segment), row)) keepChecksum(segment, row, floatsPtr(segment) + <usize>row * strideBytes());
      else freePlaceOf(segment, row);
    }
  }
  setFloatsPtr(segment, 0);
  for (let i: u32 = 0; i < blockCount; i++) {
    const owner = owners + ((<usize>i) << 2);
    if (<usize>load<u32>(owner) === segment) store<u32>(owner, 0);
  }
}

function keepChecksum(segment: usize, local: u32, x: usize): void {
  store<u32>(checksumsPtr(segment) + ((<usize>local) << 2), checksumOf(x, stride));
}

function placeOf(segment: usize, local: u32): usize {
  return placesPtr(segment) + ((<usize>local) << 2);
}

function freePlaceOf(segment: usize, local: u32): void {
  const place = load<u32>(placeOf(segment, local));
  if (place === NO_PLACE) return;
  store<u32>(placeOf(segment, local), NO_PLACE);
  freePlace(place);
}
