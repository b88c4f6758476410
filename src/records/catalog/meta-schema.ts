/**
 * The schema `lodestone`: what the service knows of its databases and branches, and the functions that user tables need.
 *
 * Installed when a store is opened; two servers that open the same database at once are kept apart by an advisory lock. `FORMATS` is append-only: a
 * later release adds a list of statements and never changes one that was published, so any older data comes up to date step by step.
 */
import { LodestoneError } from "../../errors.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import { confineFunctions } from "./function-privileges.ts";
import { FUNCTIONS } from "./functions.ts";
import { MIGRATIONS_TABLE } from "./history/history.ts";
import { addMissingJsonLimits } from "./json-limits.ts";

/** Any constant will do as long as every release uses this one. */
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
];

/**
 * Positions in a change feed mean something only in the very cluster, database and timeline that gave them: after a dump was restored, the data directory
 * of an older day was put back, or a standby was promoted, every branch gets a fresh incarnation.
 */
const ORIGIN = `SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()), (SELECT oid FROM pg_database WHERE datname = current_database()),
  (SELECT timeline_id FROM pg_control_checkpoint())) AS origin`;

/** @param isCopy  the data was put back from a backup of the files, which has the origin of what it is a copy of. */
export async function installMetaSchema(engine: Engine, { isCopy = false } = {}): Promise<void> {
  await engine
    .transaction(
      async (connection) => {
        await lockInstallation(connection);
        await connection.query("CREATE SCHEMA IF NOT EXISTS lodestone");
        await connection.query("CREATE TABLE IF NOT EXISTS lodestone.format (version int4 NOT NULL, origin text NOT NULL)");
        await upgrade(connection);
        if (isCopy) await renewIncarnations(connection);
        for (const statement of FUNCTIONS) await connection.query(statement);
        await confineFunctions(connection);
        await addMissingJsonLimits(connection);
      },
      { timeoutMs: 600_000 },
    )
    .catch((error: unknown) => {
      throw (error as { code?: unknown }).code === "42501" ? notAllowed(error) : error;
    });
}

/** The database's user has too few rights: for whoever runs the service to mend. */
export function notAllowed(cause: unknown): LodestoneError {
  return new LodestoneError(
    "UNAVAILABLE",
    `The database does not let Lodestone's user do it: ${(cause as Error).message}. The user needs CREATE on the database, and CREATEROLE (a role of its own confines the SQL of each branch).`,
    { cause },
  );
}

/** Held until the transaction ends: servers that start at once do what only one may do one after the other. */
export async function lockInstallation(connection: Connection): Promise<void> {
  await connection.query("SELECT pg_advisory_xact_lock($1::int8)", [INSTALL_LOCK]);
}

async function upgrade(connection: Connection): Promise<void> {
  const { rows } = await connection.query<{ version: number; origin: string }>("SELECT version, origin FROM lodestone.format");
  const origin = (await connection.query<{ origin: string }>(ORIGIN)).rows[0]!.origin;
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

/** After a restore: positions and index snapshots made before mean nothing any more. */
async function renewIncarnations(connection: Connection): Promise<void> {
  await connection.query("UPDATE lodestone.branches SET incarnation = gen_random_uuid(), version = version + 1");
  await connection.query("UPDATE lodestone.feeds SET horizon = '0'");
  await connection.query("DELETE FROM lodestone.followers");
}
