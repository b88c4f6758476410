/**
 * How deep JSON may be nested in a json column, whoever writes it: so everything that is recursive can read, answer
 * and copy what is stored. It is a rule of each json column.
 */
import type { Connection } from "../engine/engine.ts";
import { constraintName, qualified, quoteIdentifier } from "../identifiers.ts";

/** Levels of objects and arrays. */
export const MAX_JSON_DEPTH = 128;

/** The condition in PostgreSQL, for a jsonb expression: true for null. The outermost is level 0. */
const jsonDepthCondition = (expression: string): string =>
  `NOT pg_catalog.jsonb_path_exists(${expression}, 'strict $.**{${MAX_JSON_DEPTH}}.type() ? (@ == "array" || @ == "object")')`;

/** NOT VALID: it holds for everything that is written from now on; existing values are not read. */
export function jsonLimitStatement(schemaName: string, physicalTable: string, physicalColumn: string): string {
  const name = quoteIdentifier(constraintName(physicalTable, physicalColumn, "json"));
  const condition = jsonDepthCondition(quoteIdentifier(physicalColumn));
  return `ALTER TABLE ${qualified(schemaName, physicalTable)} ADD CONSTRAINT ${name} CHECK (${condition}) NOT VALID`;
}

/** Columns made by an earlier release do not have this rule yet. */
export async function addMissingJsonLimits(connection: Connection): Promise<void> {
  const { rows } = await connection.query<{ schemaName: string; table: string; column: string }>(
    `SELECT schema_name AS "schemaName", relname AS table, attname AS column
      FROM lodestone.branches JOIN pg_catalog.pg_namespace AS n ON nspname = schema_name
        JOIN pg_catalog.pg_class AS c ON relnamespace = n.oid AND relkind = 'r' JOIN pg_catalog.pg_attribute ON attrelid = c.oid
      WHERE atttypid = 'jsonb'::regtype AND attnum > 0 AND NOT attisdropped
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conrelid = c.oid AND contype = 'c' AND conkey = ARRAY[attnum])
      ORDER BY schema_name, relname, attnum`,
  );
  for (const { schemaName, table, column } of rows) await connection.query(jsonLimitStatement(schemaName, table, column));
}
