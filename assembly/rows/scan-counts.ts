/** What the last search did, for measurements. */

/**
 * Bytes of rows that were read: codes, metadata and float32. Repeated reads count each time. Bits that say
 * which rows are selected do not count.
 */
let bytes: u64 = 0;
/** Rows whose whole code was read. */
let fullRows: u64 = 0;
/** Rows scored from float32 because their codes did not rule them out. */
let exactRows: u64 = 0;
/** Rows read from outside linear memory, with those between two wanted ones that were read along. */
let fetchedRows: u64 = 0;

export function resetScanCounts(): void {
  bytes = 0;
  fullRows = 0;
  exactRows = 0;
  fetchedRows = 0;
}

export function countBytes(count: u64): void {
  bytes += count;
}

export function countFullRows(count: u64): void {
  fullRows += count;
}

export function countExactRows(count: u64): void {
  exactRows += count;
}

export function countFetchedRows(count: u64): void {
  fetchedRows += count;
}

export function scannedBytes(): f64 {
  return <f64>bytes;
}

export function fullRowCount(): f64 {
  return <f64>fullRows;
}

export function exactRowCount(): f64 {
  return <f64>exactRows;
}

export function fetchedRowCount(): f64 {
  return <f64>fetchedRows;
}
