/**
 * `aggs` of a request, checked against the schema: values over the records of a group, and buckets that are
 * groups themselves.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted, quotedNames } from "../../../errors/value-in-words.ts";
import { isObject } from "../../../text/json-object.ts";
import { NUMBER_TYPES, PLAIN_TYPES } from "../../column-traits.ts";
import type { JsonObject } from "../../requests.ts";
import type { BranchInfo, ColumnType, TableInfo } from "../../schema.ts";
import { type ColumnReference, resolveColumn } from "../sql-parts/column-reference.ts";
import { notExpected, parseDurationMs, wholeNumber, withoutNulls } from "../values/request-parts.ts";

export type Aggregation = ValueAggregation | BucketAggregation;

export type ValueAggregation =
  | { readonly kind: "count"; readonly filter: unknown; readonly place: string }
  | { readonly kind: "sum" | "min" | "max" | "average" | "uniqueCount"; readonly column: ColumnReference }
  | { readonly kind: "percentiles"; readonly column: ColumnReference; readonly percentiles: readonly number[] };

export interface BucketAggregation {
  readonly kind: "topValues" | "dateHistogram" | "numericHistogram";
  readonly column: ColumnReference;
  readonly bucket: Bucketing;
  readonly aggs: ReadonlyMap<string, Aggregation>;
  readonly place: string;
}

export type Bucketing =
  | { readonly by: "value"; readonly size: number }
  | { readonly by: "calendar"; readonly unit: string; readonly offsetSeconds: number }
  | { readonly by: "time"; readonly widthMs: number; readonly offsetSeconds: number }
  | { readonly by: "number"; readonly interval: number; readonly offset: number };

const MAX_AGGREGATIONS = 100;
const MAX_AGGREGATION_DEPTH = 5;
const MAX_PERCENTILES = 100;
const MAX_TOP_VALUES = 1_000;
const CALENDAR = ["minute", "hour", "day", "week", "month", "quarter", "year"];
const MEMBERS: Readonly<Record<Aggregation["kind"], readonly string[]>> = {
  count: ["filter"],
  sum: ["column"],
  min: ["column"],
  max: ["column"],
  average: ["column"],
  uniqueCount: ["column", "precisionThreshold"],
  percentiles: ["column", "percentiles"],
  topValues: ["column", "size", "aggs"],
  dateHistogram: ["column", "interval", "calendarInterval", "timezone", "aggs"],
  numericHistogram: ["column", "interval", "offset", "aggs"],
};

/** No aggregation asked for means the count, as in the SDK's `aggregate()`. */
export function readAggregations(branch: BranchInfo, table: TableInfo, aggs: JsonObject | undefined): Map<string, Aggregation> {
  if (aggs === undefined) return new Map([["count", { kind: "count", filter: undefined, place: "aggs.count" }]]);
  return new AggregationReader(branch, table).map(aggs, "aggs", 1);
}

class AggregationReader {
  readonly #branch: BranchInfo;
  readonly #table: TableInfo;
  #count = 0;

  constructor(branch: BranchInfo, table: TableInfo) {
    this.#branch = branch;
    this.#table = table;
  }

