/** Runs schema operations on a branch, through its schema editor. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { Slices } from "../../threads/event-loop.ts";
import type { SchemaEditor } from "../catalog/schema-editor.ts";
import type { SchemaOperation } from "../schema.ts";

/** An operation goes over the existing tables and columns; after this many, others get the event loop. */
const COLUMNS_PER_SLICE = 50_000;
/** What an operation costs beyond that, in the same measure. */
const OPERATION_COST = 2_000;

/** Runs operations in their order. An error names the operation; the caller's transaction undoes what was done. */
export async function applyOperations(editor: SchemaEditor, operations: readonly SchemaOperation[], path: string): Promise<void> {
  const slices = new Slices(COLUMNS_PER_SLICE);
  for (const [i, operation] of operations.entries()) {
    const { tables } = editor.document;
    const columns = tables.reduce((sum, table) => sum + table.columns.length, tables.length);
    // A rehearsal never waits, so it has to yield to others explicitly.
    if (slices.spend(columns + OPERATION_COST)) await slices.rest();
    try {
      await applyOperation(editor, operation);
    } catch (error) {
      if (!(error instanceof LodestoneError) || !["INVALID", "NOT_FOUND", "CONFLICT"].includes(error.code)) throw error;
      throw new LodestoneError("INVALID", `${path}[${i}]: ${error.message}`, { cause: error });
    }
  }
}

async function applyOperation(editor: SchemaEditor, operation: SchemaOperation): Promise<void> {
  if ("addTable" in operation) return editor.createTable(operation.addTable.table);
  if ("removeTable" in operation) return editor.dropTable(operation.removeTable.table);
  if ("renameTable" in operation) return editor.renameTable(operation.renameTable.oldName, operation.renameTable.newName);
  if ("addColumn" in operation) return editor.addColumn(operation.addColumn.table, operation.addColumn.column);
  if ("removeColumn" in operation) return editor.dropColumn(operation.removeColumn.table, operation.removeColumn.column);
  const { table, oldName, newName } = operation.renameColumn;
  return editor.renameColumn(table, oldName, newName);
}
