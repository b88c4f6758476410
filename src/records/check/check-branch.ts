/**
 * Verifies that a branch is what the catalog says. Its tables, columns, rules, triggers and grants are in force
 * in PostgreSQL; every record keeps the rules; indexes agree with the tables; the outbox can be followed. Only
 * reads, in one snapshot.
 */

import { SYSTEM_COLUMN_TYPES, SYSTEM_COLUMNS } from "../../filter/system-columns.ts";
import { findBranch, toBranchInfo } from "../catalog/branch-rows.ts";
import { EMAIL_PATTERN } from "../catalog/column-types.ts";
import { FEED_TABLE } from "../catalog/table-ddl.ts";
import { COLUMN_TRAITS } from "../column-traits.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import { qualified, quoteIdentifier, quoteLiteral } from "../identifiers.ts";
import type { BranchInfo, BranchRef, TableInfo } from "../schema.ts";
import { checkViews, type Fault } from "./check-views.ts";

export interface BranchCheck {
  readonly faults: readonly Fault[];
  readonly tables: readonly { readonly name: string; readonly records: number }[];
  /** Changes that some follower has yet to read. */
  readonly outboxRows: number;
}

/** By name in the database. Versions are int4, though int in the API is int8: no record changes 2³¹ times. */
const SYSTEM_TYPE_NAMES: ReadonlyMap<string, string> = new Map(
  SYSTEM_COLUMNS.map((name) => [name, name === "xata.version" ? "int4" : COLUMN_TRAITS[SYSTEM_COLUMN_TYPES[name]].typeName]),
);

const TRIGGERS = ["touch", "insert", "update", "delete", "truncate"].map((event) => `lodestone.${event}`);

/**
 * Time is proportional to the records: every column that has a rule is read. `timeoutMs` bounds it; on the
 * embedded engine others wait meanwhile.
 */
export async function checkBranch(engine: Engine, ref: BranchRef, options: { readonly timeoutMs?: number } = {}): Promise<BranchCheck> {
  return engine.transaction(
    async (connection) => {
      const branch = toBranchInfo(await findBranch(connection, ref));
      const faults: Fault[] = [...(await checkSchema(connection, branch)), ...(await checkFeed(connection, branch))];
      const tables: { name: string; records: number }[] = [];
      // Rules are checked by a scan of the table itself, whatever the state of the indexes.
      await connection.query(
        "SELECT set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true)",
      );
      if (faults.length === 0) {
        for (const table of branch.tables.values()) {
          const damage = await unreadable(connection, table, async () => {
            const { records, faults: found } = await checkRecords(connection, branch, table);
            tables.push({ name: table.name, records });
            faults.push(...found, ...(await checkIndex(connection, branch, table)));
          });
          if (damage !== undefined) faults.push(damage);
        }
      }
      if (faults.length === 0) faults.push(...(await checkViews(connection, branch)));
      return { faults, tables, outboxRows: await countOutbox(connection, branch) };
    },
    { readOnly: true, isolation: "repeatable read", timeoutMs: options.timeoutMs ?? 3_600_000 },
  );
}

/**
 * Class XX: PostgreSQL itself found something impossible, such as a page that does not match its checksum or
 * has no header. Class 58: a file is missing or cannot be read.
 */
const DAMAGED = /^(?:XX|58)/;

/**
 * Runs `read`. If what is on disk is damaged, that is a fault of the table, and the rest of the branch is still
 * checked.
 */
async function unreadable(connection: Connection, table: TableInfo, read: () => Promise<void>): Promise<Fault | undefined> {
  await connection.query("SAVEPOINT before_table");
  try {
    await read();
    await connection.query("RELEASE SAVEPOINT before_table");
    return undefined;
  } catch (error) {
    if (!DAMAGED.test((error as { code?: string }).code ?? "")) throw error;
    await connection.query("ROLLBACK TO SAVEPOINT before_table");
    return { table: table.name, message: `The table cannot be read completely: ${(error as Error).message}. Restore it from a backup.` };
  }
}

async function countOutbox(connection: Connection, branch: BranchInfo): Promise<number> {
  const feed = qualified(branch.schemaName, FEED_TABLE);
  const { rows } = await connection.query<{ present: boolean }>("SELECT to_regclass($1) IS NOT NULL AS present", [feed]);
  if (!rows[0]!.present) return 0;
  return Number((await connection.query<{ n: bigint }>(`SELECT count(*) AS n FROM ${feed}`)).rows[0]!.n);
}

