/**
 * Points in time as microseconds since 1970 UTC, the resolution of timestamptz. Reads RFC 3339; writes a form
 * that PostgreSQL reads under any settings.
 */

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,30}))?(?:[Zz]|([+-])(\d\d):(\d\d)))?$/;

/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z. */
const FIRST_MICROS = -62_135_596_800_000_000n;
const LAST_MICROS = 253_402_300_799_999_999n;

/** Whether the text has the form of a time, valid or not. For messages. */
export function isTimestampForm(text: string): boolean {
  return RFC_3339.exec(text)?.[4] !== undefined;
}

/**
 * undefined unless the text is a real point in time of the years 1 to 9999. A date alone means its midnight in
 * UTC, unless `dateAlone` is false. Digits beyond microseconds are rounded. Offsets go up to 23:59, as in RFC
 * 3339.
 */
export function parseTimestamp(text: string, { dateAlone = true } = {}): bigint | undefined {
  const match = RFC_3339.exec(text);
  if (match === null || (!dateAlone && match[4] === undefined)) return undefined;
  const [, year, month, day, hour = "0", minute = "0", second = "0", fraction = "", sign = "+", offsetHour = "0", offsetMinute = "0"] =
    match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // A day that the month does not have has rolled over into another month.
  if (date.getUTCMonth() !== Number(month) - 1) return undefined;
  // 24:00 is refused; the leap second :60 is the next second, as PostgreSQL takes it.
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60 || Number(offsetHour) > 23 || Number(offsetMinute) > 59)
    return undefined;
  const offsetMinutes = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === "-" ? -1 : 1);
  const seconds = date.getTime() / 1000 + Number(hour) * 3600 + (Number(minute) - offsetMinutes) * 60 + Number(second);
  const digits = fraction.slice(0, 6).padEnd(6, "0");
  const roundUp = (fraction[6] ?? "0") >= "5";
  const micros = BigInt(seconds) * 1_000_000n + BigInt(digits) + (roundUp ? 1n : 0n);
  return micros >= FIRST_MICROS && micros <= LAST_MICROS ? micros : undefined;
}

/** `2026-02-28T12:00:00.000000Z`; for what `parseTimestamp` returned. */
export function formatTimestamp(micros: bigint): string {
  const within = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const milliseconds = Number((micros - within) / 1000n);
  return `${new Date(milliseconds).toISOString().slice(0, 19)}.${String(within).padStart(6, "0")}Z`;
}
