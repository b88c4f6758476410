/**
 * Gives a branch another address, with its records, its history and its outbox, inside the caller's
 * transaction, which has locked the branch's row.
 */
import type { Connection } from "../engine/engine.ts";
import { quoteIdentifier, schemaNameOf } from "../identifiers.ts";
import type { BranchRef } from "../schema.ts";
import type { BranchRow } from "./branch-rows.ts";
import { dropViews, replaceViews } from "./branch-views.ts";
import { feedFunctionStatement } from "./table-ddl.ts";

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
