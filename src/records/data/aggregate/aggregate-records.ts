/**
 * POST …/aggregate. PostgreSQL computes the values, exactly, over the current records. A level of buckets is
 * one statement, with the values of its buckets; buckets within buckets are another statement over the buckets
 * that were kept. All statements of a request see one snapshot.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import type { Connection, Engine } from "../../engine/engine.ts";
import { readJson } from "../../exact-json.ts";
import type { AggregateRequest, JsonObject, JsonValue } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { formatTimestamp, instant, setOwn } from "../sql-parts/answer-field.ts";
import { columnSql } from "../sql-parts/column-reference.ts";
import { ROW } from "../sql-parts/statement-parts.ts";
import { type Aggregation, type BucketAggregation, readAggregations, type ValueAggregation } from "./aggregation-request.ts";
import { GroupedSource } from "./grouped-query.ts";
import { decodePercentiles, percentilesSql } from "./percentiles.ts";

/** Buckets of one aggregation, over all its parents. */
const MAX_BUCKETS = 10_000;

/** @throws {LodestoneError} INVALID: the message names the aggregation. */
export async function aggregateRecords(
  engine: Engine,
  branch: BranchInfo,
  table: TableInfo,
  request: AggregateRequest,
): Promise<{ aggs: JsonObject }> {
  const aggs = readAggregations(branch, table, request.aggs);
  // Errors in the filters are found before a transaction begins.
  const run = new AggregateRun(branch, table, request.filter);
  run.check(aggs);
  const root: JsonObject = {};
  const parents = new Map([[KEY_OF_ALL, root]]);
  await engine.transaction((connection) => run.level(connection, aggs, [], parents), { readOnly: true, isolation: "repeatable read" });
  return { aggs: root };
}

const KEY_OF_ALL = "[]";

class AggregateRun {
  readonly #branch: BranchInfo;
  readonly #table: TableInfo;
  readonly #filter: unknown;

  constructor(branch: BranchInfo, table: TableInfo, filter: unknown) {
    this.#branch = branch;
    this.#table = table;
    this.#filter = filter;
  }

