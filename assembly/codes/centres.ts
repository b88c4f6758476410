/**
 * Centres of segments. Segments whose rows have about the same mean share one, so a query is coded only once
 * for all of them.
 *
 *   centre: | segments that have it u32 | next free one u32 | unused
 *           | f32[codeDimension], padding 0, on a cache line |
 *
 * Invariant: a centre that a segment has does not change. So its address identifies it for as long as a
 * search may have coded queries for it: a segment's centre changes only in encodeSegment, which comes before
 * the search's first look at the segment.
 */
import { allocate } from "../rows/memory";
import { centreOf, codeDimension, dimension, segmentCount, segmentPtr, setCentre } from "../rows/rows";

const HEADER_BYTES: usize = 64;

/**
 * A centre is near enough if Σ|y|² is at most this much larger than with the mean: the rows' norms, and with
 * them the losses, then grow by 4 %.
 */
const NEAR: f64 = 0.08;

/** The most recently made centre, or 0. */
let latest: usize = 0;
let firstFree: usize = 0;
/** f32[codeDimension]: a centre that was read from an image. */
let incoming: usize = 0;

function segmentsOf(centre: usize): u32 {
  return load<u32>(centre - HEADER_BYTES);
}

function setSegmentsOf(centre: usize, count: u32): void {
  store<u32>(centre - HEADER_BYTES, count);
}

/** Replaces the centre of a segment (0 for zero). */
function replaceCentre(segment: usize, centre: usize): void {
  const old = centreOf(segment);
  if (centre !== 0) setSegmentsOf(centre, segmentsOf(centre) + 1);
  if (old !== 0) {
    setSegmentsOf(old, segmentsOf(old) - 1);
    if (segmentsOf(old) === 0) {
      store<u32>(old - HEADER_BYTES, <u32>firstFree, 4);
      firstFree = old;
      if (latest === old) latest = 0;
    }
  }
  setCentre(segment, centre);
}

/** Σ (mean − centre)². `means` is f64[dimension]. */
function squaredDistance(means: usize, centre: usize): f64 {
  let sum: f64 = 0;
  for (let j: usize = 0; j < <usize>dimension; j++) {
    const difference = load<f64>(means + (j << 3)) - <f64>load<f32>(centre + (j << 2));
    sum += difference * difference;
  }
  return sum;
}

function newCentre(means: usize): usize {
  let centre = firstFree;
  if (centre !== 0) {
    firstFree = <usize>load<u32>(centre - HEADER_BYTES, 4);
  } else {
    const block = allocate(HEADER_BYTES + ((<u64>codeDimension) << 2));
    if (block === 0) return 0;
    centre = block + HEADER_BYTES;
  }
  setSegmentsOf(centre, 0);
  for (let j: usize = 0; j < <usize>dimension; j++) store<f32>(centre + (j << 2), <f32>load<f64>(means + (j << 3)));
  latest = centre;
  return centre;
}

/** Where the host writes the f32[codeDimension] that adoptCentre takes; 0 at the memory limit. */
export function emptyCentre(): usize {
  if (incoming === 0) incoming = allocate((<u64>codeDimension) << 2);
  return incoming;
}

/** Gives a segment the centre at emptyCentre(): the one of another segment if it is the same. @returns false at the memory limit. */
export function adoptCentre(segment: usize): bool {
  const bytes = (<usize>codeDimension) << 2;
  let centre: usize = 0;
  // Mostly that of the segment before, so the last ones are looked at first.
  for (let s = segmentCount; s > 0 && centre === 0; s--) {
    const other = centreOf(segmentPtr(s - 1));
    if (other !== 0 && memory.compare(other, incoming, bytes) === 0) centre = other;
  }
  if (centre === 0) {
    const block = allocate(HEADER_BYTES + <u64>bytes);
    if (block === 0) return false;
    centre = block + HEADER_BYTES;
    memory.copy(centre, incoming, bytes);
  }
  replaceCentre(segment, centre);
  return true;
}

/** Removes the centre of a segment. @returns whether it had one. */
export function clearCentre(segment: usize): bool {
  if (centreOf(segment) === 0) return false;
  replaceCentre(segment, 0);
  return true;
}

/**
 * Gives a segment a centre near the mean of its rows: its own, the latest one, or a new one.
 *
 * @param means  f64[dimension].
 * @param variance  The mean of Σ|x − mean|² over its rows.
 * @returns whether the centre changed; never when memory is at its limit.
 */
export function moveCentre(segment: usize, means: usize, variance: f64): bool {
  const limit = NEAR * Math.max(0, variance);
  const old = centreOf(segment);
  if (old !== 0 && squaredDistance(means, old) <= limit) return false;
  const centre = latest !== 0 && squaredDistance(means, latest) <= limit ? latest : newCentre(means);
  if (centre === 0) return false;
  replaceCentre(segment, centre);
  return true;
}
