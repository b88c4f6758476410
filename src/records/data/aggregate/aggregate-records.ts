/**
 * POST …/aggregate. PostgreSQL computes the values, exactly, over the current records. A level of buckets is
 * one statement, with the values of its buckets; buckets within buckets are another statement over the buckets
 * that were kept. All statements of a request see one snapshot.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import type { Connection, Engine } from "../../engine/engine.ts";
import type { AggregateRequest, JsonObject, JsonValue } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { setOwn } from "../sql-parts/answer-field.ts";
import { bucketKey, decodeKey } from "./aggregation-buckets.ts";
import { type Aggregation, type BucketAggregation, readAggregations, type ValueAggregation } from "./aggregation-request.ts";
import { decodeValue, valueSql } from "./aggregation-values.ts";
import { GroupedSource } from "./grouped-query.ts";

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
  const run = new AggregateRun(branch, table, request.filter ?? undefined);
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
    const list = values.map(([, agg], index) => `${valueSql(agg, source)} AS a${index}`).join(", ");
    const { rows } = await connection.query<Record<string, string | null>>(`SELECT ${list} FROM ${source.from}`, source.parameters.values, {
      raw: true,
    });
    values.forEach(([name, agg], index) => {
      setOwn(root, name, decodeValue(agg, rows[0]![`a${index}`]!));
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
      ...values.map(([, value], index) => `${valueSql(value, source)} AS a${index}`),
      // The rank is what topValues cuts by, and the order of the answer.
      `row_number() OVER (${outerKeys.length > 0 ? `PARTITION BY ${outerKeys.join(", ")} ` : ""}ORDER BY ${agg.bucket.by === "value" ? "count(*) DESC, " : ""}${key}) AS rank`,
    ];
    const grouped = `SELECT ${columns.join(", ")} FROM ${source.from} WHERE ${where.join(" AND ")} GROUP BY ${[...outerKeys, key].join(", ")}`;
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
