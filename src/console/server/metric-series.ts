/** Metrics of the last minutes, and what is derived from them: rates, quantiles, sizes. */
import { type Metrics, quantileBetween, total } from "./metrics-text.ts";

export interface Reading {
  /** Seconds since 1970. */
  readonly time: number;
  readonly metrics: Metrics;
}

/** The values of one line of a plot, at the times of the readings; null if unknown. */
export type Series = readonly (number | null)[];

/** Five minutes of readings every two seconds. */
const MOST_READINGS = 150;
/** Quantiles cover several recent readings, so that a single request does not cause a spike. */
const QUANTILE_READINGS = 5;

const REQUESTS = "lodestone_http_requests_total";
const SECONDS = "lodestone_http_request_duration_seconds";

/**
 * @returns the readings with the new one. After a restart of the server only the new one, because its
 *   counters begin anew.
 */
export function withReading(readings: readonly Reading[], reading: Reading): readonly Reading[] {
  const last = readings.at(-1);
  const isRestarted = last !== undefined && startOf(last) !== startOf(reading);
  return isRestarted ? [reading] : [...readings, reading].slice(-MOST_READINGS);
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
