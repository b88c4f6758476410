/** Numbers and times in words. */
const KB = 1_000;
const MB = 1_000 * KB;
const GB = 1_000 * MB;

/** "0", "3 kB", "1.5 MB", "192 MB", "2.3 GB". */
export function sizeInWords(bytes: number): string {
  if (bytes >= GB) return `${(bytes / GB).toFixed(1)} GB`;
  if (bytes >= MB) return `${(bytes / MB).toFixed(bytes < 10 * MB ? 1 : 0)} MB`;
  return bytes === 0 ? "0" : `${Math.ceil(bytes / KB)} kB`;
}

/** "25 Nov 2026". */
export const dayInWords = (time: string): string => new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" }).format(new Date(time));

/** "25 Nov 2026, 10:58". */
export const timeInWords = (time: string): string =>
  new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" }).format(new Date(time));

/** A value of a record, in UTC as everywhere: "25 Nov 2026", or "25 Nov 2026, 10:58 UTC" if it is not midnight. */
export function valueInWords(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const isDay = date.getTime() % 86_400_000 === 0;
  const format = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", ...(isDay ? {} : { timeStyle: "short" }), timeZone: "UTC" });
  return isDay ? format.format(date) : `${format.format(date)} UTC`;
}

/** "1 table", "3 tables". */
export const counted = (many: number, one: string): string => `${many.toLocaleString("en")} ${one}${many === 1 ? "" : "s"}`;

/** Six significant digits, without an exponent if that is readable. */
export function shortNumber(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(5))) : value.toExponential(3);
}
