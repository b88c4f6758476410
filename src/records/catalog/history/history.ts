/**
 * The history of a branch's schema: one row of `lodestone.migrations` for each change, written in the
 * transaction of the change itself, whatever made it. Invariant: replaying the operations of a branch from its
 * first row makes its schema. A copied branch takes its history with it.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Connection } from "../../engine/engine.ts";
import type { SchemaOperation } from "../../schema.ts";
import { requireOperations } from "./schema-operations.ts";

export interface Migration {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly title: string | undefined;
  readonly message: string | undefined;
  readonly operations: readonly SchemaOperation[];
  /** Of the parent and the operations: tells whether a migration from elsewhere is what it was. */
  readonly checksum: string;
  readonly createdAt: string;
}

/** A change as it goes into the history. */
export interface MigrationNote {
  /** The id that it had in another branch; otherwise one is made. */
  readonly id?: string;
  readonly title?: string | undefined;
  readonly message?: string | undefined;
  readonly operations: readonly SchemaOperation[];
}

export const MIGRATIONS_TABLE = `CREATE TABLE lodestone.migrations (
  schema_name text COLLATE "C" NOT NULL REFERENCES lodestone.branches (schema_name) ON DELETE CASCADE,
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  title text,
  message text,
  operations jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (schema_name, position),
  UNIQUE (schema_name, id)
)`;

const newMigrationId = (): string => `mig_${randomBytes(10).toString("hex")}`;

export function checksumOf(parentId: string | undefined, operations: readonly SchemaOperation[]): string {
  return `1:${createHash("sha256")
    .update(JSON.stringify([parentId ?? null, operations]))
    .digest("hex")}`;
}

/** The caller holds the lock on the branch's row, so positions have no gaps and no duplicates. */
export async function recordMigration(connection: Connection, schemaName: string, note: MigrationNote): Promise<void> {
  await connection.query(
    `INSERT INTO lodestone.migrations (schema_name, position, id, title, message, operations)
     SELECT $1, coalesce(max(position), 0) + 1, $2, $3, $4, $5 FROM lodestone.migrations WHERE schema_name = $1`,
    [schemaName, note.id ?? newMigrationId(), note.title ?? null, note.message ?? null, JSON.stringify(note.operations)],
  );
}

export async function copyHistory(connection: Connection, fromSchema: string, toSchema: string): Promise<void> {
  await connection.query(
    `INSERT INTO lodestone.migrations (schema_name, position, id, title, message, operations, created_at)
     SELECT $2, position, id, title, message, operations, created_at FROM lodestone.migrations WHERE schema_name = $1`,
    [fromSchema, toSchema],
  );
}

interface Row {
  id: string;
  parent_id: string | null;
  title: string | null;
  message: string | null;
  operations: unknown;
  created_at: string;
}

const SELECT_MIGRATIONS = `SELECT id, title, message, operations,
  to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
  (SELECT p.id FROM lodestone.migrations p WHERE p.schema_name = m.schema_name AND p.position = m.position - 1) AS parent_id
  FROM lodestone.migrations m`;

const toMigration = (row: Row): Migration => {
  // jsonb does not keep the order of members. Checking restores the order that checksums are computed from.
  const operations = requireOperations(row.operations, "operations");
  const parentId = row.parent_id ?? undefined;
  return {
    id: row.id,
    parentId,
    title: row.title ?? undefined,
    message: row.message ?? undefined,
    operations,
    checksum: checksumOf(parentId, operations),
    createdAt: row.created_at,
  };
};

/** Newest first; older than the one named by `before`, and newer than `since`. An unknown id gives nothing. */
export async function readMigrations(
  connection: Pick<Connection, "query">,
  schemaName: string,
  options: { readonly limit: number; readonly before?: string; readonly since?: string },
): Promise<Migration[]> {
  const position = (id: string): string => `(SELECT position FROM lodestone.migrations WHERE schema_name = $1 AND id = ${id})`;
  const { rows } = await connection.query<Row>(
    `${SELECT_MIGRATIONS} WHERE schema_name = $1
       AND ($3::text IS NULL OR position < ${position("$3")}) AND ($4::text IS NULL OR position > ${position("$4")})
     ORDER BY position DESC LIMIT $2`,
    [schemaName, options.limit, options.before ?? null, options.since ?? null],
  );
  return rows.map(toMigration);
}

/** Which of the ids the branch has. */
export async function knownMigrations(
  connection: Pick<Connection, "query">,
  schemaName: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await connection.query<{ id: string }>(
    "SELECT id FROM lodestone.migrations WHERE schema_name = $1 AND id = ANY ($2::text[])",
    [schemaName, ids],
  );
  return new Set(rows.map(({ id }) => id));
}