  /** Compiles every filter once, to find errors. */
  check(aggs: ReadonlyMap<string, Aggregation>): void {
    const source = new GroupedSource(this.#branch, this.#table, this.#filter);
    const visit = (level: ReadonlyMap<string, Aggregation>): void => {
      for (const agg of level.values()) {
        if (agg.kind === "count" && agg.filter !== undefined) source.condition(agg.filter, agg.place);
        if (isBucket(agg)) visit(agg.aggs);
      }
    };
    visit(aggs);
  }

  /**
   * Fills the aggregations into the objects of `parents`. Their keys are those of the buckets, as texts, from
   * the outermost in.
   */
  async level(
    connection: Connection,
    aggs: ReadonlyMap<string, Aggregation>,
    outer: readonly BucketAggregation[],
    parents: ReadonlyMap<string, JsonObject>,
  ): Promise<void> {
    if (outer.length === 0) await this.#rootValues(connection, aggs, parents.get(KEY_OF_ALL)!);
    for (const [name, agg] of aggs) {
      if (!isBucket(agg)) continue;
      for (const parent of parents.values()) setOwn(parent, name, { values: [] });
      const buckets = await this.#buckets(connection, name, agg, outer, parents);
      const inner = new Map([...agg.aggs].filter(([, child]) => isBucket(child)));
      if (inner.size > 0 && buckets.size > 0) await this.level(connection, inner, [...outer, agg], buckets);
    }
  }

  async #rootValues(connection: Connection, aggs: ReadonlyMap<string, Aggregation>, root: JsonObject): Promise<void> {
    const values = valuesOf(aggs);
    if (values.length === 0) return;
    const source = new GroupedSource(this.#branch, this.#table, this.#filter);
    const list = values.map(([, agg], index) => `${valueSql(agg, source, [])} AS a${index}`).join(", ");
    const groupBy = source.counts.length > 0 ? ` GROUP BY ${source.counts.join(", ")}` : "";
    const { rows } = await connection.query<Record<string, string | null>>(
      `SELECT ${list} FROM ${source.from}${groupBy}`,
      source.parameters.values,
      { raw: true },
    );
    values.forEach(([name, agg], index) => {
      // With GROUP BY there is no row for no records.
      setOwn(root, name, decodeValue(agg, rows[0]?.[`a${index}`] ?? null));
    });
  }

  async #buckets(
    connection: Connection,
    name: string,
    agg: BucketAggregation,
    outer: readonly BucketAggregation[],
    parents: ReadonlyMap<string, JsonObject>,
  ): Promise<Map<string, JsonObject>> {
    const source = new GroupedSource(this.#branch, this.#table, this.#filter);
    const outerKeys = outer.map((parent) => source.value(bucketKey(parent, this.#branch)));
    const key = source.value(bucketKey(agg, this.#branch));
    const where = [...outerKeys, key].map((sql) => `${sql} IS NOT NULL`);
    if (outer.length > 0) where.push(this.#amongParents(outerKeys, parents, source));
    const values = valuesOf(agg.aggs);
    const columns = [
      ...outerKeys.map((sql, index) => `(${sql})::text AS p${index}`),
      `(${key})::text AS k`,
      "count(*)::text AS n",
      ...values.map(([, value], index) => `${valueSql(value, source, [...outerKeys, key])} AS a${index}`),
      // The rank is what topValues cuts by, and the order of the answer.
      `row_number() OVER (${outerKeys.length > 0 ? `PARTITION BY ${outerKeys.join(", ")} ` : ""}ORDER BY ${agg.bucket.by === "value" ? "count(*) DESC, " : ""}${key}) AS rank`,
    ];
    const groupBy = [...outerKeys, key, ...source.counts].join(", ");
    const grouped = `SELECT ${columns.join(", ")} FROM ${source.from} WHERE ${where.join(" AND ")} GROUP BY ${groupBy}`;
    const cut = agg.bucket.by === "value" ? ` WHERE g.rank <= ${agg.bucket.size}` : "";
    const { rows } = await connection.query<Record<string, string | null>>(
      `SELECT g.* FROM (${grouped}) AS g${cut} ORDER BY g.rank LIMIT ${MAX_BUCKETS + 1}`,
      source.parameters.values,
      { raw: true },
    );
    if (rows.length > MAX_BUCKETS) {
      throw new LodestoneError(
        "INVALID",
        `${agg.place} makes more than ${MAX_BUCKETS} buckets; choose a larger interval, or filter the records.`,
      );
    }
    const buckets = new Map<string, JsonObject>();
    for (const row of rows) {
      const path = outer.map((_, index) => row[`p${index}`]!);
      const bucket: JsonObject = { $key: decodeKey(agg, row.k!), $count: Number(row.n) };
      values.forEach(([child, value], index) => {
        setOwn(bucket, child, decodeValue(value, row[`a${index}`]!));
      });
      const parent = parents.get(JSON.stringify(path))!;
      ((parent[name] as JsonObject).values as JsonValue[]).push(bucket);
      buckets.set(JSON.stringify([...path, row.k!]), bucket);
    }
    return buckets;
  }

  /** Only within the buckets that were kept: topValues keeps a few of many. */
  #amongParents(keys: readonly string[], parents: ReadonlyMap<string, JsonObject>, source: GroupedSource): string {
    const paths = [...parents.keys()].map((path) => JSON.parse(path) as string[]);
    const arrays = keys.map((_, index) => `${source.parameters.add(paths.map((path) => path[index]!))}::text[]`);
    return `(${keys.map((key) => `(${key})::text`).join(", ")}) IN (SELECT * FROM unnest(${arrays.join(", ")}))`;
  }
}

function isBucket(agg: Aggregation): agg is BucketAggregation {
  return "bucket" in agg;
}

function valuesOf(aggs: ReadonlyMap<string, Aggregation>): [string, ValueAggregation][] {
  return [...aggs].filter((entry): entry is [string, ValueAggregation] => !isBucket(entry[1]));
}

/**
 * Times are milliseconds since 1970 of the bucket's beginning; numbers are its lower bound. Null: the record is
 * in no bucket. Infinities, which SQL can write, lie in no interval.
 */
function bucketKey(agg: BucketAggregation, branch: BranchInfo): string {
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

function decodeKey(agg: BucketAggregation, text: string): JsonValue {
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

/** @param keys  of the group, as the source names them. */
function valueSql(agg: ValueAggregation, source: GroupedSource, keys: readonly string[]): string {
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
      const value = source.column(agg.column);
      return percentilesSql(agg.percentiles, value, source.count(value, keys));
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
function decodeValue(agg: ValueAggregation, text: string | null): JsonValue {
  switch (agg.kind) {
    case "percentiles":
      return { values: decodePercentiles(agg.percentiles, text) };
    case "count":
    case "uniqueCount":
      return Number(text ?? 0);
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
