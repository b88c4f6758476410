/** Points in time on their way out: from microseconds since 1970, as text, to RFC 3339 in UTC. */

/**
 * Always with milliseconds, as in `Date.toISOString`, and with microseconds if there are any. What is not a
 * number (`infinity`, by SQL) stays as it is.
 */
export function formatTimestamp(micros: string): string {
  if (!/^-?\d+$/.test(micros)) return micros;
  const all = BigInt(micros);
  const within = Number(((all % 1000n) + 1000n) % 1000n);
  const date = new Date(Number((all - BigInt(within)) / 1000n));
  // Beyond what a Date can be (the year 275760): PostgreSQL goes further.
  if (Number.isNaN(date.getTime())) return `${micros} µs since 1970`;
  const text = date.toISOString();
  return within === 0 ? text : `${text.slice(0, -1)}${String(within).padStart(3, "0")}Z`;
}
