/**
 * Percentiles by the rule of the retired service (Hazen's): each of n values stands for the middle of its share, so
 * the p-th percentile lies at p·n/100 − 0.5 of the values in ascending order, and between two values it is
 * interpolated. PostgreSQL's percentile_cont puts it at p·(n − 1)/100. Here it finds the values, and code interpolates.
 */
import type { JsonObject } from "../../requests.ts";

/** Among `count` values in ascending order: 0 is the first of them, 0.5 the middle of the first two. */
function percentilePosition(percentile: number, count: number): number {
  return Math.min(Math.max((percentile * count) / 100 - 0.5, 0), count - 1);
}

/** `{count, below, above, below, above, …}`: the values around each position. The same operations as above, in float8. */
export function percentilesSql(percentiles: readonly number[], value: string, count: string): string {
  const fractions = percentiles.flatMap((percentile) => {
    const position = `least(greatest('${percentile}'::float8 * ${count} / 100 - 0.5, 0), ${count} - 1)`;
    // percentile_disc takes the value whose share of the whole reaches the fraction: its middle is safe from rounding.
    return ["floor", "ceil"].map((round) => `(${round}(${position}) + 0.5) / nullif(${count}, 0)`);
  });
  return `(${count}::float8 || percentile_disc(ARRAY[${fractions.join(", ")}]) WITHIN GROUP (ORDER BY ${value}::float8))::text`;
}

export function decodePercentiles(percentiles: readonly number[], text: string | null): JsonObject {
  const [count = 0, ...around] = text === null ? [] : text.slice(1, -1).split(",").map(Number);
  const values = percentiles.map((percentile, index) => {
    const [below, above] = [around[2 * index] ?? Number.NaN, around[2 * index + 1] ?? Number.NaN];
    const position = percentilePosition(percentile, count);
    const value = below + (above - below) * (position - Math.floor(position));
    return [percentileKey(percentile), Number.isFinite(value) ? value : null];
  });
  return Object.fromEntries(values);
}

/** `50.0`, `99.9`: always with a decimal, as the retired service wrote it and the SDK's users read it. */
function percentileKey(percentile: number): string {
  return Number.isInteger(percentile) ? percentile.toFixed(1) : String(percentile);
}
