/** POST …/summarize: groups of records with equal columns, and a value for each of `summaries`. One statement. */

import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quotedNames } from "../../../errors/value-in-words.ts";
import { parseFilter } from "../../../filter/parse.ts";
import { compileToSql } from "../../../filter/sql-condition.ts";
import type { FilterTable, FilterTableColumn } from "../../../filter/tree.ts";
import type { Connection } from "../../engine/engine.ts";
import { quoteIdentifier } from "../../identifiers.ts";
import type { AnswerOptions, JsonObject, SummarizeRequest } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { type Field, instant, intField, setOwn, type ValueOptions, valueField } from "../sql-parts/answer-field.ts";
import { relation } from "../sql-parts/sql-names.ts";
import { formatTimestamp } from "../values/timestamp.ts";
import { GroupedSource } from "./grouped-query.ts";
import { type GroupColumn, readSummarizeRequest, type SummarizePlan, type Summary } from "./summarize-request.ts";

/** @throws {LodestoneError} INVALID: the message names the part of the request. */
export async function summarizeRecords(
  connection: Connection,
  branch: BranchInfo,
  table: TableInfo,
  request: SummarizeRequest,
  options: AnswerOptions = {},
): Promise<{ summaries: JsonObject[] }> {
  const plan = readSummarizeRequest(branch, table, request);
  const source = new GroupedSource(branch, table, request.filter ?? undefined);
  const groups = plan.columns.map((column) => source.column(column.reference));
  const values = plan.summaries.map((summary) => summarySql(summary, source));
  const list = [...groups.map((sql, index) => `${sql} AS c${index}`), ...values.map((sql, index) => `${sql} AS s${index}`)].join(", ");
  const grouped = `SELECT ${list} FROM ${source.from}${groups.length > 0 ? ` GROUP BY ${groups.join(", ")}` : ""}`;
  const having = summariesFilter(branch, table, plan, request.summariesFilter ?? undefined, source);
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
  const node = parseFilter(filter, grouped, branch.tables, "summariesFilter");
  const compiled = compileToSql(node, {
    alias: "g",
    firstParameter: source.parameters.values.length + 1,
    column: (alias, tableName, column) => {
      if (tableName !== grouped.name)
        return `${alias}.${quoteIdentifier(branch.tables.get(tableName)?.columns.get(column)?.physicalName ?? column)}`;
      const sql = names.get(column);
      if (sql !== undefined) return sql;
      throw new LodestoneError(
        "INVALID",
        `summariesFilter: "${column}" is not among the selected names: ${quotedNames([...names.keys()], "nothing")}.`,
      );
    },
    relation: (tableName) => relation(branch, branch.tables.get(tableName)!),
  });
  for (const value of compiled.values) source.parameters.add(value);
  return compiled.text;
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
