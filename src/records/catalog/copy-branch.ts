/**
 * Copies the tables of a branch into an empty one, records with their versions and times included, inside the
 * caller's transaction.
 */
import { SYSTEM_COLUMNS } from "../../filter/system-columns.ts";
import type { Connection } from "../engine/engine.ts";
import { physicalNameOf, qualified, quoteIdentifier, schemaNameOf } from "../identifiers.ts";
import type { BranchRef } from "../schema.ts";
import { type BranchRow, dropViews, replaceViews } from "./branch-rows.ts";
import type { BranchDocument } from "./document.ts";
import { bareTableStatement, columnStatements, feedFunctionStatement, primaryKeyStatement, tableGuardStatements } from "./table-ddl.ts";

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

// Gives a branch another address, with its records, its history and its outbox, inside the caller's
// transaction, which has locked the branch's row.

/** Everything that refers to a branch by the name of its schema. */
const REFERRING = ["lodestone.feeds", "lodestone.followers", "lodestone.migrations"];

/** The row is new, and so is its incarnation: followers of the branch start over. */
export async function moveBranch(connection: Connection, row: BranchRow, to: BranchRef): Promise<void> {
  const schemaName = schemaNameOf(to);
  await dropViews(connection, row);
  await connection.query(`ALTER SCHEMA ${quoteIdentifier(row.schema_name)} RENAME TO ${quoteIdentifier(schemaName)}`);
  // The role's name is unique, and belongs to the old row until that is gone.
  await connection.query(
    `INSERT INTO lodestone.branches (database, branch, schema_name, role_name, version, document, metadata, started_from, created_at)
     SELECT $2, $3, $4, role_name || ' moving', version + 1, document, metadata, started_from, created_at FROM lodestone.branches WHERE schema_name = $1`,
    [row.schema_name, to.database, to.branch, schemaName],
  );
  for (const table of REFERRING) {
    await connection.query(`UPDATE ${table} SET schema_name = $2 WHERE schema_name = $1`, [row.schema_name, schemaName]);
  }
  await connection.query("DELETE FROM lodestone.branches WHERE schema_name = $1", [row.schema_name]);
  await connection.query("UPDATE lodestone.branches SET role_name = $2 WHERE schema_name = $1", [schemaName, row.role_name]);
  // It names the schema, and tells followers which branch changed.
  await connection.query(feedFunctionStatement(to, schemaName));
  await replaceViews(connection, { ...row, ...to, schema_name: schemaName });
}
