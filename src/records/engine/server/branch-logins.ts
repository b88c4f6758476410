/**
 * The second wall of SQL over HTTP on a server: users' statements run on connections that are logged in *as
 * the branch's role itself*.
 *
 * Why not SET ROLE on our own connection: RESET ROLE is one statement, and a server has no way to forbid it
 * for good. A session whose own user is the branch's role has nothing to go back to: the role owns nothing,
 * is a member of nothing, and sees one schema.
 *
 * The catalog makes the role without LOGIN; the first statement in a branch gives it LOGIN and a password.
 * The password is derived from a secret that only our own user may read (lodestone_private.sql_login), so
 * several servers on one database agree on it. Only the SCRAM verifier is sent to the server, so no password
 * appears in its log.
 */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import type pg from "pg";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoteIdentifier, quoteLiteral } from "../../identifiers.ts";
import type { Connection, Engine } from "../engine.ts";
import { ConnectionPool } from "./connection-pool.ts";

/** Maximum number of connections of one branch, so that it cannot take them all. One caller gets three of them. */
export const CONNECTIONS_PER_BRANCH = 4;
const IDLE_MS = 10_000;
/**
 * invalid_password, invalid_authorization: the role has no LOGIN yet, or another password.
 * protocol_violation: PgBouncer's way of saying so ("no such user").
 */
const LOGIN_REFUSED = new Set(["28P01", "28000", "08P01"]);
/**
 * Advisory lock of the transaction that makes the secret or alters a role. Of several that do so at once
 * PostgreSQL fails all but one ("tuple concurrently updated").
 */
const LOGIN_LOCK = "7020584115171942245";

export interface BranchLoginsOptions {
  /** The owner's connection: same server, same database. */
  readonly config: pg.ClientConfig;
  readonly owner: Engine;
  /** Connections of all branches together, used and idle. */
  readonly maxConnections: number;
  /** See ConnectionPool. */
  readonly prepare: (client: pg.ClientBase) => Promise<void>;
}

export class BranchLogins {
  readonly #options: BranchLoginsOptions;
  /**
   * The first statements of a branch may come together: one of them gives the role LOGIN, and the others wait
   * for it.
   */
  readonly #granting = new Map<string, Promise<void>>();
  /** Most recently used last. */
  readonly #pools = new Map<string, ConnectionPool>();
  #secret: Promise<string> | null = null;
  /** Connections that were told to end, and are not gone yet. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: BranchLoginsOptions) {
    this.#options = options;
  }

  /**
   * For at most `maxConnections` callers at once: whoever calls sees to that.
   *
   * @throws {LodestoneError} OVERLOADED when no connection is free within ten seconds, UNAVAILABLE when the
   *   role cannot log in.
   */
  async connect(roleName: string): Promise<pg.PoolClient> {
    const secret = await this.#ownSecret();
    try {
      return await this.#connection(roleName, secret);
    } catch (error) {
      if (!LOGIN_REFUSED.has((error as { code?: string }).code ?? "")) throw error;
    }
    let granting = this.#granting.get(roleName);
    if (granting === undefined) {
      granting = this.#grantLogin(roleName, secret).finally(() => this.#granting.delete(roleName));
      this.#granting.set(roleName, granting);
    }
    await granting;
    try {
      return await this.#connection(roleName, secret);
    } catch (error) {
      if (!LOGIN_REFUSED.has((error as { code?: string }).code ?? "")) throw error;
      throw new LodestoneError(
        "UNAVAILABLE",
        `SQL over HTTP is not available: the database does not let the role ${roleName} log in (${(error as Error).message}). ` +
          "Allow roles whose names begin with lodestone: to log in with a password (pg_hba.conf) from this host.",
        { cause: error },
      );
    }
  }

