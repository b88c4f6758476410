/**
 * How records are put into buckets: the key of a record's bucket in SQL, which records have one, and the key in
 * the answer.
 */
import { readJson } from "../../exact-json.ts";
import type { JsonValue } from "../../requests.ts";
import type { BranchInfo } from "../../schema.ts";
import { ROW } from "../sql-parts/bound-parameters.ts";
import { columnSql } from "../sql-parts/column-reference.ts";
import type { BucketAggregation } from "./aggregation-request.ts";

/**
 * Times are milliseconds since 1970 of the bucket's beginning; numbers are its lower bound. Null: the record is
 * in no bucket. Infinities, which SQL can write, lie in no interval.
 */
export function bucketKey(agg: BucketAggregation, branch: BranchInfo): string {
  const value = columnSql(branch, agg.column, ROW);
  const { bucket } = agg;
  switch (bucket.by) {
    case "value":
      return value;
    case "number": {
      // In decimals: 0.3 is in the bucket that begins at 0.3.
      const [offset, interval] = [`'${bucket.offset}'::numeric`, `'${bucket.interval}'::numeric`];
      const key = `(floor((${value}::numeric - ${offset}) / ${interval}) * ${interval} + ${offset})::float8`;
      return agg.column.type === "float" ? `CASE WHEN ${value} > '-Infinity' AND ${value} < 'Infinity' THEN ${key} END` : key;
    }
    case "time": {
      const [offset, width] = [`${bucket.offsetSeconds * 1000}`, `${bucket.widthMs}::numeric`];
      const ms = `extract(epoch FROM ${value}) * 1000`;
      return `CASE WHEN isfinite(${value}) THEN (floor((${ms} + (${offset})) / ${width}) * ${width} - (${offset}))::int8 END`;
    }
    case "calendar": {
      // Local time as a timestamp without zone, cut, and back.
      const local = `(${value} AT TIME ZONE 'UTC') + interval '${bucket.offsetSeconds} seconds'`;
      const ms = `extract(epoch FROM date_trunc('${bucket.unit}', ${local})) * 1000`;
      return `CASE WHEN isfinite(${value}) THEN (${ms} - (${bucket.offsetSeconds * 1000}))::int8 END`;
    }
  }
}

export function decodeKey(agg: BucketAggregation, text: string): JsonValue {
  switch (agg.bucket.by) {
    case "number":
      return Number(text);
    case "time":
    case "calendar": {
      const date = new Date(Number(text));
      return Number.isNaN(date.getTime()) ? text : date.toISOString();
    }
    case "value":
      switch (agg.column.type) {
        case "bool":
          return text === "true";
        case "int":
          return readJson(text) as JsonValue;
        case "float":
          return Number.isFinite(Number(text)) ? Number(text) : text;
        default:
          return text;
      }
  }
}
