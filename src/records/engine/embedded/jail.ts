/**
 * The second wall of SQL over HTTP in the embedded PostgreSQL: users' statements run as the branch's role, in
 * a way that no SQL can undo.
 *
 * `SET ROLE` and PGlite's own `username` are undone by `RESET ROLE`. What holds is PostgreSQL's internal
 * SetUserIdAndSecContext with SECURITY_LOCAL_USERID_CHANGE (the state inside a SECURITY DEFINER function):
 * every change of role is refused. It is set before BEGIN, because a ROLLBACK restores the user that BEGIN
 * saw. PGlite exports the function without documenting it, so each process tests it before the first use: if
 * any escape works, no user's SQL is run.
 */
import type { QueryResult } from "pg";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoteIdentifier } from "../../identifiers.ts";
import { SESSION_STATE } from "../pinned-settings.ts";
import type { EmbeddedSession } from "./embedded-session.ts";

const PROBE_ROLE = "lodestone:jail-probe";

/** Statements that must leave the user as it is, or fail. */
const ESCAPES = [
  "RESET ROLE",
  "SET ROLE NONE",
  "SET ROLE postgres",
  "SET LOCAL ROLE postgres",
  "SET SESSION AUTHORIZATION postgres",
  "RESET SESSION AUTHORIZATION",
  "SELECT set_config('role', 'postgres', false)",
  "SELECT set_config('session_authorization', 'postgres', false)",
  "RESET ALL",
  "DISCARD ALL",
  "BEGIN",
  "ROLLBACK",
  "COMMIT",
];

/** Statements that must fail for lack of privilege (42501). */
const FORBIDDEN = [
  "SELECT count(*) FROM pg_authid",
  "CREATE TABLE public.jail_probe (n int)",
  "CREATE TEMP TABLE jail_probe (n int)",
  "CREATE SCHEMA jail_probe",
  "SELECT pg_read_file('PG_VERSION')",
  "COPY (SELECT 1) TO '/tmp/lodestone-jail-probe'",
  "ALTER ROLE postgres NOLOGIN",
  `ALTER ROLE "${PROBE_ROLE}" SUPERUSER`,
];

/** @throws {LodestoneError} UNAVAILABLE when the role cannot be confined. */
export async function confinedRoleOid(session: EmbeddedSession, roleName: string): Promise<number> {
  const { rows } = await session.query<{ oid: number; confined: boolean }>(
    `SELECT oid, NOT (rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls) AND oid > 16383
        AND NOT EXISTS (SELECT FROM pg_auth_members WHERE member = role.oid) AS confined
      FROM pg_roles AS role WHERE rolname = $1`,
    [roleName],
  );
  const role = rows[0];
  if (role?.confined !== true)
    throw new LodestoneError("UNAVAILABLE", `SQL is not available: the role ${roleName} is missing or has privileges.`);
  return role.oid;
}

/** Who the session is and how it is set. */
export async function sessionState(session: EmbeddedSession): Promise<string> {
  return (await session.query<{ state: string }>(SESSION_STATE)).rows[0]!.state;
}

/**
 * Returns to the owner and removes whatever the user's statements may have left in the session. If that fails
 * the session is ended. What was committed stays committed, so this never rejects.
 *
 * @param state  the session's state as it was before.
 */
export async function leaveJail(session: EmbeddedSession, channels: Iterable<string>, state: string): Promise<void> {
  session.jail(null);
  const listen = [...channels].map((channel) => `LISTEN ${quoteIdentifier(channel)}`);
  const statements = [
    "RESET ALL",
    "DEALLOCATE ALL",
    "CLOSE ALL",
    "UNLISTEN *",
    ...listen,
    "SELECT pg_advisory_unlock_all()",
    "DISCARD TEMP",
    "DISCARD SEQUENCES",
    SESSION_STATE,
  ];
  session.forgetPrepared();
  const results = await session.query(statements.join("; ")).catch(() => null);
  const found = (results as unknown as QueryResult<{ state?: string }>[] | null)?.at(-1)?.rows[0]?.state;
  if (found === state || session.failure !== null) return;
  await session.kill(new LodestoneError("UNAVAILABLE", "The database session was not as it had been before, and was ended. Try again."));
}

/**
 * Tries every known way out of the jail.
 * @throws {LodestoneError} UNAVAILABLE when one of them works.
 */
export async function verifyJail(session: EmbeddedSession): Promise<void> {
  const { rowCount } = await session.query("SELECT FROM pg_roles WHERE rolname = $1", [PROBE_ROLE]);
  if (rowCount === 0) await session.query(`CREATE ROLE ${quoteIdentifier(PROBE_ROLE)} NOLOGIN NOINHERIT`);
  const state = await sessionState(session);
  session.jail(await confinedRoleOid(session, PROBE_ROLE));
  let broken: string | undefined;
  try {
    for (const statement of ESCAPES) {
      await session.query(statement).catch(() => {});
      const { rows } = await session.query<{ me: string }>("SELECT current_user::text AS me");
      if (rows[0]!.me !== PROBE_ROLE) broken ??= statement;
    }
    for (const statement of FORBIDDEN) {
      const outcome = await session.query(statement).catch((error: { code?: string }) => error.code);
      if (outcome !== "42501") broken ??= statement;
    }
  } finally {
    await session.query("ROLLBACK");
    await leaveJail(session, [], state);
  }
  if (broken !== undefined) {
    throw new LodestoneError("UNAVAILABLE", `SQL is not available: this build of the embedded database does not confine it (${broken}).`);
  }
}
