/** Which server a URL names, and how sessions on it are set up. */
import pg from "pg";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoteIdentifier, quoteLiteral } from "../../identifiers.ts";
import { PINNED_SETTINGS, SESSION_STATE, TIMELINE } from "../pinned-settings.ts";

export const CONNECT_TIMEOUT_MS = 10_000;

/**
 * The parts of the URL, so that logins as other roles can share them. Nothing is set through the start-up
 * message (`options`): poolers refuse that, or drop it silently. See sessionStatements.
 *
 * @throws {LodestoneError} INVALID for text that is not a URL.
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

/** Name and value of each setting; these override the defaults of the database and the role. */
export function sessionSettings(statementTimeoutMs: number): readonly (readonly [name: string, value: string])[] {
  return [
    ...PINNED_SETTINGS,
    // With this, triggers leave it to this process to wake the followers of the change feed; see
    // feed/wake-ups.ts.
    ["lodestone.writer", "service"],
    ["client_connection_check_interval", "1000"],
    ["statement_timeout", String(Math.ceil(statementTimeoutMs))],
  ];
}

/** SET instead of set_config(), which the roles of branches may not call. */
const setStatements = (settings: ReturnType<typeof sessionSettings>): string[] =>
  settings.map(([name, value]) => `SET ${name.split(".").map(quoteIdentifier).join(".")} = ${quoteLiteral(value)}`);

/**
 * The first statements of a session: they set it up and return which life of which database it reaches. The
 * result is that of the last statement.
 */
export function sessionStatements(settings: ReturnType<typeof sessionSettings>): string {
  const life = `SELECT pg_is_in_recovery() AS "isStandby", (SELECT system_identifier FROM pg_control_system())::text AS system,
    CASE WHEN NOT pg_is_in_recovery() THEN ${TIMELINE} END AS timeline, pg_backend_pid() AS pid, (${SESSION_STATE}) AS state`;
  return [...setStatements(settings), life].join("; ");
}

/**
 * Sets up a session again whose settings were discarded. The last statement returns what sessionStatements
 * calls its state.
 */
export const resetStatements = (settings: ReturnType<typeof sessionSettings>): string =>
  [...setStatements(settings), SESSION_STATE].join("; ");
