/** POST …/summarize: groups of records with equal columns, and a value for each of `summaries`. One statement. */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted, quotedNames } from "../../../errors/value-in-words.ts";
import type { FilterTable, FilterTableColumn } from "../../../filter/tree.ts";
import { isObject } from "../../../text/json-object.ts";
import { NUMBER_TYPES, ORDERED_TYPES } from "../../column-traits.ts";
import type { Connection } from "../../engine/engine.ts";
import { DEFAULT_PAGE_SIZE } from "../../request-limits.ts";
import type { AnswerOptions, JsonObject, SummarizeRequest } from "../../requests.ts";
import type { BranchInfo, ColumnType, TableInfo } from "../../schema.ts";
import { type Field, formatTimestamp, instant, intField, setOwn, type ValueOptions, valueField } from "../sql-parts/answer-field.ts";
import { type ColumnReference, resolveColumn } from "../sql-parts/column-reference.ts";
import { readSortItems, type SortDirection } from "../sql-parts/sort.ts";
import { compileFilter } from "../sql-parts/statement-parts.ts";
import { columnsBelow, notExpected } from "../values/request-parts.ts";
import { GroupedSource } from "./grouped-query.ts";

/** @throws {LodestoneError} INVALID: the message names the part of the request. */
export async function summarizeRecords(
  connection: Connection,
  branch: BranchInfo,
  table: TableInfo,
  request: SummarizeRequest,
  options: AnswerOptions = {},
): Promise<{ summaries: JsonObject[] }> {
  const plan = readSummarizeRequest(branch, table, request);
  const source = new GroupedSource(branch, table, request.filter);
  const groups = plan.columns.map((column) => source.column(column.reference));
  const values = plan.summaries.map((summary) => summarySql(summary, source));
  const list = [...groups.map((sql, index) => `${sql} AS c${index}`), ...values.map((sql, index) => `${sql} AS s${index}`)].join(", ");
  const grouped = `SELECT ${list} FROM ${source.from}${groups.length > 0 ? ` GROUP BY ${groups.join(", ")}` : ""}`;
  const having = summariesFilter(branch, table, plan, request.summariesFilter, source);
  const fields = fieldsOf(plan, { jsonText: options.jsonText === true, naming: branch.systemNaming });
  const { rows } = await connection.query<{ row: string }>(
    `SELECT row_to_json(r)::text AS row FROM (SELECT ${fields.map((field, index) => `${field.sql} AS f${index}`).join(", ")} ` +
      `FROM (${grouped}) AS g WHERE ${having} ${orderOf(plan)} LIMIT ${plan.size}) AS r`,
    source.parameters.values,
  );
  const summaries = rows.map(({ row }) => {
    const values = JSON.parse(row) as JsonObject;
    const summary: JsonObject = {};
    fields.forEach((field, index) => {
      const value = values[`f${index}`];
      if (value !== null && value !== undefined) field.put(summary, value);
      // A group's column without a value is left out, as in records; a summary over no values is null.
      else if (index >= plan.columns.length) setOwn(summary, plan.summaries[index - plan.columns.length]!.name, null);
    });
    return summary;
  });
  return { summaries };
}

function summarySql({ kind, reference }: Summary, source: GroupedSource): string {
  if (reference === undefined) return "count(*)::int8";
  const value = source.column(reference);
  switch (kind) {
    case "count":
      return `count(${value})::int8`;
    case "average":
      return `avg(${value})::float8`;
    case "sum":
      return reference.type === "int" ? `sum(${value})` : `sum(${value})::float8`;
    default:
      return `${kind}(${value})`;
  }
}

