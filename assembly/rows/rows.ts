/**
 * Rows in linear memory, in segments of a fixed number of rows, so that growing never moves existing data.
 *
 *   segment: | live bits | address of the centre, count of stale rows u32, state of the sketches
 *            | squares f64 | stale bits | first metadata | second metadata
 *            | heads of the codes | their tails | float32, or places u32 | checksums u32 |
 *
 * Rows may keep their float32 outside (outside.ts). A segment then has the place and the checksum of each row instead, and
 * the address of its float32 while these are in memory.
 *
 * Each part starts on a cache line and has one entry per row; the metadata has one group for four rows.
 * codes/codes.ts explains the parts of the codes.
 *
 *   first group:  | norms f32x4 | residual norms f32x4 | shifts f32x4 | steps f32x4 | losses 2 × u16x4 |
 *                 80 bytes: what a pass over all rows reads
 *   second group: | losses 2 × u16x4 | sums i32x4 | sums of the heads i32x4 |
 *                 48 bytes: l1, and many queries
 *
 * So what the bounds need of a row read at random lies in one or two cache lines, and a dense scan reads
 * nothing that it does not use.
 *
 * Invariants: stride is the dimension rounded up to 4, and padding elements are +0. Bits of rows that were
 * never set are 0. squares[row] is exactSquares of the row. The codes of a row whose stale bit is 0 belong to
 * its float32 values and its segment's centre.
 */
import { exactSquares } from "../exact/exact";
import { allocate } from "./memory";

/**
 * Target size of a segment's float32: large enough to stream, small enough that a little column stays
 * little.
 */
const SEGMENT_TARGET_BYTES: u32 = 4 << 20;
const MIN_SEGMENT_ROWS: u32 = 32;
export const MAX_SEGMENT_ROWS: u32 = 2048;
/** 4 GiB divided by the smallest segment (2048 rows of 16 bytes and 12 bytes of metadata) is below this. */
const MAX_SEGMENTS: u32 = 98304;
/**
 * Maximum number of dimensions of a code: 10,000 rounded up to 64. The proofs use it: sums of products of
 * codes stay below 2^31, and a float32 sum of that many terms has a relative error below 2^-10.
 */
export const MAX_CODE_DIMENSION: i32 = 10048;
/**
 * Below this, codes padded to 64 dimensions are hardly shorter than the rows. Chosen by size, not yet by a
 * benchmark.
 */
const MIN_CODED_DIMENSION: i32 = 48;

// Byte offsets in a first group.
/**
 * ‖x‖, f32 to nearest, 2^-40 to 2^61. It is 1 for a zero row, whose dot products are 0 whatever they are
 * divided by, and for a row that is not codable.
 */
export const NORMS: usize = 0;
/** ‖y‖ of the residual y = x − centre, f32, rounded up, at most 2^-21 too large. */
export const RESIDUAL_NORMS: usize = 16;
/** centre · y, f32. */
export const SHIFTS: usize = 32;
/** Step Δ of the codes, f32. */
export const STEPS: usize = 48;
/** Losses, the upper halves of f32s rounded up; codes/codes.ts says of what. */
export const LOSS_L2: usize = 64;
export const TAIL_NORM: usize = 72;
export const GROUP_BYTES: usize = 80;

// Byte offsets in a second group.
export const LOSS_L1: usize = 0;
export const SIX_LOSS_L2: usize = 8;
/** Σ c_j, i32, over codeDimension. */
export const CODE_SUMS: usize = 16;
/** The same over the head. */
export const HEAD_SUMS: usize = 32;
export const SECOND_GROUP_BYTES: usize = 48;

export let dimension: i32 = 0;
/** Elements from one row to the next. */
export let stride: i32 = 0;
/**
 * Dimensions of a code, and its size in bytes, a multiple of 64; 0 when the dimension is too small for codes.
 */
export let codeDimension: i32 = 0;
/**
 * Dimensions of a code's head: about five twelfths, a multiple of 64. The rest, possibly none, is its tail.
 */
export let headDimension: i32 = 0;
/** Their sizes in bytes. */
export let headBytes: usize = 0;
export let tailBytes: usize = 0;
/** Whether float32 are kept outside linear memory: only if rows have codes. */
export let isOutside: bool = false;
export let segmentRows: u32 = 0;
export let segmentShift: u32 = 0;
export let segmentCount: u32 = 0;
export let liveRows: u32 = 0;

// Offsets of a segment's parts, in bytes.
let staleOffset: usize = 0;
let squaresOffset: usize = 0;
let groupsOffset: usize = 0;
let secondGroupsOffset: usize = 0;
let centreOffset: usize = 0;
let headsOffset: usize = 0;
let tailsOffset: usize = 0;
let floatsOffset: usize = 0;
let placesOffset: usize = 0;
let checksumsOffset: usize = 0;
let segmentBytes: u64 = 0;

