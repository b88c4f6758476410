/**
 * The older form of a schema change, which `migrations/plan` gives and `migrations/execute` takes: what is new,
 * removed and different, table by table. It cannot express a rename.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { Slices } from "../../threads/event-loop.ts";
import { compareSchemas } from "../catalog/history/compare.ts";
import type { BranchSchema, ColumnSchema, SchemaOperation, TableSchema } from "../schema.ts";

const COLUMNS_PER_SLICE = 10_000;

export interface TableMigration {
  newColumns?: Record<string, ColumnSchema>;
  removedColumns?: string[];
  newColumnOrder: string[];
}

export interface BranchMigration {
  status: string;
  localChanges: boolean;
  newTables?: Record<string, TableSchema>;
  removedTables?: string[];
  tableMigrations?: Record<string, TableMigration>;
  newTableOrder: string[];
}

export async function planMigration(source: BranchSchema, target: BranchSchema): Promise<BranchMigration> {
  const slices = new Slices(COLUMNS_PER_SLICE);
  const targets = new Map(target.tables.map((table) => [table.name, table]));
  const newTables: Record<string, TableSchema> = Object.create(null);
  const tableMigrations: Record<string, TableMigration> = Object.create(null);
  const removedTables: string[] = [];
  const migrationOf = (table: string): TableMigration => {
    tableMigrations[table] ??= { newColumnOrder: (targets.get(table)?.columns ?? []).map(({ name }) => name) };
    return tableMigrations[table];
  };
  for (const operation of await compareSchemas(source, target)) {
    if ("removeTable" in operation) removedTables.push(operation.removeTable.table);
    else if ("addTable" in operation) {
      const table = targets.get(operation.addTable.table);
      if (table !== undefined) newTables[table.name] = table;
    } else if ("addColumn" in operation && !Object.hasOwn(newTables, operation.addColumn.table)) {
      const { table, column } = operation.addColumn;
      const migration = migrationOf(table);
      migration.newColumns ??= Object.create(null) as Record<string, ColumnSchema>;
      migration.newColumns[column.name] = column;
    } else if ("removeColumn" in operation) {
      const migration = migrationOf(operation.removeColumn.table);
      migration.removedColumns ??= [];
      migration.removedColumns.push(operation.removeColumn.column);
    }
    if (slices.spend(1)) await slices.rest();
  }
  return {
    status: "pending",
    localChanges: false,
    newTables,
    removedTables,
    tableMigrations,
    newTableOrder: target.tables.map(({ name }) => name),
  };
}

/** What a plan asks for, as operations whose form is yet to be checked. */
export function operationsOf(given: unknown): unknown[] {
  const migration = record(given, "migration");
  const operations: (SchemaOperation | object)[] = [];
  if (migration.renamedTables !== undefined) {
    for (const { oldName, newName } of list(migration.renamedTables, "migration.renamedTables"))
      operations.push({ renameTable: { oldName, newName } });
  }
  const tables = Object.entries(record(migration.tableMigrations ?? {}, "migration.tableMigrations"));
  for (const [table, value] of tables) {
    const { removedColumns, modifiedColumns } = record(value, `migration.tableMigrations.${table}`);
    for (const column of list(removedColumns ?? [], `migration.tableMigrations.${table}.removedColumns`)) {
      operations.push({ removeColumn: { table, column } });
    }
    if (Array.isArray(modifiedColumns) && modifiedColumns.length > 0) {
      throw new LodestoneError(
        "INVALID",
        `migration.tableMigrations.${table}.modifiedColumns: a column's type cannot be changed. Add a column with another name, copy the values, and remove this one.`,
      );
    }
  }
  for (const table of list(migration.removedTables ?? [], "migration.removedTables")) operations.push({ removeTable: { table } });
  const added = Object.entries(record(migration.newTables ?? {}, "migration.newTables"));
  // Tables first: they may link to each other.
  for (const [table] of added) operations.push({ addTable: { table } });
  for (const [table, value] of added) {
    for (const column of list(record(value, `migration.newTables.${table}`).columns, `migration.newTables.${table}.columns`)) {
      operations.push({ addColumn: { table, column } });
    }
  }
  for (const [table, value] of tables) {
    const { newColumns } = record(value, `migration.tableMigrations.${table}`);
    for (const column of Object.values(record(newColumns ?? {}, `migration.tableMigrations.${table}.newColumns`))) {
      operations.push({ addColumn: { table, column } });
    }
  }
  return operations;
}

// biome-ignore lint/suspicious/noExplicitAny: unchecked input; requireOperations checks what is made of it
function list(given: unknown, path: string): any[] {
  if (!Array.isArray(given)) throw new LodestoneError("INVALID", `${path} has to be a list.`);
  return given;
}

function record(given: unknown, path: string): Record<string, unknown> {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new LodestoneError("INVALID", `${path} has to be an object.`);
  return given as Record<string, unknown>;
}