/** Names of columns and summaries, as the filter sees them: columns of a table of their own. */
function summariesFilter(branch: BranchInfo, table: TableInfo, plan: SummarizePlan, filter: unknown, source: GroupedSource): string {
  const names = new Map<string, string>();
  const columns = new Map<string, FilterTableColumn>();
  const add = (name: string, sql: string, { type, target }: { type: FilterTableColumn["type"]; target?: string | undefined }): void => {
    names.set(name, sql);
    columns.set(name, { name, type, ...(target === undefined ? {} : { link: { table: target } }) });
  };
  plan.columns.forEach(({ name, reference }, index) => {
    add(name, `g.c${index}`, reference.json.length > 0 ? { type: "json" } : reference);
  });
  plan.summaries.forEach(({ name, type }, index) => {
    add(name, `g.s${index}`, { type });
  });
  // No table of a branch can have a space in its name.
  const grouped: FilterTable = { name: `${table.name} summarized`, columns };
  return compileFilter(branch, grouped, filter, "g", source.parameters, "summariesFilter", (column) => {
    const sql = names.get(column);
    if (sql !== undefined) return sql;
    throw new LodestoneError(
      "INVALID",
      `summariesFilter: "${column}" is not among the selected names: ${quotedNames([...names.keys()], "nothing")}.`,
    );
  });
}

function fieldsOf(plan: SummarizePlan, options: ValueOptions): Field[] {
  return [
    ...plan.columns.map(({ name, reference }: GroupColumn, index) => {
      const sql = `g.c${index}`;
      if (reference.json.length > 0) return plainField(sql, name);
      return valueField(reference.type, sql, name, options);
    }),
    ...plan.summaries.map(({ name, type }, index) => {
      const sql = `g.s${index}`;
      if (type === "datetime") return timeField(sql, name);
      return type === "int" ? intField(sql, (record, number) => setOwn(record, name, number)) : plainField(sql, name);
    }),
  ];
}

/** A summary has the name that the request gives it, dots included. */
function plainField(sql: string, name: string): Field {
  return { sql, put: (record, value) => setOwn(record, name, value) };
}

function timeField(sql: string, name: string): Field {
  return { sql: instant(sql), put: (record, value) => setOwn(record, name, formatTimestamp(value as string)) };
}

/** Nulls last in both directions. What the sort leaves open is ordered by the group's columns. */
function orderOf(plan: SummarizePlan): string {
  const terms = plan.sort.map(({ by, direction }) => `g.${by} ${direction.toUpperCase()} NULLS LAST`);
  const sorted = new Set(plan.sort.map(({ by }) => by));
  plan.columns.forEach((_, index) => {
    if (!sorted.has(`c${index}`)) terms.push(`g.c${index}`);
  });
  return terms.length === 0 ? "" : `ORDER BY ${terms.join(", ")}`;
}

export interface GroupColumn {
  /** As the request names it. */
  readonly name: string;
  readonly reference: ColumnReference;
}

export interface Summary {
  readonly name: string;
  readonly kind: "count" | "min" | "max" | "sum" | "average";
  /** undefined: `count` of "*". */
  readonly reference: ColumnReference | undefined;
  /** Of the value. */
  readonly type: ColumnType;
}

export interface SummarizePlan {
  readonly columns: readonly GroupColumn[];
  readonly summaries: readonly Summary[];
  /** `c0` … of columns and `s0` … of summaries. */
  readonly sort: readonly { readonly by: string; readonly direction: SortDirection }[];
  readonly size: number;
}

const MAX_SUMMARIES = 100;
const MAX_GROUP_COLUMNS = 100;
const KINDS = ["count", "min", "max", "sum", "average"] as const;
const TYPES: Readonly<Record<Summary["kind"], readonly ColumnType[] | undefined>> = {
  count: undefined,
  min: ORDERED_TYPES,
  max: ORDERED_TYPES,
  sum: NUMBER_TYPES,
  average: NUMBER_TYPES,
};

function readSummarizeRequest(branch: BranchInfo, table: TableInfo, request: SummarizeRequest): SummarizePlan {
  // Without both, one row for each combination of values, as the retired service documented it for a `page` alone.
  const isBare = request.columns === undefined && Object.keys(request.summaries ?? {}).length === 0;
  const columns = readColumns(branch, table, request.columns ?? (isBare ? ["*"] : []));
  const summaries = readSummaries(branch, table, request.summaries ?? {}, columns);
  if (columns.length === 0 && summaries.length === 0) {
    throw new LodestoneError("INVALID", 'summarize needs columns to group by, or summaries such as {"total": {"count": "*"}}.');
  }
  return {
    columns,
    summaries,
    sort: readSort(request.sort, columns, summaries),
    size: request.page?.size ?? DEFAULT_PAGE_SIZE,
  };
}

