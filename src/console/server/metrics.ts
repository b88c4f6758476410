/** The server's metrics: as Prometheus' text says them, and as series over the readings that are kept. */

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** By the metric's name as in the line, including `…_bucket`, `…_sum`, `…_count`. */
export type Metrics = ReadonlyMap<string, readonly Sample[]>;

/** `name{label="value",…} 1.5` */
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** Prometheus' text format as `GET /metrics` returns it: the part that the server's own metrics need. */
export function parseMetrics(text: string): Metrics {
  const metrics = new Map<string, Sample[]>();
  for (const line of text.split("\n")) {
    const [, name, labelText = "", valueText = ""] = LINE.exec(line) ?? [];
    if (name === undefined) continue;
    const labels: Record<string, string> = {};
    for (const [, label = "", value = ""] of labelText.matchAll(LABEL)) labels[label] = unescaped(value);
    const samples = metrics.get(name);
    const sample = { labels, value: valueText === "+Inf" ? Number.POSITIVE_INFINITY : Number(valueText) };
    if (samples === undefined) metrics.set(name, [sample]);
    else samples.push(sample);
  }
  return metrics;
}

const unescaped = (text: string): string => text.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));

/**
 * A gauge, or the sum of a counter over the label sets that pass. undefined if the server does not report it.
 */
export function total(metrics: Metrics, name: string, passes: (labels: Sample["labels"]) => boolean = () => true): number | undefined {
  const samples = metrics.get(name);
  return samples?.filter(({ labels }) => passes(labels)).reduce((sum, { value }) => sum + value, 0);
}

/**
 * A quantile of what a histogram counted between two readings, computed like Prometheus'
 * `histogram_quantile`: linear within a bucket.
 *
 * @param q  0 to 1.
 * @returns seconds; undefined when nothing was counted in between.
 */
function quantileBetween(before: Metrics, after: Metrics, name: string, q: number): number | undefined {
  const counts = cumulative(after, name);
  for (const [bound, count] of cumulative(before, name)) counts.set(bound, (counts.get(bound) ?? 0) - count);
  const buckets = [...counts].sort(([a], [b]) => a - b);
  const all = buckets.at(-1)?.[1] ?? 0;
  if (all <= 0) return undefined;
  const rank = q * all;
  let [low, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      // Only the lower bound of the last bucket is known.
      if (bound === Number.POSITIVE_INFINITY) return low;
      return low + (bound - low) * ((rank - below) / (count - below || 1));
    }
    [low, below] = [bound, count];
  }
  return low;
}

function cumulative(metrics: Metrics, name: string): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
    const bound = labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  return counts;
}

/** Metrics of the last minutes, and what is derived from them: rates, quantiles, sizes. */
export interface Reading {
  /** Seconds since 1970. */
  readonly time: number;
  readonly metrics: Metrics;
}

/** The values of one line of a plot, at the times of the readings; null if unknown. */
export type Series = readonly (number | null)[];

/** Five minutes of readings every two seconds, if none are older. */
const MOST_READINGS = 150;
/** Quantiles cover several recent readings, so that a single request does not cause a spike. */
const QUANTILE_READINGS = 5;

const REQUESTS = "lodestone_http_requests_total";
const SECONDS = "lodestone_http_request_duration_seconds";

/**
 * @returns the readings with the new one. When there are too many, every second of the older half is left out, so that
 *   they reach back as far as the page has been open. After a restart of the server only the new one, because its counters begin anew.
 */
export function withReading(readings: readonly Reading[], reading: Reading): readonly Reading[] {
  const last = readings.at(-1);
  const isRestarted = last !== undefined && startOf(last) !== startOf(reading);
  if (isRestarted) return [reading];
  const all = [...readings, reading];
  return all.length <= MOST_READINGS ? all : all.filter((_, i) => i % 2 === 0 || i > all.length / 2);
}

const startOf = ({ metrics }: Reading): number | undefined => total(metrics, "process_start_time_seconds");

export const gauge = (readings: readonly Reading[], name: string, scale = 1): Series =>
  readings.map(({ metrics }) => {
    const value = total(metrics, name);
    return value === undefined ? null : value * scale;
  });

/** Requests per second that pass the filter, between each reading and the previous one. */
export function requestRate(readings: readonly Reading[], passes: (labels: Readonly<Record<string, string>>) => boolean): Series {
  return readings.map(({ time, metrics }, i) => {
    const before = readings[i - 1];
    if (before === undefined || time <= before.time) return null;
    const count = (total(metrics, REQUESTS, passes) ?? 0) - (total(before.metrics, REQUESTS, passes) ?? 0);
    return Math.max(0, count) / (time - before.time);
  });
}

/** Of all requests, in milliseconds. */
export const latency = (readings: readonly Reading[], q: number): Series =>
  readings.map(({ metrics }, i) => {
    const before = readings[Math.max(0, i - QUANTILE_READINGS)];
    const seconds = before === undefined || i === 0 ? undefined : quantileBetween(before.metrics, metrics, SECONDS, q);
    return seconds === undefined ? null : seconds * 1000;
  });

/** The page's own requests for the plots should not appear in them. */
const OWN = new Set(["/metrics", "/readyz", "/livez"]);

export const isOthers = ({ endpoint }: Readonly<Record<string, string>>): boolean => !OWN.has(endpoint ?? "");
export const isSearch = ({ endpoint = "" }: Readonly<Record<string, string>>): boolean => /\/(vectorSearch|search|ask)$/.test(endpoint);
export const isRefused = ({ status }: Readonly<Record<string, string>>): boolean => status === "429";
export const isFailure = ({ endpoint = "", status = "" }: Readonly<Record<string, string>>): boolean =>
  isOthers({ endpoint }) && status.startsWith("5");
