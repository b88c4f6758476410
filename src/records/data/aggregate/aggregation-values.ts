/** Aggregations that give one value per group: in SQL, as text, and from that text. */
import { readJson } from "../../exact-json.ts";
import type { JsonValue } from "../../requests.ts";
import { instant } from "../sql-parts/answer-field.ts";
import { formatTimestamp } from "../values/timestamp.ts";
import type { ValueAggregation } from "./aggregation-request.ts";
import type { GroupedSource } from "./grouped-query.ts";

export function valueSql(agg: ValueAggregation, source: GroupedSource): string {
  switch (agg.kind) {
    case "count":
      return agg.filter === undefined || agg.filter === null
        ? "count(*)::text"
        : `(count(*) FILTER (WHERE ${source.condition(agg.filter, agg.place)}))::text`;
    case "uniqueCount":
      return `count(DISTINCT ${source.column(agg.column)})::text`;
    case "average":
      return `avg(${source.column(agg.column)})::float8::text`;
    case "percentiles": {
      const fractions = agg.percentiles.map((percentile) => `${percentile / 100}`).join(", ");
      return `(percentile_cont(ARRAY[${fractions}]::float8[]) WITHIN GROUP (ORDER BY ${source.column(agg.column)}::float8))::text`;
    }
    case "min":
    case "max": {
      const value = `${agg.kind}(${source.column(agg.column)})`;
      return agg.column.type === "datetime" ? instant(value) : `${value}::text`;
    }
    case "sum":
      return `sum(${source.column(agg.column)})::text`;
  }
}

/**
 * Without records, or without values: null, and counts are 0. A NaN, which JSON cannot represent, is null too.
 * Whole numbers keep every digit.
 */
export function decodeValue(agg: ValueAggregation, text: string | null): JsonValue {
  switch (agg.kind) {
    case "percentiles": {
      const elements = text === null ? [] : text.slice(1, -1).split(",");
      return {
        values: Object.fromEntries(
          agg.percentiles.map((percentile, index) => [percentileKey(percentile), numberOrNull(elements[index] ?? null)]),
        ),
      };
    }
    case "min":
    case "max":
    case "sum":
      if (text !== null && agg.column.type === "datetime") return formatTimestamp(text);
      if (text !== null && agg.column.type === "int") return readJson(text) as JsonValue;
      return numberOrNull(text);
    default:
      return numberOrNull(text);
  }
}

function numberOrNull(text: string | null): number | null {
  const number = text === null ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : null;
}

/** `50.0`, `99.9`: always with a decimal, as the retired service wrote it and the SDK's users read it. */
function percentileKey(percentile: number): string {
  return Number.isInteger(percentile) ? percentile.toFixed(1) : String(percentile);
}