let segmentTablePtr: usize = 0;
let segmentTableCapacity: u32 = 0;
let stagingRowPtr: usize = 0;
let layoutEnd: u64 = 0;

/** The place of a row that has none outside. */
export const NO_PLACE: u32 = 0xffffffff;

/** Size of a row's float32. */
export function strideBytes(): usize {
  return (<usize>stride) << 2;
}

/** Bytes that scoring a row reads: its float32 and Σ x². */
export function floatBytes(): u64 {
  return ((<u64>stride) << 2) + 8;
}

/** Bytes of the first metadata of the groups of `rows` adjacent rows. */
export function groupBytes(rows: u32): u64 {
  return <u64>((rows + 3) >> 2) * <u64>GROUP_BYTES;
}

/** Lays out the next part of a segment. */
function part(bytes: u64): usize {
  const offset = <usize>layoutEnd;
  layoutEnd = (layoutEnd + bytes + 63) & ~63;
  return offset;
}

/**
 * @returns false when memory is too small even for an empty shard, or for a dimension that the proofs do not
 *   cover.
 */
export function initializeRows(dim: i32, outside: bool): bool {
  if (dim < 1 || dim > MAX_CODE_DIMENSION) return false;
  dimension = dim;
  stride = (dim + 3) & ~3;
  codeDimension = dim < MIN_CODED_DIMENSION ? 0 : (dim + 63) & ~63;
  isOutside = outside && codeDimension > 0;
  headDimension = min(codeDimension, max(64, ((codeDimension * 5) / 12 + 32) & ~63));
  headBytes = <usize>headDimension;
  tailBytes = <usize>codeDimension - headBytes;
  segmentRows = MAX_SEGMENT_ROWS;
  segmentShift = 11;
  while (segmentRows > MIN_SEGMENT_ROWS && segmentRows * ((<u32>stride) << 2) > SEGMENT_TARGET_BYTES) {
    segmentRows >>= 1;
    segmentShift--;
  }
  const rows = <u64>segmentRows;
  part(rows >> 3);
  // Next to the live bits, because every search reads both: the address of the centre, the count of stale
  // rows, three words of the sketches, and the address of the float32 when they can be outside.
  if (codeDimension > 0) centreOffset = part(64);
  squaresOffset = part(rows << 3);
  if (codeDimension > 0) {
    staleOffset = part(rows >> 3);
    groupsOffset = part((rows >> 2) * <u64>GROUP_BYTES);
    secondGroupsOffset = part((rows >> 2) * <u64>SECOND_GROUP_BYTES);
    headsOffset = part(rows * <u64>headBytes);
    tailsOffset = part(rows * <u64>tailBytes);
  }
  if (isOutside) {
    placesOffset = part(rows << 2);
    checksumsOffset = part(rows << 2);
  } else floatsOffset = part(rows * ((<u64>stride) << 2));
  segmentBytes = layoutEnd;
  stagingRowPtr = allocate((<u64>stride) << 2);
  return stagingRowPtr !== 0;
}

/** Where the host writes the f32[dimension] for setRow. */
export function stagingPtr(): usize {
  return stagingRowPtr;
}

export function capacity(): u32 {
  return segmentCount << segmentShift;
}

/**
 * Makes room for rows 0..rows−1. @returns false at the memory limit; segments added before that stay usable.
 */
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
    if (isOutside) memory.fill(placesPtr(segment), 0xff, (<usize>segmentRows) << 2);
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

/** Bits of the rows whose codes are out of date. */
export function stalePtr(segment: usize): usize {
  return segment + staleOffset;
}

/** Σ x², f64. */
export function squaresPtr(segment: usize): usize {
  return segment + squaresOffset;
}

/** Address of the first group of rows row & ~3 to row | 3. */
export function groupPtr(segment: usize, row: u32): usize {
  return segment + groupsOffset + <usize>(row >> 2) * GROUP_BYTES;
}

export function secondGroupPtr(segment: usize, row: u32): usize {
  return segment + secondGroupsOffset + <usize>(row >> 2) * SECOND_GROUP_BYTES;
}

/** Of one row. Add NORMS to STEPS to it. */
export function wordsPtr(segment: usize, row: u32): usize {
  return groupPtr(segment, row) + ((<usize>(row & 3)) << 2);
}

/** Of one row. Add LOSS_L2 or TAIL_NORM to it. */
export function lossesPtr(segment: usize, row: u32): usize {
  return groupPtr(segment, row) + ((<usize>(row & 3)) << 1);
}

/** Of one row. Add CODE_SUMS or HEAD_SUMS to it. */
export function secondWordsPtr(segment: usize, row: u32): usize {
  return secondGroupPtr(segment, row) + ((<usize>(row & 3)) << 2);
}

/** Of one row. Add LOSS_L1 or SIX_LOSS_L2 to it. */
export function secondLossesPtr(segment: usize, row: u32): usize {
  return secondGroupPtr(segment, row) + ((<usize>(row & 3)) << 1);
}

