/** A filter of a search as a condition over the search database's tables. */
import { valueNotKept } from "../../filter/fault.ts";
import { parseFilter } from "../../filter/parse.ts";
import { compileToSql } from "../../filter/sql-condition.ts";
import type { FilterLeaf, FilterNode } from "../../filter/tree.ts";
import { FOLLOWED_SYSTEM_COLUMNS, type FollowedColumn, type FollowedSchema, type FollowedTable } from "../followed-schema.ts";
import { SCHEMA, type Statements } from "./search-database.ts";
import { omittedTable, tableName, unsearchableColumn, valueColumn } from "./table-layout.ts";

/** The alias of the searched table in statements with a condition. */
export const ROW = "t";

export interface Condition {
  /** SQL over the row called ROW, with the parameters `$1` and so on. */
  readonly text: string;
  readonly values: readonly unknown[];
}

export const EVERY_ROW: Condition = { text: "TRUE", values: [] };

const SYSTEM_COLUMNS: ReadonlyMap<string, FollowedColumn> = new Map(FOLLOWED_SYSTEM_COLUMNS.map((column) => [column.name, column]));

/**
 * @throws {LodestoneError} INVALID for a filter that does not parse, or whose exact answer needs a value that
 *   was too large to keep.
 */
export async function filterCondition(
  statements: Statements,
  generation: string,
  schema: FollowedSchema,
  table: FollowedTable,
  filter: unknown,
): Promise<Condition> {
  if (filter === undefined) return EVERY_ROW;
  const node = parseFilter(filter, table, schema);
  await requireKept(statements, generation, schema, node);
  return compileToSql(node, {
    alias: ROW,
    firstParameter: 1,
    column: (alias, tableOf, name) => {
      if (name === "id") return `${alias}.id`;
      const column = schema.get(tableOf)!.columns.get(name) ?? SYSTEM_COLUMNS.get(name)!;
      const value = `${alias}.${valueColumn(column.id)}`;
      if (column.vector === undefined) return value;
      // Filters only ask whether there is a vector, searchable or not.
      return `(CASE WHEN ${value} IS NOT NULL OR ${alias}.${unsearchableColumn(column.id)} THEN TRUE END)`;
    },
    relation: (name) => tableName(generation, schema.get(name)!.id),
    datetimeType: "int8",
    foldSchema: SCHEMA,
  });
}

/** Refuses filters that cannot be answered exactly, with the message of the search in memory. */
async function requireKept(statements: Statements, generation: string, schema: FollowedSchema, node: FilterNode): Promise<void> {
  const names = new Map<string, string>();
  for (const { column } of leavesThatNeedWhole(node)) {
    const table = schema.get(column.table);
    const found = table?.columns.get(column.column);
    if (found !== undefined) names.set(`${table!.id} ${found.id}`, column.column);
  }
  if (names.size === 0) return;
  const ids = [...names.keys()].map((pair) => pair.split(" "));
  const [omitted] = await statements.query<{ pair: string; id: string }>(
    `SELECT table_id || ' ' || column_id AS pair, left(id, 100) AS id FROM ${omittedTable(generation)}
     WHERE (table_id, column_id) IN (SELECT * FROM unnest($1::int8[], $2::int8[])) ORDER BY table_id, column_id, id LIMIT 1`,
    [ids.map(([table]) => table), ids.map(([, column]) => column)],
  );
  if (omitted === undefined) return;
  throw valueNotKept(names.get(omitted.pair)!, omitted.id);
}

/**
 * For values that are not kept, two facts are still known: they exist, and they equal no text of a filter.
 */
function* leavesThatNeedWhole(node: FilterNode): Generator<FilterLeaf> {
  if (node.kind === "and" || node.kind === "or") for (const inner of node.nodes) yield* leavesThatNeedWhole(inner);
  else if (node.kind === "not") yield* leavesThatNeedWhole(node.node);
  else {
    const { kind } = node.column;
    const isPresence = node.kind === "exists" || node.kind === "constant";
    if (kind === "json" || (kind === "multiple" && !isPresence) || (kind === "text" && !isPresence && node.kind !== "in")) yield node;
  }
}
