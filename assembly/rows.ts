/**
 * Rows in linear memory, in segments of a fixed number of rows, so that growing never moves what is there.
 *
 *   segment: | live bits u32[rows/32] | squares f64[rows] | float32[rows][stride] |        each part on a cache line
 *
 * Invariants: stride is the dimension rounded up to 4 and padding elements are +0; bits of rows that were never set are 0;
 * squares[row] is exactSquares of the row.
 */
import { exactSquares } from "./exact";
import { allocate } from "./memory";

/** What a segment's float32 part should come to: large enough to stream, small enough that a little column stays little. */
const SEGMENT_TARGET_BYTES: u32 = 2 << 20;
const MIN_SEGMENT_ROWS: u32 = 32;
const MAX_SEGMENT_ROWS: u32 = 4096;
/** 4 GiB / the smallest segment (4096 rows of 16 bytes and their metadata) is below this. */
const MAX_SEGMENTS: u32 = 49152;

export let dimension: i32 = 0;
/** Elements between two rows. */
export let stride: i32 = 0;
export let segmentRows: u32 = 0;
export let segmentShift: u32 = 0;
export let segmentCount: u32 = 0;
export let liveRows: u32 = 0;

let segmentTablePtr: usize = 0;
let segmentTableCapacity: u32 = 0;
let stagingRowPtr: usize = 0;
let squaresOffset: usize = 0;
let floatsOffset: usize = 0;
let segmentBytes: u64 = 0;

function roundUp(bytes: u64): u64 {
  return (bytes + 63) & ~63;
}

/** @returns false when memory does not suffice even for an empty shard. */
export function initializeRows(dim: i32): bool {
  dimension = dim;
  stride = (dim + 3) & ~3;
  segmentRows = MAX_SEGMENT_ROWS;
  segmentShift = 12;
  while (segmentRows > MIN_SEGMENT_ROWS && segmentRows * ((<u32>stride) << 2) > SEGMENT_TARGET_BYTES) {
    segmentRows >>= 1;
    segmentShift--;
  }
  const rows = <u64>segmentRows;
  squaresOffset = <usize>roundUp(rows >> 3);
  floatsOffset = <usize>roundUp(<u64>squaresOffset + (rows << 3));
  segmentBytes = roundUp(<u64>floatsOffset + rows * ((<u64>stride) << 2));
  stagingRowPtr = allocate((<u64>stride) << 2);
  return stagingRowPtr !== 0;
}

/** Where the host writes the f32[dimension] that setRow then takes. */
export function stagingPtr(): usize {
  return stagingRowPtr;
}

export function capacity(): u32 {
  return segmentCount << segmentShift;
}

/** Makes room for rows 0..rows−1. @returns false at the memory limit; segments added before it stay and are usable. */
export function reserveRows(rows: u32): bool {
  const wanted = <u32>((<u64>rows + segmentRows - 1) >> segmentShift);
  if (wanted > MAX_SEGMENTS) return false;
  if (wanted > segmentTableCapacity) {
    const newCapacity = max<u32>(wanted, max<u32>(64, segmentTableCapacity * 2));
    const table = allocate((<u64>newCapacity) << 2);
    if (table === 0) return false;
    memory.copy(table, segmentTablePtr, (<usize>segmentCount) << 2);
    segmentTablePtr = table;
    segmentTableCapacity = newCapacity;
  }
  while (segmentCount < wanted) {
    const segment = allocate(segmentBytes);
    if (segment === 0) return false;
    store<u32>(segmentTablePtr + ((<usize>segmentCount) << 2), <u32>segment);
    segmentCount++;
  }
  return true;
}

export function segmentPtr(segment: u32): usize {
  return <usize>load<u32>(segmentTablePtr + ((<usize>segment) << 2));
}

export function livePtr(segment: usize): usize {
  return segment;
}

export function squaresPtr(segment: usize): usize {
  return segment + squaresOffset;
}

export function floatsPtr(segment: usize): usize {
  return segment + floatsOffset;
}

/** Address of a row's f32[stride]. */
export function rowPtr(row: u32): usize {
  return floatsPtr(segmentPtr(row >> segmentShift)) + <usize>(row & (segmentRows - 1)) * ((<usize>stride) << 2);
}

export function hasRow(row: u32): bool {
  if (row >= capacity()) return false;
  const local = row & (segmentRows - 1);
  return ((load<u32>(livePtr(segmentPtr(row >> segmentShift)) + ((<usize>(local >> 5)) << 2)) >> (local & 31)) & 1) !== 0;
}

/** @returns the index of the first NaN or infinity among f32[count] at `ptr`, or −1. */
export function firstNonFinite(ptr: usize, count: i32): i32 {
  for (let i = 0; i < count; i++) {
    const x = load<f32>(ptr + ((<usize>i) << 2));
    if (!(abs(x) <= f32.MAX_VALUE)) return i;
  }
  return -1;
}

/** Takes the staged vector (finite; checked by the host) as the row's. The row is within capacity. */
export function setRow(row: u32): void {
  const segment = segmentPtr(row >> segmentShift);
  const local = row & (segmentRows - 1);
  const x = floatsPtr(segment) + <usize>local * ((<usize>stride) << 2);
  memory.copy(x, stagingRowPtr, (<usize>dimension) << 2);
  finishRow(segment, local, x);
}

/** Takes the f32[dimension] that the host wrote at rowPtr(row) itself. */
export function commitRow(row: u32): void {
  finishRow(segmentPtr(row >> segmentShift), row & (segmentRows - 1), rowPtr(row));
}

function finishRow(segment: usize, local: u32, x: usize): void {
  store<f64>(squaresPtr(segment) + ((<usize>local) << 3), exactSquares(x, stride));
  const word = livePtr(segment) + ((<usize>(local >> 5)) << 2);
  const bits = load<u32>(word);
  const bit = (<u32>1) << (local & 31);
  if (!(bits & bit)) {
    store<u32>(word, bits | bit);
    liveRows++;
  }
}

/** @returns whether there was a vector. */
export function clearRow(row: u32): bool {
  if (!hasRow(row)) return false;
  const local = row & (segmentRows - 1);
  const word = livePtr(segmentPtr(row >> segmentShift)) + ((<usize>(local >> 5)) << 2);
  store<u32>(word, load<u32>(word) & ~((<u32>1) << (local & 31)));
  liveRows--;
  return true;
}
