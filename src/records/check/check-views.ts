/**
 * Verifies the views through which users' SQL sees a branch whose system columns are underscored: they are
 * there, show the tables, and allow no more than they should.
 */
import { SYSTEM_COLUMNS, systemColumnName } from "../../filter/system-columns.ts";
import type { Connection } from "../engine/engine.ts";
import { qualified, quoteIdentifier, viewSchemaNameOf } from "../identifiers.ts";
import type { BranchInfo, TableInfo } from "../schema.ts";

/** What a check has found. */
export interface Fault {
  readonly table?: string;
  readonly column?: string;
  /** What is wrong, in a sentence. */
  readonly message: string;
}

interface Column {
  readonly name: string;
  /** In the table. */
  readonly source: string;
  readonly isWritten: "never" | "by INSERT" | "always";
}

/** Reads each table whole. */
export async function checkViews(connection: Connection, branch: BranchInfo): Promise<Fault[]> {
  const schemaName = viewSchemaNameOf(branch.ref);
  const { rows } = await connection.query<{ name: string; kind: string }>(
    "SELECT relname AS name, relkind::text AS kind FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)",
    [schemaName],
  );
  const tables = branch.systemNaming === "underscored" ? [...branch.tables.values()] : [];
  const names = new Set(tables.map((table) => table.physicalName));
  const faults: Fault[] = rows
    .filter(({ name, kind }) => kind !== "v" || !names.has(name))
    .map(({ name }) => ({ table: name, message: "The schema of the branch's views contains a relation that is not one of them." }));
  const present = new Set(rows.map(({ name }) => name));
  for (const table of tables) {
    if (!present.has(table.physicalName)) faults.push({ table: table.name, message: "The view that SQL sees is missing." });
    else faults.push(...(await checkView(connection, branch, schemaName, table)));
  }
  return faults;
}

async function checkView(connection: Connection, branch: BranchInfo, schemaName: string, table: TableInfo): Promise<Fault[]> {
  const view = qualified(schemaName, table.physicalName);
  const columns: Column[] = [
    ...SYSTEM_COLUMNS.map((source): Column => {
      const isWritten = source === "id" ? "by INSERT" : "never";
      return { name: systemColumnName(source, "underscored"), source, isWritten };
    }),
    ...[...table.columns.values()].map(({ physicalName }): Column => ({ name: physicalName, source: physicalName, isWritten: "always" })),
  ];
  const fault = (message: string, column?: string): Fault => ({ table: table.name, ...(column === undefined ? {} : { column }), message });
  const { rows } = await connection.query<{ name: string; inserts: boolean; updates: boolean }>(
    `SELECT attname AS name, has_column_privilege($2, attrelid, attnum, 'INSERT') AS inserts, has_column_privilege($2, attrelid, attnum, 'UPDATE') AS updates
     FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    [view, branch.roleName],
  );
  if (rows.length !== columns.length || rows.some(({ name }, i) => name !== columns[i]!.name))
    return [fault("The view that SQL sees does not have the columns of the table.")];
  const faults = rows.flatMap(({ name, inserts, updates }, i) => {
    const { isWritten } = columns[i]!;
    const isRight = inserts === (isWritten !== "never") && updates === (isWritten === "always");
    return isRight ? [] : [fault("SQL may write the column although it must not, or may not although it should.", name)];
  });
  const allowed = await connection.query<{ right: boolean }>(
    `SELECT has_table_privilege($2, $1::regclass, 'SELECT') AND has_table_privilege($2, $1::regclass, 'DELETE')
       AND NOT has_table_privilege($2, $1::regclass, 'TRUNCATE, REFERENCES, TRIGGER') AND NOT has_schema_privilege($2, $3, 'CREATE')
       AND NOT pg_has_role($2, relowner, 'MEMBER') AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = pg_class.oid)
       AND (SELECT count(*) FROM pg_rewrite WHERE ev_class = pg_class.oid) = 1 AS right FROM pg_class WHERE oid = $1::regclass`,
    [view, branch.roleName, schemaName],
  );
  if (allowed.rows[0]?.right !== true) faults.push(fault("The rights to the view that SQL sees are wrong."));
  const digest = (names: readonly string[], relation: string): string =>
    `(SELECT count(*)::text || ' ' || coalesce(sum(hashtextextended(ROW(${names.map(quoteIdentifier).join(", ")})::text, 0)), 0)::text FROM ${relation})`;
  const shown = digest(
    columns.map(({ name }) => name),
    view,
  );
  const stored = digest(
    columns.map(({ source }) => source),
    qualified(branch.schemaName, table.physicalName),
  );
  const { rows: compared } = await connection.query<{ equal: boolean }>(`SELECT ${shown} = ${stored} AS equal`);
  if (!compared[0]!.equal) faults.push(fault("The view that SQL sees does not show what is in the table."));
  return faults;
}
