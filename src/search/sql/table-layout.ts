/**
 * The layout of a followed branch in the search database. Each build of a branch is a generation. Its tables
 * are named `g<generation>_t<table>`, their columns `c<column>`, with the numbers of the catalog. So a rename
 * changes nothing here, and no user's name is part of a statement.
 *
 * A vector column becomes three columns. `c` is the vector. It is null also for a vector with NaN or an
 * infinity (SQL can store those), which is not searched. `e` is true for such vectors. `k` is the kind
 * (error-bounds.ts): null for an ordinary vector; an index finds the others.
 *
 * Datetimes are microseconds since 1970, as in the feed. `id` is COLLATE "C", so that ties are ordered as
 * everywhere else.
 *
 * Each branch has one row, which says which tables it has and at which position of the change feed they are.
 */

import { createHash } from "node:crypto";
import type pg from "pg";
import { VALUE_KINDS } from "../../filter/column-path.ts";
import { FOLLOWED_SYSTEM_COLUMNS, type FollowedColumn, type FollowedSchema, type FollowedTable } from "../followed-schema.ts";
import type { BranchKey } from "../search-messages.ts";
import { SCHEMA, type SearchDatabase, type Statements } from "./search-database.ts";

/** Stored inline in the row if a page has room: a search reads every one of them. */
const INLINE_VECTOR_STORAGE = "MAIN";

const number = (id: number): string => {
  if (!Number.isSafeInteger(id)) throw new TypeError(`${id} is not the id of a table or column.`);
  return id < 0 ? `s${-id}` : String(id);
};

export function tableName(generation: string, tableId: number): string {
  return `${SCHEMA}.${bareTableName(generation, tableId)}`;
}

function bareTableName(generation: string, tableId: number): string {
  return `g${generation}_t${number(tableId)}`;
}

/** Lists the values that are too large to be kept: rows of (table_id, column_id, id). */
export function omittedTable(generation: string): string {
  return `${SCHEMA}.g${generation}_omitted`;
}

export const valueColumn = (columnId: number): string => `c${number(columnId)}`;
export const unsearchableColumn = (columnId: number): string => `e${number(columnId)}`;
export const kindColumn = (columnId: number): string => `k${number(columnId)}`;

/** User columns and system columns. */
export function allColumns(table: FollowedTable): readonly FollowedColumn[] {
  return [...FOLLOWED_SYSTEM_COLUMNS, ...table.columns.values()];
}

export function vectorColumns(table: FollowedTable): FollowedColumn[] {
  return [...table.columns.values()].filter((column) => column.vector !== undefined);
}

const TYPES = {
  text: 'text COLLATE "C"',
  int: "int8",
  float: "float8",
  bool: "bool",
  datetime: "int8",
  multiple: 'text[] COLLATE "C"',
  json: "jsonb",
} as const;

function definitions(column: FollowedColumn, vectorSchema: string): string[] {
  const { id, vector } = column;
  const kind = VALUE_KINDS[column.type];
  if (kind !== "vector") return [`${valueColumn(id)} ${TYPES[kind]}`];
  return [
    `${valueColumn(id)} ${vectorSchema}.vector(${number(vector!.dimension)})`,
    `${unsearchableColumn(id)} bool`,
    `${kindColumn(id)} int2`,
  ];
}

/** The tables that links lead to. Filters on every node read them. */
function linkTargets(schema: FollowedSchema): Set<string> {
  const targets = new Set<string>();
  for (const table of schema.values()) for (const { link } of table.columns.values()) if (link !== undefined) targets.add(link.table);
  return targets;
}

/**
 * Creates the tables and columns of the schema that are missing, and drops nothing. Idempotent. Searches of
 * an older schema do not see it.
 */
export async function createMissing(database: SearchDatabase, generation: string, schema: FollowedSchema): Promise<void> {
  const targets = linkTargets(schema);
  await database.write(async (statements) => {
    const existing = await existingColumns(statements, generation);
    if (existing.size === 0) {
      await statements.query(
        `CREATE TABLE IF NOT EXISTS ${omittedTable(generation)} (table_id int8, column_id int8, id text COLLATE "C", PRIMARY KEY (table_id, column_id, id))`,
      );
    }
    for (const table of schema.values()) {
      const known = existing.get(bareTableName(generation, table.id));
      if (known === undefined) await createTable(statements, database, generation, table);
      else await addColumns(statements, database, generation, table, known);
      if (database.isDistributed) await place(statements, tableName(generation, table.id), targets.has(table.name));
    }
  });
}

async function createTable(statements: Statements, database: SearchDatabase, generation: string, table: FollowedTable): Promise<void> {
  const columns = allColumns(table).flatMap((column) => definitions(column, database.vectorSchema));
  const name = tableName(generation, table.id);
  await statements.query(`CREATE TABLE ${name} (id text COLLATE "C" PRIMARY KEY, ${columns.join(", ")})`);
  for (const { id } of vectorColumns(table)) {
    await statements.query(`ALTER TABLE ${name} ALTER COLUMN ${valueColumn(id)} SET STORAGE ${INLINE_VECTOR_STORAGE}`);
    await createKindIndex(statements, generation, table.id, id);
  }
}

async function addColumns(
  statements: Statements,
  database: SearchDatabase,
  generation: string,
  table: FollowedTable,
  known: ReadonlySet<string>,
): Promise<void> {
  for (const column of table.columns.values()) {
    if (known.has(valueColumn(column.id))) continue;
    const name = tableName(generation, table.id);
    for (const definition of definitions(column, database.vectorSchema))
      await statements.query(`ALTER TABLE ${name} ADD COLUMN ${definition}`);
    if (column.vector !== undefined) await createKindIndex(statements, generation, table.id, column.id);
  }
}