async function checkSchema(connection: Connection, branch: BranchInfo): Promise<Fault[]> {
  const faults: Fault[] = [];
  const relations = await connection.query<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relkind IN ('r', 'p', 'v', 'm', 'f')",
    [branch.schemaName],
  );
  const present = new Set(relations.rows.map(({ name }) => name));
  const known = new Set([FEED_TABLE, ...[...branch.tables.values()].map((table) => table.physicalName)]);
  for (const name of present)
    if (!known.has(name)) faults.push({ table: name, message: "The table is in the database but not in the catalog." });
  if (!present.has(FEED_TABLE)) faults.push({ message: "The outbox of the change feed is missing." });
  const role = await connection.query(
    "SELECT 1 FROM pg_roles WHERE rolname = $1 AND NOT (rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls)",
    [branch.roleName],
  );
  if (role.rows.length === 0) faults.push({ message: `The role "${branch.roleName}" that confines SQL is missing, or may do too much.` });
  for (const table of branch.tables.values()) {
    if (!present.has(table.physicalName))
      faults.push({ table: table.name, message: "The table is in the catalog but not in the database." });
    else faults.push(...(await checkTable(connection, branch, table)));
  }
  return faults;
}

async function checkTable(connection: Connection, branch: BranchInfo, table: TableInfo): Promise<Fault[]> {
  const faults: Fault[] = [];
  const relation = quoteLiteral(qualified(branch.schemaName, table.physicalName));
  const { rows } = await connection.query<{ name: string; type: string; required: boolean; collation: string | null }>(
    `SELECT a.attname AS name, t.typname AS type, a.attnotnull AS required, c.collname AS collation
     FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation
     WHERE a.attrelid = ${relation}::regclass AND a.attnum > 0 AND NOT a.attisdropped`,
  );
  const present = new Map(rows.map((row) => [row.name, row]));
  const wanted = new Map<string, string>(SYSTEM_TYPE_NAMES);
  for (const column of table.columns.values()) wanted.set(column.physicalName, COLUMN_TRAITS[column.type].typeName);
  const named = new Map([...table.columns.values()].map((column) => [column.physicalName, column]));
  for (const [name, type] of wanted) {
    const row = present.get(name);
    const column = named.get(name)?.name ?? name;
    if (row === undefined) faults.push({ table: table.name, column, message: "The column is in the catalog but not in the database." });
    else if (row.type !== type)
      faults.push({ table: table.name, column, message: `The column's type is ${row.type}; it has to be ${type}.` });
    else if (row.collation !== null && row.collation !== "C")
      faults.push({ table: table.name, column, message: `The column's collation is ${row.collation}; it has to be C.` });
    else if ((named.get(name)?.notNull ?? !named.has(name)) && !row.required)
      faults.push({ table: table.name, column, message: "The column is notNull, but the database does not enforce it." });
  }
  for (const name of present.keys()) {
    if (!wanted.has(name))
      faults.push({ table: table.name, column: name, message: "The column is in the database but not in the catalog." });
  }
  const rules = await connection.query<{ kind: string; columns: string[]; valid: boolean }>(
    `SELECT contype::text AS kind, convalidated AS valid,
       ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY (conkey)) AS columns
     FROM pg_constraint WHERE conrelid = ${relation}::regclass`,
  );
  const hasRule = (kind: string, name: string, isValidated = true): boolean =>
    rules.rows.some((rule) => rule.kind === kind && (rule.valid || !isValidated) && rule.columns.length === 1 && rule.columns[0] === name);
  if (!hasRule("p", "id")) faults.push({ table: table.name, column: "id", message: "The primary key is missing." });
  for (const column of table.columns.values()) {
    const missing: string[] = [];
    if (column.unique && !hasRule("u", column.physicalName)) missing.push("unique");
    if ((column.type === "email" || column.type === "vector") && !hasRule("c", column.physicalName)) missing.push(column.type);
    if (column.type === "json" && !hasRule("c", column.physicalName, false)) missing.push("json");
    if (column.type === "link" && !hasRule("f", column.physicalName)) missing.push("link");
    for (const rule of missing)
      faults.push({ table: table.name, column: column.name, message: `The rule "${rule}" is not in force in the database.` });
  }
  const triggers = await connection.query<{ name: string }>(
    `SELECT tgname AS name FROM pg_trigger WHERE tgrelid = ${relation}::regclass AND NOT tgisinternal AND tgenabled IN ('O', 'A')`,
  );
  const enabled = new Set(triggers.rows.map(({ name }) => name));
  for (const name of TRIGGERS) {
    if (!enabled.has(name))
      faults.push({ table: table.name, message: `The trigger "${name}" is missing or disabled: changes may have gone unseen.` });
  }
  return faults;
}

async function checkFeed(connection: Connection, branch: BranchInfo): Promise<Fault[]> {
  const faults: Fault[] = [];
  const { rows } = await connection.query<{ known: boolean; ahead: number }>(
    `SELECT EXISTS (SELECT 1 FROM lodestone.feeds WHERE schema_name = $1) AS known,
       (SELECT count(*)::int4 FROM lodestone.followers WHERE schema_name = $1 AND seen_below > pg_snapshot_xmax(pg_current_snapshot())) AS ahead`,
    [branch.schemaName],
  );
  if (!rows[0]!.known) faults.push({ message: "The branch has no horizon of its change feed." });
  if (rows[0]!.ahead > 0)
    faults.push({ message: "A follower of the change feed is ahead of the database: an older copy of it was put back." });
  return faults;
}

