/**
 * The schema `lodestone`: what the service knows about its databases and branches, and the functions that user
 * tables need.
 *
 * It is installed when a store is opened; an advisory lock keeps two servers apart that open the same database
 * at once. `FORMATS` is append-only: a later release adds a list of statements and never changes a published
 * one, so any older data can be upgraded step by step.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import { installFunctions } from "./functions.ts";
import { MIGRATIONS_TABLE } from "./history/history.ts";
import { addMissingJsonLimits } from "./json-limits.ts";

/**
 * The channel on which servers announce changed branches. Payload: `database:branch`, or "" when any may have
 * changed.
 */
export const SCHEMA_CHANNEL = "lodestone_schema";

/** Any constant, as long as every release uses the same one. */
const INSTALL_LOCK = "7020584115171942244";

const FORMATS: readonly (readonly string[])[] = [
  [
    `CREATE TABLE lodestone.databases (
       name text COLLATE "C" PRIMARY KEY,
       metadata jsonb NOT NULL DEFAULT '{}',
       created_at timestamptz NOT NULL DEFAULT now()
     )`,
    // The whole schema of a branch is one document in one row: it is read by one statement, and locked by one row lock.
    `CREATE TABLE lodestone.branches (
       database text COLLATE "C" NOT NULL REFERENCES lodestone.databases (name),
       branch text COLLATE "C" NOT NULL,
       schema_name text COLLATE "C" NOT NULL UNIQUE,
       role_name text COLLATE "C" NOT NULL UNIQUE,
       incarnation uuid NOT NULL DEFAULT gen_random_uuid(),
       version int8 NOT NULL DEFAULT 1,
       document jsonb NOT NULL,
       metadata jsonb NOT NULL DEFAULT '{}',
       started_from text,
       created_at timestamptz NOT NULL DEFAULT now(),
       PRIMARY KEY (database, branch)
     )`,
    MIGRATIONS_TABLE,
    // Outbox rows of transactions below the horizon may be gone; see feed/retention.ts.
    `CREATE TABLE lodestone.feeds (
       schema_name text COLLATE "C" PRIMARY KEY REFERENCES lodestone.branches (schema_name) ON DELETE CASCADE,
       horizon xid8 NOT NULL DEFAULT '0'
     )`,
    `CREATE TABLE lodestone.followers (
       schema_name text COLLATE "C" NOT NULL REFERENCES lodestone.branches (schema_name) ON DELETE CASCADE,
       follower text NOT NULL,
       seen_below xid8 NOT NULL,
       seen_at timestamptz NOT NULL DEFAULT now(),
       PRIMARY KEY (schema_name, follower)
     )`,
  ],
  [
    // When each process was last heard from: one row, however many branches it follows.
    `CREATE TABLE lodestone.processes (
       follower text PRIMARY KEY,
       seen_at timestamptz NOT NULL DEFAULT now()
     )`,
  ],
];

/**
 * Positions in a change feed are valid only within one life of a database. After a dump was restored, an older
 * data directory was put back, or a standby was promoted, every branch gets a new incarnation. A life is a
 * cluster, a database and a timeline.
 */
function lifeSql({ timelineSql }: Engine): string {
  return `concat_ws('/', (SELECT system_identifier FROM pg_control_system()), (SELECT oid FROM pg_database WHERE datname = current_database()), ${timelineSql})`;
}

/** @param isCopy  the data was restored from a backup of the files, so it has the origin of the original. */
export async function installMetaSchema(engine: Engine, { isCopy = false } = {}): Promise<void> {
  engine.guardConnections(lifeGuard(lifeSql(engine)));
  await engine
    .transaction(
      async (connection) => {
        await lockInstallation(connection);
        await connection.query("CREATE SCHEMA IF NOT EXISTS lodestone");
        await connection.query("CREATE TABLE IF NOT EXISTS lodestone.format (version int4 NOT NULL, origin text NOT NULL)");
        await upgrade(connection, lifeSql(engine));
        if (isCopy) await renewIncarnations(connection);
        await installFunctions(connection);
        await confineFunctions(connection);
        await addMissingJsonLimits(connection);
      },
      { timeoutMs: 600_000, isUpkeep: true },
    )
    .catch((error: unknown) => {
      throw (error as { code?: unknown }).code === "42501" ? notAllowed(error) : error;
    });
}

