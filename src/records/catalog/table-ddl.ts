/**
 * The statements that make a branch's schema and its tables: system columns, triggers, and the rights of the
 * branch's role.
 */
import { constraintName, formatBranchRef, physicalNameOf, qualified, quoteIdentifier, quoteLiteral } from "../identifiers.ts";
import type { BranchRef, ColumnSchema, TableSchema } from "../schema.ts";
import { columnConstraints, columnDefinition } from "./column-types.ts";

/** The outbox of a branch. User tables have no dot in their names. */
export const FEED_TABLE = "lodestone.feed";
/** As PostgreSQL names the sequence of its identity column `seq`. */
export const FEED_SEQUENCE = "lodestone.feed_seq_seq";
const FEED_FUNCTION = "lodestone.feed";
/** Payload: `database:branch`. */
export const FEED_CHANNEL = "lodestone_feed";

export function createBranchStatements(ref: BranchRef, schemaName: string, roleName: string): string[] {
  const schema = quoteIdentifier(schemaName);
  const feed = qualified(schemaName, FEED_TABLE);
  return [
    `CREATE SCHEMA ${schema}`,
    ...roleGrantStatements(schemaName, roleName, []),
    // Only appended to and trimmed: rows are short, written in order, and found by transaction.
    `CREATE TABLE ${feed} (txid xid8 NOT NULL DEFAULT pg_current_xact_id(), seq int8 GENERATED ALWAYS AS IDENTITY,
       table_name text COLLATE "C" NOT NULL, record_id text COLLATE "C" NOT NULL, PRIMARY KEY (txid, seq))`,
    feedFunctionStatement(ref, schemaName),
    `REVOKE ALL ON FUNCTION ${qualified(schemaName, FEED_FUNCTION)}() FROM PUBLIC`,
  ];
}

/**
 * AFTER INSERT, UPDATE or DELETE FOR EACH STATEMENT (and BEFORE TRUNCATE): appends what the statement changed
 * to the outbox, inside the writer's transaction. SECURITY DEFINER: the branch's role may not touch the outbox
 * itself.
 */
export function feedFunctionStatement(ref: BranchRef, schemaName: string): string {
  const feed = qualified(schemaName, FEED_TABLE);
  const body = `BEGIN
  IF TG_OP = 'INSERT' OR TG_OP = 'UPDATE' THEN
    INSERT INTO ${feed} (table_name, record_id) SELECT TG_TABLE_NAME, "id" FROM new_records;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO ${feed} (table_name, record_id) SELECT TG_TABLE_NAME, "id" FROM old_records;
  ELSE
    EXECUTE format('INSERT INTO %s (table_name, record_id) SELECT %L, "id" FROM %I.%I', ${quoteLiteral(feed)}, TG_TABLE_NAME, TG_TABLE_SCHEMA, TG_TABLE_NAME);
  END IF;
  IF (FOUND OR TG_OP = 'TRUNCATE') AND coalesce(current_setting('lodestone.writer', true), '') <> 'service' THEN
    PERFORM pg_notify('${FEED_CHANNEL}', ${quoteLiteral(formatBranchRef(ref))});
  END IF;
  RETURN NULL;
END`;
  return `CREATE OR REPLACE FUNCTION ${qualified(schemaName, FEED_FUNCTION)}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS ${quoteLiteral(body)}`;
}

/** A table with its columns but no constraint, index or trigger: what records are copied into. */
export function bareTableStatement(
  schemaName: string,
  table: { readonly name: string; readonly columns: readonly ColumnSchema[] },
): string {
  const definitions = [
    `"id" text COLLATE "C" NOT NULL DEFAULT lodestone.record_id()`,
    ...table.columns.map(columnDefinition),
    `"xata.version" int4 NOT NULL DEFAULT 0`,
    `"xata.createdAt" timestamptz NOT NULL DEFAULT now()`,
    `"xata.updatedAt" timestamptz NOT NULL DEFAULT now()`,
  ];
  return `CREATE TABLE ${qualified(schemaName, physicalNameOf(table.name))} (${definitions.join(", ")})`;
}

export function primaryKeyStatement(schemaName: string, tableName: string): string {
  const table = physicalNameOf(tableName);
  return `ALTER TABLE ${qualified(schemaName, table)} ADD CONSTRAINT ${quoteIdentifier(constraintName(table, "id", "key"))} PRIMARY KEY ("id")`;
}

/**
 * The role that users' SQL runs as, and its rights. It owns nothing; system columns are read-only to it, except
 * for `id` on insert.
 */
export function roleGrantStatements(schemaName: string, roleName: string, tables: readonly TableSchema[]): string[] {
  const role = quoteIdentifier(roleName);
  return [
    `CREATE ROLE ${role} NOLOGIN NOINHERIT`,
    `COMMENT ON ROLE ${role} IS ${quoteLiteral(`Lodestone: runs users' SQL in the branch ${schemaName}`)}`,
    `GRANT USAGE ON SCHEMA ${quoteIdentifier(schemaName)} TO ${role}`,
    ...tables.flatMap((table) => [
      tableGrant(schemaName, roleName, table.name),
      ...table.columns.map((column) => columnGrant(schemaName, roleName, table.name, column)),
    ]),
  ];
}

function tableGrant(schemaName: string, roleName: string, tableName: string): string {
  return `GRANT SELECT, DELETE, INSERT ("id") ON ${qualified(schemaName, physicalNameOf(tableName))} TO ${quoteIdentifier(roleName)}`;
}

function columnGrant(schemaName: string, roleName: string, tableName: string, column: ColumnSchema): string {
  const quoted = quoteIdentifier(physicalNameOf(column.name));
  return `GRANT INSERT (${quoted}), UPDATE (${quoted}) ON ${qualified(schemaName, physicalNameOf(tableName))} TO ${quoteIdentifier(roleName)}`;
}

/**
 * Everything about a column that is added once the table exists: its constraints, and what the branch's role
 * may write.
 */
export function columnStatements(schemaName: string, roleName: string, tableName: string, column: ColumnSchema): string[] {
  return [...columnConstraints(schemaName, physicalNameOf(tableName), column), columnGrant(schemaName, roleName, tableName, column)];
}

/**
 * Maintains a table's system columns and its part of the change feed, whoever writes; and grants the branch's
 * role its rights to the table.
 */
export function tableGuardStatements(schemaName: string, roleName: string, tableName: string): string[] {
  const table = qualified(schemaName, physicalNameOf(tableName));
  const feed = `EXECUTE FUNCTION ${qualified(schemaName, FEED_FUNCTION)}()`;
  return [
    tableGrant(schemaName, roleName, tableName),
    `CREATE TRIGGER "lodestone.touch" BEFORE UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION lodestone.touch_record()`,
    `CREATE TRIGGER "lodestone.insert" AFTER INSERT ON ${table} REFERENCING NEW TABLE AS new_records FOR EACH STATEMENT ${feed}`,
    `CREATE TRIGGER "lodestone.update" AFTER UPDATE ON ${table} REFERENCING NEW TABLE AS new_records FOR EACH STATEMENT ${feed}`,
    `CREATE TRIGGER "lodestone.delete" AFTER DELETE ON ${table} REFERENCING OLD TABLE AS old_records FOR EACH STATEMENT ${feed}`,
    `CREATE TRIGGER "lodestone.truncate" BEFORE TRUNCATE ON ${table} FOR EACH STATEMENT ${feed}`,
  ];
}
