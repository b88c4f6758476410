/** Rows of `lodestone.branches`: finding them, locking them, and dropping what they stand for; and the views of a branch. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { SYSTEM_COLUMNS, systemColumnName } from "../../filter/system-columns.ts";
import type { Connection } from "../engine/engine.ts";
import { formatBranchRef, physicalNameOf, qualified, quoteIdentifier, viewSchemaNameOf } from "../identifiers.ts";
import type { BranchInfo, BranchRef, TableInfo } from "../schema.ts";
import { type BranchDocument, namingOf, type TableDocument, toTableInfos } from "./document.ts";
import { roleGrantStatements } from "./table-ddl.ts";

export interface BranchRow {
  database: string;
  branch: string;
  schema_name: string;
  role_name: string;
  incarnation: string;
  version: string;
  document: BranchDocument;
  created_at: string;
}

/** RFC 3339 with milliseconds, as the API gives times. */
export const CREATED_AT = `to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at`;

export const BRANCH_COLUMNS = `database, branch, schema_name, role_name, incarnation::text, version::text, document, ${CREATED_AT}`;

export function toBranchInfo(row: BranchRow): BranchInfo {
  return {
    ref: { database: row.database, branch: row.branch },
    schemaName: row.schema_name,
    sqlSchemaName: namingOf(row.document) === "dotted" ? row.schema_name : viewSchemaNameOf(row),
    systemNaming: namingOf(row.document),
    roleName: row.role_name,
    incarnation: row.incarnation,
    version: Number(row.version),
    createdAt: row.created_at,
    tables: toTableInfos(row.document),
  };
}

/** `locking` holds the row until the transaction ends. NOT_FOUND says which of the two is missing. */
export async function findBranch(
  connection: Pick<Connection, "query">,
  ref: BranchRef,
  locking: "" | "FOR SHARE" | "FOR UPDATE" = "",
): Promise<BranchRow> {
  const { rows } = await connection.query<BranchRow>(
    `SELECT ${BRANCH_COLUMNS} FROM lodestone.branches WHERE database = $1 AND branch = $2 ${locking}`,
    [ref.database, ref.branch],
  );
  if (rows[0] !== undefined) return rows[0];
  await requireDatabase(connection, ref.database);
  throw new LodestoneError("NOT_FOUND", `Branch "${ref.branch}" does not exist in database "${ref.database}".`);
}

export async function requireDatabase(connection: Pick<Connection, "query">, name: string, locking: "" | "FOR UPDATE" = ""): Promise<void> {
  const { rows } = await connection.query(`SELECT 1 FROM lodestone.databases WHERE name = $1 ${locking}`, [name]);
  if (rows.length === 0) throw new LodestoneError("NOT_FOUND", `Database "${name}" does not exist.`);
}

export function requireTable(branch: BranchInfo, name: string): TableInfo {
  const table = branch.tables.get(name);
  // The text of the retired service, which clients compare.
  if (table === undefined) throw new LodestoneError("NOT_FOUND", `table [${formatBranchRef(branch.ref)}/${name}] not found`);
  return table;
}

/** Removes a branch with everything in it; the caller has locked its row. */
export async function dropBranchOf(connection: Connection, row: BranchRow): Promise<void> {
  await connection.query(`DROP SCHEMA IF EXISTS ${quoteIdentifier(viewSchemaNameOf(row))} CASCADE`);
  await connection.query(`DROP SCHEMA IF EXISTS ${quoteIdentifier(row.schema_name)} CASCADE`);
  await connection.query("DELETE FROM lodestone.branches WHERE schema_name = $1", [row.schema_name]);
  // A database made as a copy (CREATE DATABASE … TEMPLATE) shares the role: then it stays for the other.
  const role = quoteIdentifier(row.role_name);
  await connection.query("SAVEPOINT dropping_role");
  try {
    await connection.query(`DROP ROLE IF EXISTS ${role}`);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "2BP01") throw error;
    await connection.query("ROLLBACK TO SAVEPOINT dropping_role");
  }
}

/** Makes a branch's role again where a dump was restored without it. */
export async function restoreRole(connection: Connection, row: BranchRow): Promise<void> {
  for (const statement of roleGrantStatements(row.schema_name, row.role_name, row.document.tables)) await connection.query(statement);
  await replaceViews(connection, row);
}

// The schema of views that users' SQL sees in a branch whose system columns are underscored: one view per
// table, with the table's name, in which those columns have their underscored names. PostgreSQL writes through
// such views, including ON CONFLICT and RETURNING, and the tables' triggers see the writes. The tables
// themselves are the same in every branch.

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
