/**
 * Decides when a shard learns and makes sketches (learn.ts, sketches.ts), so that nobody waits for it and
 * nobody pays for work that does not pay.
 *
 * - While rows come in: a shard that holds much already learns at once, because it will be searched for long.
 *   Each segment that comes in pays a part of the work.
 * - In searches: fewer rows, and rows that came in one by one, are learnt from once searches have read so
 *   much that learning adds only a small share to the time they took (SHARE_OF_SEARCHES). A small set that is
 *   searched a few times is not slowed down noticeably, nor is a set in which there is nothing to learn. Then
 *   each search does a bounded part.
 * - Learning is repeated when several times as many rows were written as there were.
 */
import { encodeSegment } from "../codes/codes";
import { floatsPtr, liveRows, capacity as reservedRows, segmentCount, segmentPtr, segmentRows, stride } from "../rows/rows";
import { projectionCost, sketchDimension } from "./basis";
import { beginLearning, isLearning, largestDimension, learningCost, learnOn, stopSketching } from "./learn";
import { leaveSegment, readSegment } from "./segment-copy";
import { hasSketches, sketchingCost, sketchSegment } from "./sketches";

/** With fewer dimensions there is too little that a sketch could leave out. */
const MIN_DIMENSION: i32 = 96;
/** While rows come in, nothing is learnt from less than this many bytes of float32: 64 MiB. */
const MIN_BYTES_OF_LOAD: u64 = 67108864;
/** Nor from fewer than one in this many of the rows that there is room for. */
const LOAD_SHARE: u32 = 4;
/**
 * Minimum number of rows per direction. B and learning then take 1/32 of the rows' memory, and projecting a
 * query costs little.
 */
const ROWS_PER_DIMENSION: u32 = 64;
/** The minimum for tests. */
const ROWS_PER_DIMENSION_NOW: u32 = 4;
/**
 * Bytes that searches read per multiplication of learning: reading 1 or 2 bytes takes as long as a
 * multiplication, and learning may take 1/32 of the searches' time.
 */
const SHARE_OF_SEARCHES: i64 = 64;
/**
 * Multiplications for sketches in one search: about 12 ms, and as much again or twice that for the segment
 * that it ends with.
 */
const WORK_OF_SEARCH: i64 = 150000000;
/** Learnt again when this many times as many rows were written as there were. */
const RELEARN: u32 = 3;

/** Rows written since learning last began, and how many have to be written before it begins again. */
let written: u32 = 0;
let wanted: u32 = 1;
/** Bytes read since then by searches that sketches could have helped. */
let searchedBytes: i64 = 0;
/** Multiplications that may be done now. */
let allowance: i64 = 0;

/** Call it for each row that is written. */
export function noteWritten(): void {
  written++;
}

/** Call it when a segment has come in: it pays for its own sketches and a part of the learning. */
export function workWhileLoading(): void {
  const rows = max<u64>(MIN_BYTES_OF_LOAD / ((<u64>stride) << 2), <u64>(reservedRows() / LOAD_SHARE));
  work((3 * <i64>segmentRows * projectionCost(largestDimension())) / 2, <u64>liveRows >= rows);
}

/** Call it before a search that sketches could help. */
export function workInSearch(): void {
  work(WORK_OF_SEARCH, searchedBytes >= SHARE_OF_SEARCHES * learningCost(dimensionsToLearn()));
}

/** Call it after that search. @param bytes  what it read. */
export function noteSearched(bytes: i64): void {
  searchedBytes += bytes;
}

/**
 * Call it before any other search. Only the sketches of changed rows are made. @param mayWork  false: nor are
 * these.
 */
export function refreshInSearch(mayWork: bool): void {
  allowance = mayWork ? WORK_OF_SEARCH : 0;
}

/**
 * For tests: learns if there is anything new, whether it pays or not, and sketches all rows, however long it
 * takes.
 */
export function learnNow(): void {
  allowance = i64.MAX_VALUE >> 1;
  if (stride < MIN_DIMENSION) return;
  const dimensions = directionsFor(liveRows / ROWS_PER_DIMENSION_NOW);
  if (!isLearning() && dimensions > 0 && (sketchDimension === 0 || written >= wanted)) begin(dimensions, true);
  workOn();
}

/**
 * Learns and sketches for about `multiplications`.
 *
 * @param mayBegin  whether to start learning again, if enough rows were written.
 */
function work(multiplications: i64, mayBegin: bool): void {
  allowance = multiplications;
  if (stride < MIN_DIMENSION) return;
  const dimensions = dimensionsToLearn();
  if (!isLearning() && mayBegin && written >= wanted && dimensions > 0) begin(dimensions, false);
  workOn();
}

function begin(dimensions: i32, isForced: bool): void {
  written = 0;
  wanted = RELEARN * liveRows;
  searchedBytes = 0;
  beginLearning(dimensions, isForced);
}

function workOn(): void {
  while (isLearning() && allowance > 0) allowance -= learnOn();
  if (sketchDimension === 0) return;
  for (let s: u32 = 0; s < segmentCount && allowance > 0; s++) {
    const segment = segmentPtr(s);
    if (hasSketches(segment)) continue;
    allowance -= sketchingCost(segmentRows);
    encodeSegment(segment);
    const isRead = floatsPtr(segment) === 0;
    const isSketched = (!isRead || readSegment(segment)) && sketchSegment(segment);
    if (isRead) leaveSegment(segment);
    if (!isSketched) {
      stopSketching();
      return;
    }
  }
}

/** Call it when rows were read from an image, whose basis was learnt from as many. */
export function noteAdopted(): void {
  written = 0;
  wanted = RELEARN * liveRows;
}

/** Number of directions to learn, if any. */
function dimensionsToLearn(): i32 {
  return directionsFor(reservedRows() / ROWS_PER_DIMENSION);
}

/** A multiple of 32. */
function directionsFor(most: u32): i32 {
  return min(largestDimension(), <i32>most & ~31);
}

/** Multiplications left of the current allowance. */
export function allowanceLeft(): i64 {
  return allowance;
}

export function spend(multiplications: i64): void {
  allowance -= multiplications;
}
