/** PostgreSQL counts from 2000-01-01, we count from 1970. */
const EPOCH_MICROSECONDS = 946_684_800_000_000n;
/** The infinities are what PostgreSQL itself uses for them. */
const LATEST = 2n ** 63n - 1n;
const EARLIEST = -(2n ** 63n);

/** @param stored  a timestamptz as PostgreSQL stores and sends it. @returns microseconds since 1970. */
export function microsecondsOf(stored: bigint): bigint {
  return stored === LATEST || stored === EARLIEST ? stored : stored + EPOCH_MICROSECONDS;
}