/** The database's user has too few rights: whoever runs the service has to grant them. */
export function notAllowed(cause: unknown): LodestoneError {
  return new LodestoneError(
    "UNAVAILABLE",
    `The database denies Lodestone's user what it needs: ${(cause as Error).message}. The user needs CREATE on the database, and CREATEROLE (a role of its own confines the SQL of each branch).`,
    { cause },
  );
}

/** Held until the transaction ends, so that servers that start at once take turns in what only one may do. */
export async function lockInstallation(connection: Connection): Promise<void> {
  await connection.query("SELECT pg_advisory_xact_lock($1::int8)", [INSTALL_LOCK]);
}

async function upgrade(connection: Connection, lifeSql: string): Promise<void> {
  const { rows } = await connection.query<{ version: number; origin: string }>("SELECT version, origin FROM lodestone.format");
  const origin = (await connection.query<{ life: string }>(`SELECT ${lifeSql} AS life`)).rows[0]!.life;
  const found = rows[0];
  if (found !== undefined && found.version > FORMATS.length) {
    throw new LodestoneError(
      "UNAVAILABLE",
      `This data was written by a newer Lodestone (format ${found.version}; this one knows up to ${FORMATS.length}). Start that version, or restore a backup.`,
    );
  }
  for (const statements of FORMATS.slice(found?.version ?? 0)) for (const statement of statements) await connection.query(statement);
  if (found === undefined) {
    await connection.query("INSERT INTO lodestone.format (version, origin) VALUES ($1, $2)", [FORMATS.length, origin]);
  } else if (found.version !== FORMATS.length || found.origin !== origin) {
    await connection.query("UPDATE lodestone.format SET version = $1, origin = $2", [FORMATS.length, origin]);
    if (found.origin !== origin) await renewIncarnations(connection);
  }
}

/**
 * Asked on every new connection to a server before it is used: does the database still have the life that the
 * incarnations of the branches belong to? If not, the first server to notice renews them and tells all others.
 * So everything that is read on a connection in one snapshot, including an incarnation, is of one life.
 */
function lifeGuard(lifeSql: string): (connection: Connection) => Promise<void> {
  /** How much of its log the database had on disk when it was last asked. */
  let seen = { life: "", writtenBytes: 0n };
  return async (connection) => {
    const { rows } = await connection
      .query<{ origin: string; life: string; written: string }>(
        `SELECT origin, ${lifeSql} AS life, (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::text AS written FROM lodestone.format`,
      )
      .catch((error: { code?: string }) => {
        if (error.code === "42P01" || error.code === "3F000") return { rows: [] }; // nothing is installed yet
        throw error;
      });
    if (rows[0] === undefined) return;
    const { origin, life } = rows[0];
    const writtenBytes = BigInt(rows[0].written);
    // An older copy of its files was put back: what was seen may have vanished, and transaction numbers will
    // repeat.
    const hasGoneBack = seen.life === life && writtenBytes < seen.writtenBytes;
    if (origin !== life || hasGoneBack) await renewLife(connection, life, hasGoneBack);
    seen = { life, writtenBytes };
  };
}

async function renewLife(connection: Connection, life: string, isForced: boolean): Promise<void> {
  await connection.query("BEGIN");
  try {
    await lockInstallation(connection);
    const { rows } = await connection.query<{ origin: string }>("SELECT origin FROM lodestone.format");
    if (isForced || rows[0]?.origin !== life) {
      await connection.query("UPDATE lodestone.format SET origin = $1", [life]);
      await renewIncarnations(connection);
      await connection.query("SELECT pg_notify($1, '')", [SCHEMA_CHANNEL]);
    }
    await connection.query("COMMIT");
  } catch (error) {
    await connection.query("ROLLBACK").catch(() => {}); // the connection is not used after this
    throw error;
  }
}

