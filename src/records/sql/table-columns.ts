/**
 * The columns of a branch's tables in PostgreSQL's own order, which the catalog does not know: a column added
 * later comes after `xata.updatedAt`, and the order matters to `FROM t AS x(a, b)`. Read once per version of
 * a branch's schema.
 */
import type { Engine } from "../engine/engine.ts";
import { physicalNameOf } from "../identifiers.ts";
import type { BranchInfo } from "../schema.ts";
import type { TableColumn, TableColumns } from "./resolve-from.ts";

const MAX_KNOWN_TABLES = 2_000;
const known = new WeakMap<Engine, Map<string, readonly TableColumn[]>>();

/** Equal for the same schema of the same branch. */
export const columnsKeyOf = (branch: BranchInfo): string => `${branch.sqlSchemaName}\0${branch.incarnation}\0${branch.version}`;

/**
 * @param names    tables of the branch, as a statement writes them; tables that no longer exist are left out.
 * @param isFresh  read again, even if known.
 */
export async function tableColumns(engine: Engine, branch: BranchInfo, names: readonly string[], isFresh = false): Promise<TableColumns> {
  const tables = known.get(engine.shared) ?? new Map<string, readonly TableColumn[]>();
  known.set(engine.shared, tables);
  const keyOf = (name: string): string => `${columnsKeyOf(branch)}\0${physicalNameOf(name)}`;
  const missing = names.filter((name) => isFresh || !tables.has(keyOf(name))).map(physicalNameOf);
  const read = missing.length === 0 ? new Map<string, TableColumn[]>() : await readColumns(engine, branch.sqlSchemaName, missing);
  for (const [table, columns] of read) {
    if (tables.size >= MAX_KNOWN_TABLES) tables.delete(tables.keys().next().value!);
    tables.set(keyOf(table), columns);
  }
  return Object.fromEntries(
    names.flatMap((name) => {
      const columns = read.get(physicalNameOf(name)) ?? tables.get(keyOf(name));
      return columns === undefined ? [] : [[name, columns]];
    }),
  );
}

async function readColumns(engine: Engine, schemaName: string, tables: readonly string[]): Promise<Map<string, TableColumn[]>> {
  const { rows } = await engine.query<{ table: string; name: string; isArray: boolean }>(
    `SELECT relname AS table, attname AS name, typlen = -1 AND typelem <> 0 AS "isArray"
      FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_class AS c ON c.oid = attrelid JOIN pg_catalog.pg_type AS t ON t.oid = atttypid
      WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1) AND relname = ANY ($2::name[]) AND relkind IN ('r', 'v')
        AND attnum > 0 AND NOT attisdropped
      ORDER BY attnum`,
    [schemaName, tables],
  );
  const found = new Map<string, TableColumn[]>();
  for (const { table, name, isArray } of rows) {
    const columns = found.get(table) ?? [];
    columns.push({ name, isArray });
    found.set(table, columns);
  }
  return found;
}