/**
 * Address of the segment's centre, f32[codeDimension], padding 0; 0 when it is zero. See codes/centres.ts.
 */
export function centreOf(segment: usize): usize {
  return <usize>load<u32>(segment + centreOffset);
}

export function setCentre(segment: usize, centre: usize): void {
  store<u32>(segment + centreOffset, <u32>centre);
}

/** u32: how many stale bits are set. */
export function staleCountPtr(segment: usize): usize {
  return segment + centreOffset + 4;
}

/**
 * The state of a segment's sketches (sketch/sketches.ts): u32 address of its block or 0, u32 number of its
 * basis or 0, u32 dimensions that the block has room for.
 */
export function sketchStatePtr(segment: usize): usize {
  return segment + centreOffset + 8;
}

/**
 * A row's code, u8[codeDimension]: u8[headBytes] here, which a search may read alone, and u8[tailBytes] at
 * tailPtr.
 */
export function headPtr(segment: usize, row: usize): usize {
  return segment + headsOffset + row * headBytes;
}

export function tailPtr(segment: usize, row: usize): usize {
  return segment + tailsOffset + row * tailBytes;
}

/** Address of f32[segmentRows × stride]; 0 when they are outside. */
export function floatsPtr(segment: usize): usize {
  return isOutside ? <usize>load<u32>(segment + centreOffset, 20) : segment + floatsOffset;
}

/** Of rows outside: where the segment's float32 are in memory, or 0. */
export function setFloatsPtr(segment: usize, floats: usize): void {
  store<u32>(segment + centreOffset, <u32>floats, 20);
}

/** Of rows outside: u32[segmentRows], the place of each, or NO_PLACE. */
export function placesPtr(segment: usize): usize {
  return segment + placesOffset;
}

/** Of rows outside: u32[segmentRows], the checksum of each that has a place (exact/checksum.ts). */
export function checksumsPtr(segment: usize): usize {
  return segment + checksumsOffset;
}

/** Size of a segment in bytes. */
export function segmentSize(): u64 {
  return segmentBytes;
}

export function bitAt(words: usize, i: u32): bool {
  return ((load<u32>(words + ((<usize>(i >> 5)) << 2)) >> (i & 31)) & 1) !== 0;
}

/** Sets bit `i` of the words. */
export function setBit(words: usize, i: u32): void {
  const at = words + ((<usize>(i >> 5)) << 2);
  store<u32>(at, load<u32>(at) | ((<u32>1) << (i & 31)));
}

function clearBit(words: usize, i: u32): void {
  const at = words + ((<usize>(i >> 5)) << 2);
  store<u32>(at, load<u32>(at) & ~((<u32>1) << (i & 31)));
}

export function hasRow(row: u32): bool {
  return row < capacity() && bitAt(livePtr(segmentPtr(row >> segmentShift)), row & (segmentRows - 1));
}

/**
 * Stores the staged vector (finite; checked by the host) at a row within capacity, of a segment whose float32 are
 * in memory. @returns how many rows of its segment are stale.
 */
export function setRow(row: u32): u32 {
  const segment = segmentPtr(row >> segmentShift);
  const local = row & (segmentRows - 1);
  memory.copy(floatsPtr(segment) + <usize>local * strideBytes(), stagingRowPtr, (<usize>dimension) << 2);
  noteRow(segment, local);
  if (codeDimension === 0) return 0;
  if (!bitAt(stalePtr(segment), local)) {
    setBit(stalePtr(segment), local);
    store<u32>(staleCountPtr(segment), load<u32>(staleCountPtr(segment)) + 1);
  }
  return load<u32>(staleCountPtr(segment));
}

/** Keeps Σx² of the staged vector, and that the row has one. */
export function noteRow(segment: usize, local: u32): void {
  store<f64>(squaresPtr(segment) + ((<usize>local) << 3), exactSquares(stagingRowPtr, stride));
  if (bitAt(livePtr(segment), local)) return;
  setBit(livePtr(segment), local);
  liveRows++;
}

/** Counts the rows of a segment that was read from an image. */
export function countAdopted(segment: usize): void {
  for (let w: usize = 0; w < <usize>segmentRows >> 3; w += 4) liveRows += popcnt(load<u32>(livePtr(segment) + w));
}

/** @returns whether there was a vector. */
export function clearRow(row: u32): bool {
  if (!hasRow(row)) return false;
  const segment = segmentPtr(row >> segmentShift);
  const local = row & (segmentRows - 1);
  clearBit(livePtr(segment), local);
  liveRows--;
  if (codeDimension > 0 && bitAt(stalePtr(segment), local)) {
    clearBit(stalePtr(segment), local);
    store<u32>(staleCountPtr(segment), load<u32>(staleCountPtr(segment)) - 1);
  }
  return true;
}