/** After a restore, earlier positions and index snapshots are no longer valid. */
async function renewIncarnations(connection: Connection): Promise<void> {
  await connection.query("UPDATE lodestone.branches SET incarnation = gen_random_uuid(), version = version + 1");
  await connection.query("UPDATE lodestone.feeds SET horizon = '0'");
  await connection.query("DELETE FROM lodestone.followers");
}

/**
 * Part of the second wall of SQL over HTTP. Some of PostgreSQL's own functions reach beyond a branch, and
 * everybody may call them by default. They are revoked from PUBLIC in this database, so the role of a branch
 * cannot call them, whatever the first wall lets through. PostgreSQL cannot revoke from one role what all roles
 * have.
 *
 * On a server this takes a superuser. Without one nothing is changed, and only the first wall guards these
 * functions (docs/reliability.md says what to do).
 */
const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

const REACHING_BEYOND = words(`
  lo_close lo_creat lo_create lo_export lo_from_bytea lo_get lo_import lo_lseek lo_lseek64 lo_open lo_put lo_tell lo_tell64 lo_truncate lo_truncate64
  lo_unlink loread lowrite
  pg_logical_emit_message pg_create_logical_replication_slot pg_create_physical_replication_slot pg_copy_logical_replication_slot
  pg_copy_physical_replication_slot pg_drop_replication_slot pg_replication_slot_advance pg_sync_replication_slots pg_logical_slot_get_changes
  pg_logical_slot_get_binary_changes pg_logical_slot_peek_changes pg_logical_slot_peek_binary_changes
  set_config setseed pg_notify pg_export_snapshot pg_sleep pg_sleep_for pg_sleep_until pg_cancel_backend pg_terminate_backend
  pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_all pg_advisory_unlock_shared pg_advisory_xact_lock
  pg_advisory_xact_lock_shared pg_try_advisory_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared
  query_to_xml query_to_xmlschema query_to_xml_and_xmlschema cursor_to_xml cursor_to_xmlschema table_to_xml table_to_xmlschema
  table_to_xml_and_xmlschema schema_to_xml schema_to_xmlschema schema_to_xml_and_xmlschema database_to_xml database_to_xmlschema
  database_to_xml_and_xmlschema ts_stat ts_rewrite
  pg_stat_clear_snapshot pg_stat_force_next_flush pg_isolation_test_session_is_blocked
  pg_read_file_old pg_rotate_logfile_old pg_import_system_collations pg_nextoid pg_stop_making_pinned_objects pg_extension_config_dump
  pg_restore_attribute_stats pg_restore_relation_stats pg_clear_attribute_stats pg_clear_relation_stats
  brin_summarize_new_values brin_summarize_range brin_desummarize_range gin_clean_pending_list`);

/** Those of REACHING_BEYOND that everybody may still call: PostgreSQL versions differ in which exist. */
const STILL_PUBLIC = `SELECT format('pg_catalog.%I(%s)', proname, pg_get_function_identity_arguments(oid)) AS signature
  FROM pg_catalog.pg_proc
  WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND proname = ANY ($1::name[]) AND has_function_privilege('public', oid, 'EXECUTE')
    AND (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)`;

/**
 * Runs at every start, so that a database of an older release, a restored one, or a newer PostgreSQL is brought
 * up to date.
 */
async function confineFunctions(connection: Connection): Promise<void> {
  const { rows } = await connection.query<{ signature: string }>(STILL_PUBLIC, [REACHING_BEYOND]);
  if (rows.length === 0) return;
  const functions = rows.map(({ signature }) => signature).join(", ");
  await connection.query(`REVOKE EXECUTE ON FUNCTION ${functions} FROM PUBLIC`);
  // Our own user, where a superuser happens to do this for it.
  const owner = await connection.query<{ name: string }>(
    "SELECT quote_ident(pg_get_userbyid(nspowner)) AS name FROM pg_catalog.pg_namespace WHERE nspname = 'lodestone'",
  );
  await connection.query(`GRANT EXECUTE ON FUNCTION ${functions} TO ${owner.rows[0]!.name}`);
}
