/**
 * The operations that lead from one schema to another.
 *
 * Between two schemas as users write them, tables and columns are told by their names: a rename looks like a
 * removal and an addition, and so does a change of a column's type (nothing else can express it; applied, it
 * drops the column's values). Between two states of one branch they are told by their ids.
 */

import { Slices } from "../../../threads/event-loop.ts";
import type { BranchSchema, ColumnSchema, SchemaOperation, TableSchema } from "../../schema.ts";
import { sameDefinition } from "../column-types.ts";
import type { BranchDocument, ColumnDocument, TableDocument } from "../document.ts";
import { toColumnSchema } from "../document.ts";

const COLUMNS_PER_SLICE = 10_000;

/**
 * Applying the result to `source` gives the tables and columns of `target`, apart from their order. Linear in
 * both, and done in slices.
 */
export async function compareSchemas(source: BranchSchema, target: BranchSchema): Promise<SchemaOperation[]> {
  const slices = new Slices(COLUMNS_PER_SLICE);
  const there = new Map(source.tables.map((table) => [table.name, table]));
  const wanted = new Map(target.tables.map((table) => [table.name, table]));
  const added = target.tables.filter(({ name }) => !there.has(name));
  const removed = source.tables.filter(({ name }) => !wanted.has(name));
  const removedNames = new Set(removed.map(({ name }) => name));
  const operations: SchemaOperation[] = [];

  // Columns are dropped first: a table that is linked to cannot be dropped.
  for (const table of source.tables) {
    const kept = wanted.get(table.name);
    const columns = columnsByName(kept);
    for (const column of table.columns) {
      const gone = kept === undefined ? linksInto(column, removedNames, table.name) : !sameColumn(columns.get(column.name), column);
      if (gone) operations.push({ removeColumn: { table: table.name, column: column.name } });
    }
    if (slices.spend(table.columns.length + columns.size + 1)) await slices.rest();
  }
  for (const { name } of removed) operations.push({ removeTable: { table: name } });

  for (const operation of additions(added, new Set(there.keys()))) {
    operations.push(operation);
    if (slices.spend(1)) await slices.rest();
  }
  for (const table of target.tables) {
    const before = there.get(table.name);
    if (before === undefined) continue;
    const columns = columnsByName(before);
    for (const column of table.columns) {
      if (!sameColumn(columns.get(column.name), column)) operations.push(addColumn(table.name, column));
    }
    if (slices.spend(table.columns.length + columns.size + 1)) await slices.rest();
  }
  return operations;
}

const columnsByName = (table: TableSchema | undefined): Map<string, ColumnSchema> =>
  new Map(table?.columns.map((column) => [column.name, column]));

/** Each table with its columns; all tables first where one links to a table that comes later. */
function* additions(tables: readonly TableSchema[], known: Set<string>): Generator<SchemaOperation, void, undefined> {
  const seen = new Set(known);
  let forward = false;
  for (const table of tables) {
    seen.add(table.name);
    forward ||= table.columns.some(({ link }) => link !== undefined && !seen.has(link.table));
  }
  if (forward) for (const { name } of tables) yield { addTable: { table: name } };
  for (const { name, columns } of tables) {
    if (!forward) yield { addTable: { table: name } };
    for (const column of columns) yield addColumn(name, column);
  }
}

/**
 * What was done between two states of one branch's document, renames included. Empty when only the order of
 * columns changed.
 */
export function describeChange(before: BranchDocument, after: BranchDocument): SchemaOperation[] {
  const operations: SchemaOperation[] = [];
  const was = byId(before.tables);
  const is = byId(after.tables);
  for (const table of before.tables) {
    const now = is.get(table.id);
    if (now !== undefined && now.name !== table.name) operations.push({ renameTable: { oldName: table.name, newName: now.name } });
  }
  for (const table of before.tables) {
    const now = is.get(table.id);
    if (now === undefined) continue;
    const columns = byId(now.columns);
    for (const column of table.columns) {
      const kept = columns.get(column.id);
      if (kept === undefined) operations.push({ removeColumn: { table: now.name, column: column.name } });
      else if (kept.name !== column.name) {
        operations.push({ renameColumn: { table: now.name, oldName: column.name, newName: kept.name } });
      }
    }
  }
  const removed = before.tables.filter((table) => !is.has(table.id));
  const removedNames = new Set(removed.map(({ name }) => name));
  for (const table of removed) {
    for (const column of table.columns) {
      if (linksInto(column, removedNames, table.name)) operations.push({ removeColumn: { table: table.name, column: column.name } });
    }
  }
  for (const table of removed) operations.push({ removeTable: { table: table.name } });

  const added = after.tables.filter((table) => !was.has(table.id)).map(toSchema);
  operations.push(...additions(added, new Set(after.tables.filter((table) => was.has(table.id)).map(({ name }) => name))));
  for (const table of after.tables) {
    const earlier = was.get(table.id);
    if (earlier === undefined) continue;
    const columns = byId(earlier.columns);
    for (const column of table.columns) if (!columns.has(column.id)) operations.push(addColumn(table.name, toColumnSchema(column)));
  }
  return operations;
}

const byId = <Item extends TableDocument | ColumnDocument>(items: readonly Item[]): Map<number, Item> =>
  new Map(items.map((item) => [item.id, item]));

const toSchema = (table: TableDocument): TableSchema => ({ name: table.name, columns: table.columns.map(toColumnSchema) });

const addColumn = (table: string, column: ColumnSchema): SchemaOperation => ({ addColumn: { table, column } });

/** Whether a column of a table that goes away holds on to another one that goes away. */
const linksInto = (column: ColumnSchema, removed: ReadonlySet<string>, own: string): boolean =>
  column.link !== undefined && column.link.table !== own && removed.has(column.link.table);

/** Told by their names: what has no namesake has no equal. */
const sameColumn = (one: ColumnSchema | undefined, other: ColumnSchema): boolean => one !== undefined && sameDefinition(one, other);