async function createKindIndex(statements: Statements, generation: string, tableId: number, columnId: number): Promise<void> {
  const kind = kindColumn(columnId);
  await statements.query(
    `CREATE INDEX ${bareTableName(generation, tableId)}_${kind} ON ${tableName(generation, tableId)} (id) WHERE ${kind} IS NOT NULL`,
  );
}

/** Citus puts each record on one node, by its id. A table that links lead to is whole on every node. */
async function place(statements: Statements, table: string, isTarget: boolean): Promise<void> {
  const [now] = await statements.query<{ method: string }>(
    "SELECT partmethod AS method FROM pg_dist_partition WHERE logicalrelid = $1::text::regclass",
    [table],
  );
  const wanted = isTarget ? "n" : "h";
  if (now?.method === wanted) return;
  if (now !== undefined) await statements.query("SELECT undistribute_table($1::text::regclass)", [table]);
  if (isTarget) await statements.query("SELECT create_reference_table($1::text::regclass)", [table]);
  else await statements.query("SELECT create_distributed_table($1::text::regclass, 'id')", [table]);
}

/** The existing columns by table, with their names in this database. */
async function existingColumns(statements: Statements, generation: string): Promise<Map<string, Set<string>>> {
  const rows = await statements.query<{ name: string; columns: string[] }>(
    `SELECT relname::text AS name, array_agg(attname::text) AS columns FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
     WHERE relnamespace = '${SCHEMA}'::regnamespace AND relkind IN ('r', 'p') AND starts_with(relname, $1) AND attnum > 0 AND NOT attisdropped
     GROUP BY relname`,
    [`g${generation}_`],
  );
  return new Map(rows.map(({ name, columns }) => [name, new Set(columns)]));
}

/**
 * Drops what is not in the schema (any more). Waits only briefly for searches that read it. `null`: drops the
 * whole generation.
 */
export async function dropSurplus(database: SearchDatabase, generation: string, schema: FollowedSchema | null): Promise<void> {
  await database.write(async (statements) => {
    const tables = new Map([...(schema?.values() ?? [])].map((table) => [bareTableName(generation, table.id), table]));
    await statements.query("SET LOCAL lock_timeout = 2000");
    for (const [name, columns] of await existingColumns(statements, generation)) {
      const table = tables.get(name);
      if (table === undefined) {
        if (schema === null || !name.endsWith("_omitted")) await statements.query(`DROP TABLE ${SCHEMA}.${name}`);
        continue;
      }
      const kept = new Set(allColumns(table).flatMap(({ id }) => [valueColumn(id), unsearchableColumn(id), kindColumn(id)]));
      for (const column of columns) {
        if (column !== "id" && !kept.has(column)) await statements.query(`ALTER TABLE ${SCHEMA}.${name} DROP COLUMN ${column}`);
      }
    }
  });
}

/** Generations that have tables. */
export async function existingGenerations(statements: Statements): Promise<string[]> {
  const rows = await statements.query<{ generation: string }>(
    `SELECT DISTINCT substring(relname FROM '^g([0-9]+)_') AS generation FROM pg_class
     WHERE relnamespace = '${SCHEMA}'::regnamespace AND relkind IN ('r', 'p') AND relname ~ '^g[0-9]+_'`,
  );
  return rows.map(({ generation }) => generation);
}

interface SavedTable {
  readonly id: number;
  readonly name: string;
  readonly columns: readonly FollowedColumn[];
}

export function schemaToJson(schema: FollowedSchema): string {
  const tables: SavedTable[] = [...schema.values()].map(({ id, name, columns }) => ({ id, name, columns: [...columns.values()] }));
  return JSON.stringify(tables);
}

export function schemaFromJson(text: string): FollowedSchema {
  const tables = JSON.parse(text) as SavedTable[];
  return new Map(
    tables.map(({ id, name, columns }) => [name, { id, name, columns: new Map(columns.map((column) => [column.name, column])) }]),
  );
}

export interface BranchRow {
  readonly generation: string;
  readonly revision: string;
  readonly incarnation: string;
  readonly version: string;
  readonly position: string;
  readonly tables: string;
  readonly counts: string;
}

const BRANCH_COLUMNS =
  "generation::text, revision::text, incarnation, version::text, position, tables::text AS tables, counts::text AS counts";

export async function readBranch(statements: Statements, key: BranchKey, lock = ""): Promise<BranchRow | undefined> {
  const [row] = await statements.query<BranchRow & pg.QueryResultRow>(
    `SELECT ${BRANCH_COLUMNS} FROM ${SCHEMA}.branches WHERE key = $1 ${lock}`,
    [key],
  );
  return row;
}

/**
 * The number of the branch's locks. Two branches may share a number; they then sometimes wait for each other.
 */
export function lockOf(key: BranchKey): number {
  return createHash("sha256").update(key).digest().readInt32BE();
}

/** Adds the changes to the counts of vectors, by column id. */
export function addCounts(counts: Map<number, number>, changed: ReadonlyMap<number, number>): void {
  for (const [id, count] of changed) counts.set(id, (counts.get(id) ?? 0) + count);
}

export function countsToJson(counts: ReadonlyMap<number, number>): string {
  return JSON.stringify(Object.fromEntries(counts));
}

export function countsFromJson(text: string): Map<number, number> {
  return new Map(Object.entries(JSON.parse(text) as Record<string, number>).map(([id, count]) => [Number(id), count]));
}