  disconnect(except?: pg.ClientBase): void {
    for (const pool of this.#pools.values()) pool.disconnect(except);
  }

  async close(): Promise<void> {
    await Promise.all([...[...this.#pools.values()].map((pool) => pool.close()), ...this.#ending]);
  }

  async #ownSecret(): Promise<string> {
    this.#secret ??= readSecret(this.#options.owner);
    try {
      return await this.#secret;
    } catch (error) {
      this.#secret = null;
      throw error;
    }
  }

  #connection(roleName: string, secret: string): Promise<pg.PoolClient> {
    let pool = this.#pools.get(roleName);
    pool ??= new ConnectionPool(
      {
        ...this.#options.config,
        user: roleName,
        password: passwordOf(secret, roleName),
        max: Math.min(CONNECTIONS_PER_BRANCH, this.#options.maxConnections),
        idleTimeoutMillis: IDLE_MS,
        application_name: "lodestone sql",
      },
      this.#options.prepare,
    );
    this.#pools.delete(roleName);
    this.#pools.set(roleName, pool);
    if (pool.spare === 0) this.#makeRoom(pool);
    return pool.connect(this.#ending);
  }

  /** Ends spare connections of other branches, those that were used longest ago first. */
  #makeRoom(wanted: ConnectionPool): void {
    let total = 0;
    for (const pool of this.#pools.values()) total += pool.total;
    for (const [roleName, pool] of this.#pools) {
      if (total < this.#options.maxConnections) return;
      if (pool === wanted) continue;
      for (; total >= this.#options.maxConnections && pool.spare > 0; total--) {
        const ending = pool.endSpare().finally(() => this.#ending.delete(ending));
        this.#ending.add(ending);
      }
      if (pool.isEmpty) this.#pools.delete(roleName);
    }
  }

  async #grantLogin(roleName: string, secret: string): Promise<void> {
    const { rows } = await this.#options.owner.query<{ confined: boolean }>(
      `SELECT NOT (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_auth_members WHERE member = role.oid) AS confined
        FROM pg_catalog.pg_roles AS role WHERE rolname = $1`,
      [roleName],
    );
    if (rows[0]?.confined !== true) {
      throw new LodestoneError(
        "UNAVAILABLE",
        `SQL over HTTP is not available: the role ${roleName} is missing, or has privileges that it must not have.`,
      );
    }
    const password = passwordOf(secret, roleName);
    try {
      await this.#options.owner.transaction(async (connection) => {
        await lockLogins(connection);
        await connection.query(`ALTER ROLE ${quoteIdentifier(roleName)} LOGIN PASSWORD ${quoteLiteral(scramVerifier(password))}`);
      });
    } catch (error) {
      if (error instanceof LodestoneError) throw error;
      throw new LodestoneError(
        "UNAVAILABLE",
        `SQL over HTTP is not available: the database's user may not alter the role ${roleName} (${(error as Error).message}). Give it CREATEROLE.`,
        { cause: error },
      );
    }
  }
}

const readSecret = (owner: Engine): Promise<string> =>
  owner.transaction(async (connection) => {
    await lockLogins(connection);
    await connection.query("CREATE SCHEMA IF NOT EXISTS lodestone_private");
    await connection.query(
      "CREATE TABLE IF NOT EXISTS lodestone_private.sql_login (only_row bool PRIMARY KEY DEFAULT true CHECK (only_row), secret text NOT NULL)",
    );
    await connection.query("REVOKE ALL ON lodestone_private.sql_login FROM PUBLIC");
    await connection.query("INSERT INTO lodestone_private.sql_login (secret) VALUES ($1) ON CONFLICT DO NOTHING", [
      randomBytes(32).toString("hex"),
    ]);
    const { rows } = await connection.query<{ secret: string }>("SELECT secret FROM lodestone_private.sql_login");
    return rows[0]!.secret;
  });

const lockLogins = (connection: Connection): Promise<unknown> => connection.query("SELECT pg_advisory_xact_lock($1::int8)", [LOGIN_LOCK]);

const passwordOf = (secret: string, roleName: string): string => createHmac("sha256", secret).update(roleName).digest("base64url");

/** A SCRAM verifier (RFC 5803) in PostgreSQL's format: PostgreSQL stores a finished verifier as it is. */
function scramVerifier(password: string): string {
  const iterations = 4096;
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  const key = (name: string): Buffer => createHmac("sha256", salted).update(name).digest();
  const stored = createHash("sha256").update(key("Client Key")).digest("base64");
  return `SCRAM-SHA-256$${iterations}:${salt.toString("base64")}$${stored}:${key("Server Key").toString("base64")}`;
}
