/** Which server a URL names, and how sessions on it are set. */
import pg from "pg";
import { LodestoneError } from "../../../errors.ts";

export const CONNECT_TIMEOUT_MS = 10_000;

/**
 * The URL's parts, so that logins as other roles can share them. Nothing is set by the start-up message (`options`): poolers refuse it, or drop it
 * without a word. See settingsStatement.
 *
 * @throws {LodestoneError} INVALID for what is no URL.
 */
export function clientConfig(databaseUrl: string): pg.ClientConfig {
  try {
    new URL(databaseUrl);
  } catch {
    throw new LodestoneError("INVALID", "The database URL is not a URL; expected postgres://user:password@host:port/database.");
  }
  const { host, port, database, user, password, ssl } = new pg.Client({ connectionString: databaseUrl });
  return {
    host,
    port,
    database: database!,
    user: user!,
    password: password!,
    ssl: ssl as boolean,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: "lodestone",
  };
}

/** Host and database only: a URL may hold a password. */
export function placeOf(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  return `${url.host || "the local socket"}${url.pathname}`;
}

/**
 * Name and value of each. The rest relies on them, over whatever the database's or the role's defaults are: standard_conforming_strings is what makes our
 * reading of a statement and the server's the same.
 */
export function sessionSettings(statementTimeoutMs: number): readonly (readonly [name: string, value: string])[] {
  return [
    ["TimeZone", "UTC"],
    ["DateStyle", "ISO"],
    ["IntervalStyle", "postgres"],
    ["extra_float_digits", "1"],
    // Triggers then leave the waking of the change feed's followers to this process; see feed/wake-ups.ts.
    ["lodestone.writer", "service"],
    ["client_encoding", "UTF8"],
    ["standard_conforming_strings", "on"],
    ["bytea_output", "hex"],
    ["client_connection_check_interval", "1000"],
    ["statement_timeout", String(Math.ceil(statementTimeoutMs))],
  ];
}

/** The first statement of a session: sets it, and says which life of which database it speaks to. */
export function sessionStatement(settings: ReturnType<typeof sessionSettings>): string {
  const set = settings.map(([name, value]) => `set_config('${name}', '${value}', false)`);
  return `SELECT pg_is_in_recovery() AS "isStandby", (SELECT system_identifier FROM pg_control_system())::text AS system,
    CASE WHEN NOT pg_is_in_recovery() THEN ${TIMELINE} END AS timeline, ${set.join(", ")}`;
}

/**
 * The timeline on which a primary writes: it grows by one with every promotion. By the name of the WAL's file, which is right at once;
 * pg_control_checkpoint() knows of a promotion only after the checkpoint that follows it.
 */
export const TIMELINE = `('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4`;