function readColumns(branch: BranchInfo, table: TableInfo, given: readonly string[]): GroupColumn[] {
  const columns = new Map<string, GroupColumn>();
  given.forEach((name, index) => {
    const place = `columns[${index}]`;
    for (const expanded of expand(branch, table, name, place)) {
      columns.set(expanded, { name: expanded, reference: resolveColumn(branch, table, expanded, place) });
    }
  });
  if (columns.size > MAX_GROUP_COLUMNS)
    throw new LodestoneError("INVALID", `columns has ${columns.size} columns; at most ${MAX_GROUP_COLUMNS} can make a group.`);
  return [...columns.values()];
}

/** "*", "address.*" and "team.*" stand for the columns there. */
function expand(branch: BranchInfo, table: TableInfo, name: string, place: string): string[] {
  if (name === "*") return [...table.columns.keys()];
  if (table.columns.has(name)) return [name];
  const object = name.endsWith(".*") ? name.slice(0, -2) : name;
  const below = columnsBelow(table, object);
  if (below.length > 0) return below.map((column) => column.name);
  if (object === name) return [name];
  const { type, target, json } = resolveColumn(branch, table, object, place);
  const linked = type === "link" && json.length === 0 ? branch.tables.get(target ?? "") : undefined;
  if (linked === undefined)
    throw new LodestoneError("INVALID", `${place}: ${quoted(object)} is not a link, so there is no ${quoted(name)}.`);
  return [...linked.columns.keys()].map((column) => `${object}.${column}`);
}

function readSummaries(branch: BranchInfo, table: TableInfo, given: JsonObject, columns: readonly GroupColumn[]): Summary[] {
  const entries = Object.entries(given);
  if (entries.length > MAX_SUMMARIES)
    throw new LodestoneError("INVALID", `summaries has ${entries.length} entries; at most ${MAX_SUMMARIES} are allowed.`);
  return entries.map(([name, summary]) => {
    const place = `summaries.${name}`;
    if (columns.some((column) => column.name === name || column.name.startsWith(`${name}.`))) {
      throw new LodestoneError("INVALID", `${place} has the name of a selected column; give it another name.`);
    }
    const keys = isObject(summary) ? Object.keys(summary) : [];
    const kind = KINDS.find((key) => keys.length === 1 && keys[0] === key);
    if (!isObject(summary) || kind === undefined) {
      throw notExpected(place, summary, `an object with one of the keys ${quotedNames(KINDS, "")}`);
    }
    const column = summary[kind];
    if (typeof column !== "string") throw notExpected(`${place}.${kind}`, column, "the name of a column");
    if (kind === "count" && column === "*") return { name, kind, reference: undefined, type: "int" };
    const reference = resolveColumn(branch, table, column, `${place}.${kind}`);
    const types = TYPES[kind];
    if (types !== undefined && (reference.json.length > 0 || !types.includes(reference.type))) {
      throw new LodestoneError(
        "INVALID",
        `${place}.${kind}: column ${quoted(column)} is of type ${reference.type}; expected ${types.join(", ")}.`,
      );
    }
    return { name, kind, reference, type: kind === "count" ? "int" : kind === "average" ? "float" : reference.type };
  });
}

function readSort(sort: unknown, columns: readonly GroupColumn[], summaries: readonly Summary[]): SummarizePlan["sort"] {
  return readSortItems(sort, "sort").map(({ name, direction, place }) => {
    if (direction === "random")
      throw new LodestoneError("INVALID", `${place}: summaries cannot be sorted randomly; expected "asc" or "desc".`);
    const column = columns.findIndex((candidate) => candidate.name === name);
    const summary = summaries.findIndex((candidate) => candidate.name === name);
    if (column === -1 && summary === -1) {
      const names = [...columns.map((candidate) => candidate.name), ...summaries.map((candidate) => candidate.name)];
      throw new LodestoneError("INVALID", `${place}: ${quoted(name)} is not among the selected names: ${quotedNames(names, "nothing")}.`);
    }
    return { by: summary === -1 ? `c${column}` : `s${summary}`, direction };
  });
}