  map(aggs: unknown, place: string, depth: number): Map<string, Aggregation> {
    const read = new Map<string, Aggregation>();
    if (aggs === undefined && depth > 1) return read;
    if (!isObject(aggs)) throw notExpected(place, aggs, 'an object such as {"total": {"count": "*"}}');
    if (depth > MAX_AGGREGATION_DEPTH)
      throw new LodestoneError("INVALID", `${place} is nested deeper than ${MAX_AGGREGATION_DEPTH} levels.`);
    for (const [name, agg] of Object.entries(aggs)) {
      this.#count += 1;
      if (this.#count > MAX_AGGREGATIONS)
        throw new LodestoneError("INVALID", `${place}: a request has at most ${MAX_AGGREGATIONS} aggregations.`);
      if (name.startsWith("$"))
        throw new LodestoneError("INVALID", `${place}.${name}: a name must not begin with "$", as "$key" and "$count" do.`);
      read.set(name, this.#one(agg, `${place}.${name}`, depth));
    }
    return read;
  }

  #one(agg: unknown, at: string, depth: number): Aggregation {
    const keys = isObject(agg) ? Object.keys(agg) : [];
    const kind = keys[0] as Aggregation["kind"];
    if (!isObject(agg) || keys.length !== 1 || !Object.hasOwn(MEMBERS, kind)) {
      throw notExpected(at, agg, `an object with one of the keys ${quotedNames(Object.keys(MEMBERS), "")}`);
    }
    const place = `${at}.${kind}`;
    const sent = agg[kind];
    const given = isObject(sent) ? withoutNulls(sent) : sent;
    if (kind === "count" && given === "*") return { kind, filter: undefined, place };
    if (!isObject(given))
      throw notExpected(place, given, kind === "count" ? '"*" or {"filter": …}' : 'an object such as {"column": "price"}');
    for (const key of Object.keys(given)) {
      if (!MEMBERS[kind].includes(key))
        throw new LodestoneError("INVALID", `${place} has an unknown member ${quoted(key)}; it takes ${quotedNames(MEMBERS[kind], "")}.`);
    }
    switch (kind) {
      case "count":
        return { kind, filter: given.filter, place: `${place}.filter` };
      case "uniqueCount":
        // Counts are exact, whatever the threshold.
        wholeNumber(given.precisionThreshold, 3_000, 0, 40_000, `${place}.precisionThreshold`);
        return { kind, column: this.#column(given, place) };
      case "sum":
      case "average":
        return { kind, column: this.#column(given, place, NUMBER_TYPES) };
      case "min":
      case "max":
        return { kind, column: this.#column(given, place, [...NUMBER_TYPES, "datetime"]) };
      case "percentiles":
        return {
          kind,
          column: this.#column(given, place, NUMBER_TYPES),
          percentiles: readPercentiles(given.percentiles, `${place}.percentiles`),
        };
      default: {
        const types: readonly ColumnType[] =
          kind === "dateHistogram" ? ["datetime"] : kind === "numericHistogram" ? NUMBER_TYPES : PLAIN_TYPES;
        const column = this.#column(given, place, types);
        return { kind, column, bucket: readBucketing(kind, given, place), aggs: this.map(given.aggs, `${place}.aggs`, depth + 1), place };
      }
    }
  }

  #column(given: Record<string, unknown>, place: string, types?: readonly ColumnType[]): ColumnReference {
    const at = `${place}.column`;
    if (typeof given.column !== "string") throw notExpected(at, given.column, "the name of a column");
    const column = resolveColumn(this.#branch, this.#table, given.column, at);
    if (types !== undefined && (column.json.length > 0 || !types.includes(column.type))) {
      const type = column.json.length > 0 ? "a json path" : `of type ${column.type}`;
      throw new LodestoneError("INVALID", `${at}: ${quoted(given.column)} is ${type}; expected a column of type ${types.join(", ")}.`);
    }
    return column;
  }
}

function readBucketing(kind: BucketAggregation["kind"], given: Record<string, unknown>, place: string): Bucketing {
  if (kind === "topValues") return { by: "value", size: wholeNumber(given.size, 10, 1, MAX_TOP_VALUES, `${place}.size`) };
  if (kind === "numericHistogram") {
    const { interval, offset = 0 } = given;
    if (typeof interval !== "number" || !(interval > 0)) throw notExpected(`${place}.interval`, interval, "a number above 0");
    if (typeof offset !== "number") throw notExpected(`${place}.offset`, offset, "a number");
    return { by: "number", interval, offset };
  }
  const offsetSeconds = readTimezone(given.timezone, `${place}.timezone`);
  const { interval, calendarInterval } = given;
  if ((interval === undefined) === (calendarInterval === undefined)) {
    throw new LodestoneError("INVALID", `${place} needs either an interval such as "5d" or a calendarInterval such as "week", not both.`);
  }
  if (interval === undefined) {
    if (typeof calendarInterval !== "string" || !CALENDAR.includes(calendarInterval)) {
      throw notExpected(`${place}.calendarInterval`, calendarInterval, `one of ${CALENDAR.join(", ")}`);
    }
    return { by: "calendar", unit: calendarInterval, offsetSeconds };
  }
  const widthMs = parseDurationMs(interval);
  if (widthMs === undefined || widthMs === 0)
    throw notExpected(`${place}.interval`, interval, 'a number above 0 with a unit of d, h, m, s or ms, such as "12h"');
  return { by: "time", widthMs, offsetSeconds };
}

function readTimezone(timezone: unknown, place: string): number {
  if (timezone === undefined) return 0;
  const match = typeof timezone === "string" ? /^([+-])([01]\d):([0-5]\d)$/.exec(timezone) : null;
  if (match === null) throw notExpected(place, timezone, 'an offset from UTC such as "+01:00"');
  return (Number(match[2]) * 3600 + Number(match[3]) * 60) * (match[1] === "-" ? -1 : 1);
}

function readPercentiles(percentiles: unknown, place: string): number[] {
  if (!Array.isArray(percentiles) || percentiles.length === 0 || percentiles.length > MAX_PERCENTILES) {
    throw notExpected(place, percentiles, `an array of 1 to ${MAX_PERCENTILES} numbers`);
  }
  return percentiles.map((value: unknown, index) => {
    if (typeof value !== "number" || !(value >= 0 && value <= 100))
      throw notExpected(`${place}[${index}]`, value, "a percentile from 0 to 100");
    return value;
  });
}