/** By the type in the database: a function that reads a value to its end. (Vectors are read by their rule.) */
const LONG_VALUE_READERS: Readonly<Record<string, string>> = { text: "length", jsonb: "jsonb_typeof", _text: "cardinality" };

/** By a scan of the table: how many records there are, and which rules some of them break. */
async function checkRecords(connection: Connection, branch: BranchInfo, table: TableInfo): Promise<{ records: number; faults: Fault[] }> {
  const rules: { column: string; message: string; broken: string }[] = [
    { column: "id", message: "have an id that another record has too", broken: "count(*) - count(DISTINCT id)" },
    { column: "xata.version", message: "have a negative version", broken: `count(*) FILTER (WHERE "xata.version" < 0)` },
  ];
  for (const column of table.columns.values()) {
    const quoted = `t.${quoteIdentifier(column.physicalName)}`;
    const add = (message: string, broken: string): number => rules.push({ column: column.name, message, broken });
    if (column.notNull) add("have no value, and the column is notNull", `count(*) FILTER (WHERE ${quoted} IS NULL)`);
    if (column.unique)
      add("have a value that another record has too, and the column is unique", `count(${quoted}) - count(DISTINCT ${quoted})`);
    if (column.type === "vector") {
      add(
        `have a vector that is not of dimension ${column.vector!.dimension}, or not of finite numbers`,
        `count(*) FILTER (WHERE ${quoted} IS NOT NULL AND (array_ndims(${quoted}) = 1 AND cardinality(${quoted}) = ${column.vector!.dimension}
          AND 'Infinity'::real > ALL (${quoted}) AND '-Infinity'::real < ALL (${quoted})) IS NOT TRUE)`,
      );
    }
    if (column.type === "email") {
      add("have a value that is not an email address", `count(*) FILTER (WHERE NOT ${quoted} ~ ${quoteLiteral(EMAIL_PATTERN)})`);
    }
  }
  // Long values are stored apart, and are read only by what needs all of them.
  const read = [...table.columns.values()].flatMap(({ type, physicalName }) => {
    const reader = LONG_VALUE_READERS[COLUMN_TRAITS[type].typeName];
    return reader === undefined ? [] : [`count(${reader}(t.${quoteIdentifier(physicalName)}))`];
  });
  const { rows } = await connection.query<bigint[]>(
    `SELECT count(*), ${[...rules.map((rule) => rule.broken), ...read].join(", ")} FROM ${qualified(branch.schemaName, table.physicalName)} AS t`,
    [],
    { rowMode: "array" },
  );
  const [records, ...broken] = rows[0]!.map(Number);
  const faults = rules.flatMap((rule, i) =>
    broken[i] === 0 ? [] : [{ table: table.name, column: rule.column, message: `${broken[i]} of ${records} records ${rule.message}.` }],
  );
  for (const column of table.columns.values()) {
    if (column.type !== "link") continue;
    const target = branch.tables.get(column.link!.table)!;
    const value = `t.${quoteIdentifier(column.physicalName)}`;
    const lost = await connection.query<{ n: bigint }>(
      `SELECT count(*) AS n FROM ${qualified(branch.schemaName, table.physicalName)} AS t
       LEFT JOIN ${qualified(branch.schemaName, target.physicalName)} AS target ON target.id = ${value} WHERE ${value} IS NOT NULL AND target.id IS NULL`,
    );
    const n = Number(lost.rows[0]!.n);
    if (n > 0) {
      const message = `${n} of ${records} records link to records of table "${target.name}" that do not exist.`;
      faults.push({ table: table.name, column: column.name, message });
    }
  }
  return { records: records!, faults };
}

/** The primary key has to lead to every record: read by the index alone, and by the table alone. */
async function checkIndex(connection: Connection, branch: BranchInfo, table: TableInfo): Promise<Fault[]> {
  const relation = qualified(branch.schemaName, table.physicalName);
  const digest = `SELECT count(*)::text || ' ' || coalesce(sum(hashtextextended(id, 0)), 0)::text AS digest FROM ${relation}`;
  const byTable = await connection.query<{ digest: string }>(digest);
  await connection.query(
    "SELECT set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true), set_config('enable_seqscan', 'off', true)",
  );
  const byIndex = await connection.query<{ digest: string }>(`${digest} WHERE id >= ''`);
  await connection.query(
    "SELECT set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_seqscan', 'on', true)",
  );
  if (byTable.rows[0]!.digest === byIndex.rows[0]!.digest) return [];
  return [{ table: table.name, column: "id", message: "The index of the primary key does not agree with the table: run REINDEX on it." }];
}
