/**
 * The schema of views that users' SQL sees in a branch whose system columns are underscored: for each table a
 * view of its name, in which they have their names. PostgreSQL writes through such views, ON CONFLICT and
 * RETURNING included, and the triggers of the tables see it. The tables themselves are the same in every
 * branch.
 */
import { SYSTEM_COLUMNS, systemColumnName } from "../../filter/system-columns.ts";
import type { Connection } from "../engine/engine.ts";
import { physicalNameOf, qualified, quoteIdentifier, viewSchemaNameOf } from "../identifiers.ts";
import type { BranchRow } from "./branch-rows.ts";
import { namingOf, type TableDocument } from "./document.ts";

type Branch = Pick<BranchRow, "database" | "branch" | "schema_name" | "role_name" | "document">;

/** Columns of a table under a view cannot go: so before the tables change, all views do. */
export async function dropViews(connection: Connection, branch: Branch): Promise<void> {
  if (namingOf(branch.document) === "dotted") return;
  await connection.query(`DROP SCHEMA IF EXISTS ${quoteIdentifier(viewSchemaNameOf(branch))} CASCADE`);
}

/** Makes the views that the branch's naming asks for, and no others. */
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
