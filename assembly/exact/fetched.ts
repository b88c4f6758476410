/**
 * Where the float32 of rows are, for the exact score (what other engines call re-ranking or rescoring reads them, too, but of
 * candidates alone). A plan first says which rows it may score (it "wants" them), some at a time, and then
 * asks for their addresses. Rows in memory are loaded when they are wanted: independent loads wait for memory together.
 * Rows outside are read together when the first address is asked for, in the order of their places, with short gaps read
 * along (a batched read), and each is checked.
 *
 * Invariant: a row that comes from outside is the one that was written, and coded, so the bounds hold for it: its checksum
 * is the same. Otherwise the host is told, and the search ends with its error.
 */
import { damagedRow, fetchRows } from "../host";
import { allocate } from "../rows/memory";
import { checksumsPtr, floatsPtr, isOutside, placesPtr, squaresPtr, stride, strideBytes } from "../rows/rows";
import { countFetchedRows } from "../rows/scan-counts";
import { checksumOf } from "./checksum";

/** Rows that may be wanted at a time. */
export const MAX_WANTED: u32 = 64;
/** A gap between two wanted rows that is read along: another system call costs more than these bytes. */
const MAX_GAP_BYTES: usize = 8192;

/** Rows outside that are wanted, in the order in which they were named. */
@unmanaged
class Wanted {
  place: u32;
  segment: usize;
  row: u32;
  /** Of its float32, once they were read. */
  address: usize;
}
const wanted = memory.data(16 * 64, 16);
/** u8[64]: their numbers in the order of their places. */
const byPlace = memory.data(64, 16);
let wantedCount: u32 = 0;
let isFetched: bool = false;
/** Rows are mostly asked for in the order in which they were wanted: where the next one is looked for. */
let cursor: u32 = 0;

/** Runs of places that the host reads: | first place u32 | rows u32 | address u32 |. */
const runs = memory.data(12 * 64, 16);
let scratch: usize = 0;
let gapRows: u32 = 0;

/** @returns false at the memory limit. */
export function initializeFetched(): bool {
  if (!isOutside) return true;
  gapRows = <u32>(MAX_GAP_BYTES / strideBytes());
  scratch = allocate(<u64>MAX_WANTED * <u64>(1 + gapRows) * <u64>strideBytes());
  return scratch !== 0;
}

function wantedAt(i: u32): Wanted {
  return changetype<Wanted>(wanted + ((<usize>i) << 4));
}

/** Begins a list of at most MAX_WANTED rows. Addresses of the previous one are no longer valid. */
export function beginWanted(): void {
  wantedCount = 0;
  isFetched = false;
  cursor = 0;
}

let touched: u32 = 0;

/** Names a live row of a segment that may be asked for. */
export function wantFloats(segment: usize, row: u32): void {
  const floats = floatsPtr(segment);
  let sum = <u32>load<u8>(squaresPtr(segment) + ((<usize>row) << 3));
  if (floats !== 0) {
    const x = floats + <usize>row * strideBytes();
    for (let at: usize = 0; at < strideBytes(); at += 64) sum += load<u8>(x + at);
  } else {
    const own = wantedAt(wantedCount++);
    own.place = load<u32>(placesPtr(segment) + ((<usize>row) << 2));
    own.segment = segment;
    own.row = row;
  }
  touched = sum;
}

/** Address of the f32[stride] of a row that is in memory or was wanted. */
export function rowFloats(segment: usize, row: u32): usize {
  const floats = floatsPtr(segment);
  if (floats !== 0) return floats + <usize>row * strideBytes();
  if (!isFetched) fetchWanted();
  while (true) {
    const own = wantedAt(cursor);
    if (own.segment === segment && own.row === row) return own.address;
    if (++cursor === wantedCount) cursor = 0;
  }
}

/** The same for a single row. Ends the list. */
export function singleRow(segment: usize, row: u32): usize {
  beginWanted();
  wantFloats(segment, row);
  return rowFloats(segment, row);
}

/** Number of the i-th wanted row in the order of places. */
function sortedAt(i: u32): u32 {
  return <u32>load<u8>(byPlace + <usize>i);
}

/** Reads and checks the wanted rows. */
function fetchWanted(): void {
  for (let i: u32 = 0; i < wantedCount; i++) {
    const place = wantedAt(i).place;
    let at = i;
    for (; at > 0 && wantedAt(sortedAt(at - 1)).place > place; at--) store<u8>(byPlace + <usize>at, <u8>sortedAt(at - 1));
    store<u8>(byPlace + <usize>at, <u8>i);
  }
  let runCount = 0;
  let to = scratch;
  let first: u32 = 0;
  let end: u32 = 0;
  for (let i: u32 = 0; i < wantedCount; i++) {
    const own = wantedAt(sortedAt(i));
    if (i === 0) first = own.place;
    else if (own.place > end + gapRows) {
      addRun(runCount++, first, end, to);
      to += <usize>(end - first) * strideBytes();
      first = own.place;
    }
    own.address = to + <usize>(own.place - first) * strideBytes();
    end = own.place + 1;
  }
  addRun(runCount++, first, end, to);
  fetchRows(runs, runCount);
  for (let i: u32 = 0; i < wantedCount; i++) {
    const own = wantedAt(i);
    if (!isIntact(own)) damagedRow(own.place);
  }
  isFetched = true;
}

function addRun(i: i32, first: u32, end: u32, to: usize): void {
  const run = runs + <usize>i * 12;
  store<u32>(run, first);
  store<u32>(run, end - first, 4);
  store<u32>(run, <u32>to, 8);
  countFetchedRows(end - first);
}

/** Whether what was read is what was written. */
function isIntact(own: Wanted): bool {
  return checksumOf(own.address, stride) === load<u32>(checksumsPtr(own.segment) + ((<usize>own.row) << 2));
}
