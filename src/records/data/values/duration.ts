/** Durations as requests write them: `12h`, `500ms`. */
const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;

/** `12h` in milliseconds; undefined if it is not a duration, or is longer than a thousand years. */
export function parseDurationMs(text: unknown): number | undefined {
  const match = typeof text === "string" ? /^(\d{1,15})(d|h|m|s|ms)$/.exec(text) : null;
  if (match === null) return undefined;
  const ms = Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS];
  return ms <= 1_000 * 366 * UNITS_MS.d ? ms : undefined;
}
