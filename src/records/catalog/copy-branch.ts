/**
 * Copies the tables of a branch into an empty one, records with their versions and times included, inside the
 * caller's transaction.
 */

import { SYSTEM_COLUMNS } from "../../filter/system-columns.ts";
import type { Connection } from "../engine/engine.ts";
import { physicalNameOf, qualified, quoteIdentifier } from "../identifiers.ts";
import type { BranchDocument } from "./document.ts";
import { bareTableStatement, columnStatements, primaryKeyStatement, tableGuardStatements } from "./table-ddl.ts";

/** The transaction is repeatable read, so that all tables are copied as they were at one moment. */
export async function copyTables(
  connection: Connection,
  fromSchema: string,
  to: { readonly schemaName: string; readonly roleName: string },
  document: BranchDocument,
): Promise<void> {
  for (const table of document.tables) {
    await connection.query(bareTableStatement(to.schemaName, table));
    // Before the records come: storage of what is there already does not change.
    for (const column of table.columns) {
      if (column.type !== "vector") continue;
      const physical = quoteIdentifier(physicalNameOf(column.name));
      await connection.query(
        `ALTER TABLE ${qualified(to.schemaName, physicalNameOf(table.name))} ALTER COLUMN ${physical} SET STORAGE EXTERNAL`,
      );
    }
    const columns = [...SYSTEM_COLUMNS, ...table.columns.map((column) => physicalNameOf(column.name))].map(quoteIdentifier).join(", ");
    const name = physicalNameOf(table.name);
    await connection.query(
      `INSERT INTO ${qualified(to.schemaName, name)} (${columns}) SELECT ${columns} FROM ${qualified(fromSchema, name)}`,
    );
    await connection.query(primaryKeyStatement(to.schemaName, table.name));
  }
  // Links may form circles, so they come once every table has its records and its key.
  for (const table of document.tables) {
    for (const column of table.columns) {
      for (const statement of columnStatements(to.schemaName, to.roleName, table.name, column)) await connection.query(statement);
    }
    for (const statement of tableGuardStatements(to.schemaName, to.roleName, table.name)) await connection.query(statement);
  }
}
