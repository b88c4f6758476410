/**
 * The operations that lead from one schema to another.
 *
 * Between two schemas as users write them, tables and columns are told by their names: a rename looks like a removal and an addition, and so does a change of
 * a column's type (nothing else can express it; applied, it drops the column's values). Between two states of one branch they are told by their ids.
 */

import type { BranchSchema, ColumnSchema, TableSchema } from "../../schema.ts";
import type { BranchDocument, ColumnDocument, TableDocument } from "../document.ts";
import { toColumnSchema } from "../document.ts";
import type { SchemaOperation } from "./schema-operations.ts";

/** Applying the result to `source` gives the tables and columns of `target`; their order aside. */
export function compareSchemas(source: BranchSchema, target: BranchSchema): SchemaOperation[] {
  const there = new Map(source.tables.map((table) => [table.name, table]));
  const wanted = new Map(target.tables.map((table) => [table.name, table]));
  const added = target.tables.filter(({ name }) => !there.has(name));
  const removed = source.tables.filter(({ name }) => !wanted.has(name));
  const operations: SchemaOperation[] = [];

  // Columns go first: a table that is linked to cannot be dropped.
  for (const table of source.tables) {
    const kept = wanted.get(table.name);
    for (const column of table.columns) {
      const gone = kept === undefined ? linksInto(column, removed, table.name) : !kept.columns.some((other) => sameColumn(other, column));
      if (gone) operations.push({ removeColumn: { table: table.name, column: column.name } });
    }
  }
  for (const { name } of removed) operations.push({ removeTable: { table: name } });

  operations.push(...additions(added, new Set(there.keys())));
  for (const table of target.tables) {
    const before = there.get(table.name);
    if (before === undefined) continue;
    for (const column of table.columns) {
      if (!before.columns.some((other) => sameColumn(other, column))) operations.push(addColumn(table.name, column));
    }
  }
  return operations;
}

/** Each table with its columns; all tables first where one links to a table that comes later. */
function additions(tables: readonly TableSchema[], known: Set<string>): SchemaOperation[] {
  const seen = new Set(known);
  let forward = false;
  for (const table of tables) {
    seen.add(table.name);
    forward ||= table.columns.some(({ link }) => link !== undefined && !seen.has(link.table));
  }
  const columnsOf = (table: TableSchema) => table.columns.map((column) => addColumn(table.name, column));
  if (forward) return [...tables.map(({ name }) => ({ addTable: { table: name } })), ...tables.flatMap(columnsOf)];
  return tables.flatMap((table) => [{ addTable: { table: table.name } }, ...columnsOf(table)]);
}

/** What was done between two states of one branch's document, renames included. Empty when only the order of columns changed. */
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
  for (const table of removed) {
    for (const column of table.columns) {
      if (linksInto(column, removed, table.name)) operations.push({ removeColumn: { table: table.name, column: column.name } });
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
const linksInto = (column: ColumnSchema, removed: readonly { name: string }[], own: string): boolean =>
  column.link !== undefined && column.link.table !== own && removed.some(({ name }) => name === column.link?.table);

function sameColumn(one: ColumnSchema, other: ColumnSchema): boolean {
  return (
    one.name === other.name &&
    one.type === other.type &&
    one.link?.table === other.link?.table &&
    one.vector?.dimension === other.vector?.dimension &&
    (one.notNull ?? false) === (other.notNull ?? false) &&
    (one.unique ?? false) === (other.unique ?? false) &&
    one.defaultValue === other.defaultValue
  );
}
