/**
 * The schema of views that users' SQL sees in a branch whose system columns are underscored: one view per
 * table, with the table's name, in which those columns have their underscored names. PostgreSQL writes through
 * such views, including ON CONFLICT and RETURNING, and the tables' triggers see the writes. The tables
 * themselves are the same in every branch.
 */
import { SYSTEM_COLUMNS, systemColumnName } from "../../filter/system-columns.ts";
import type { Connection } from "../engine/engine.ts";
import { physicalNameOf, qualified, quoteIdentifier, viewSchemaNameOf } from "../identifiers.ts";
import type { BranchRow } from "./branch-rows.ts";
import { namingOf, type TableDocument } from "./document.ts";

type Branch = Pick<BranchRow, "database" | "branch" | "schema_name" | "role_name" | "document">;

/** A column that a view uses cannot be dropped. So all views are dropped before the tables change. */
export async function dropViews(connection: Connection, branch: Branch): Promise<void> {
  if (namingOf(branch.document) === "dotted") return;
  await connection.query(`DROP SCHEMA IF EXISTS ${quoteIdentifier(viewSchemaNameOf(branch))} CASCADE`);
}

/** Makes the views that the naming of the branch needs, and no others. */
export async function replaceViews(connection: Connection, branch: Branch): Promise<void> {
  const schemaName = viewSchemaNameOf(branch);
  await connection.query(`DROP SCHEMA IF EXISTS ${quoteIdentifier(schemaName)} CASCADE`);
  if (namingOf(branch.document) === "dotted") return;
  const role = quoteIdentifier(branch.role_name);
  await connection.query(`CREATE SCHEMA ${quoteIdentifier(schemaName)}`);
  await connection.query(`GRANT USAGE ON SCHEMA ${quoteIdentifier(schemaName)} TO ${role}`);
  for (const table of branch.document.tables) {
    for (const statement of viewStatements(branch.schema_name, schemaName, role, table)) await connection.query(statement);
  }
}

function viewStatements(tableSchema: string, viewSchema: string, role: string, table: TableDocument): string[] {
  const name = physicalNameOf(table.name);
  const view = qualified(viewSchema, name);
  const system = SYSTEM_COLUMNS.map(
    (column) => `${quoteIdentifier(column)} AS ${quoteIdentifier(systemColumnName(column, "underscored"))}`,
  );
  const own = table.columns.map((column) => quoteIdentifier(physicalNameOf(column.name)));
  const [id] = SYSTEM_COLUMNS.map((column) => quoteIdentifier(systemColumnName(column, "underscored")));
  return [
    `CREATE VIEW ${view} AS SELECT ${[...system, ...own].join(", ")} FROM ${qualified(tableSchema, name)}`,
    `GRANT SELECT, DELETE, INSERT (${[id, ...own].join(", ")}) ON ${view} TO ${role}`,
    ...(own.length === 0 ? [] : [`GRANT UPDATE (${own.join(", ")}) ON ${view} TO ${role}`]),
  ];
}
