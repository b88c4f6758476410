/** Runs schema operations on a branch, through its schema editor. */
import { LodestoneError } from "../../errors.ts";
import type { SchemaOperation } from "../catalog/history/schema-operations.ts";
import type { SchemaEditor } from "../catalog/schema-editor.ts";

/** Between so many operations, others get the event loop. */
const OPERATIONS_PER_SLICE = 100;

/** Runs operations in their order. A fault names the operation; the caller's transaction undoes what was done. */
export async function applyOperations(editor: SchemaEditor, operations: readonly SchemaOperation[], path: string): Promise<void> {
  for (const [i, operation] of operations.entries()) {
    // A rehearsal waits for nothing: others get a turn all the same.
    if (i % OPERATIONS_PER_SLICE === OPERATIONS_PER_SLICE - 1) await new Promise((resolve) => setImmediate(resolve));
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
