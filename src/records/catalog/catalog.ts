/**
 * Which databases, branches, tables and columns there are. Reads come from a cache that other servers' changes
 * invalidate (NOTIFY). Every change runs in a transaction that first locks the branch's row and works from what
 * it finds there. So an old cache can make an answer late, but never wrong.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import { formatBranchRef, newRoleName, parseBranchRef, requireBranchRef, requireDatabaseName, schemaNameOf } from "../identifiers.ts";
import type { BranchInfo, BranchRef } from "../schema.ts";
import { BranchCache } from "./branch-cache.ts";
import {
  BRANCH_COLUMNS,
  type BranchRow,
  CREATED_AT,
  dropBranchOf,
  dropViews,
  findBranch,
  replaceViews,
  requireDatabase,
  restoreRole,
  toBranchInfo,
} from "./branch-rows.ts";
import { copyTables, moveBranch } from "./copy-branch.ts";
import { EMPTY_DOCUMENT, namingOf } from "./document.ts";
import { describeChange } from "./history/compare.ts";
import { copyHistory, type MigrationNote, recordMigration } from "./history/history.ts";
import { installMetaSchema, lockInstallation, notAllowed, SCHEMA_CHANNEL } from "./meta-schema.ts";
import { SchemaEditor } from "./schema-editor.ts";
import { createBranchStatements } from "./table-ddl.ts";

/** Building an index over many records takes long. */
const CHANGE_TIMEOUT_MS = 600_000;
const COPY_TIMEOUT_MS = 6 * 3_600_000;
/** A change of schema waits at most this long for statements that use the table, since everybody else waits behind it. */
const LOCK_TIMEOUT = "20s";

export class Catalog {
  readonly #engine: Engine;
  readonly #cache: BranchCache;
  #unlisten: (() => Promise<void>) | undefined;

  private constructor(engine: Engine) {
    this.#engine = engine;
    this.#cache = new BranchCache(async (ref) => toBranchInfo(await findBranch(engine, ref)));
  }

  /** Installs or upgrades the schema `lodestone`, and listens for changes that other servers make. */
  static async open(engine: Engine, options: { readonly isCopy?: boolean } = {}): Promise<Catalog> {
    await installMetaSchema(engine, options);
    const catalog = new Catalog(engine);
    catalog.#unlisten = await engine.listen(SCHEMA_CHANNEL, (payload) => catalog.#cache.forget(parseBranchRef(payload)));
    await catalog.#restoreRoles();
    return catalog;
  }

  /** Stops listening; the engine stays open. */
  async close(): Promise<void> {
    await this.#unlisten?.();
    this.#cache.clear();
  }

  /** Called with a branch that was changed, created or dropped, or with undefined when any may have been. */
  onChange(listener: (ref: BranchRef | undefined) => void): () => void {
    return this.#cache.onChange(listener);
  }

  /**
   * NOT_FOUND says whether the database or the branch is missing. From the cache once it was read; while the
   * database is away as it was last read.
   */
  async branch(ref: BranchRef): Promise<BranchInfo> {
    requireBranchRef(ref);
    return this.#cache.get(ref);
  }

  /** Somebody has read the incarnation and version of a branch: if the cache has others, they are forgotten. */
  noticed(ref: BranchRef, incarnation: string, version: number): void {
    this.#cache.noticed(ref, incarnation, version);
  }

  /**
   * The branch as the database has it now. What another server has changed arrives in the cache a moment after that
   * server has answered; for answers that must not be older, and before a request is refused because of the schema.
   * An exclusive engine has no other servers. While the database is away: as it was last read.
   */
  async current(ref: BranchRef): Promise<BranchInfo> {
    requireBranchRef(ref);
    return this.#engine.isExclusive ? this.#cache.get(ref) : this.#cache.refresh(ref);
  }

  async listDatabases(): Promise<{ name: string; createdAt: string }[]> {
    const { rows } = await this.#engine.query<{ name: string; created_at: string }>(
      `SELECT name, ${CREATED_AT} FROM lodestone.databases ORDER BY name`,
    );
    return rows.map((row) => ({ name: row.name, createdAt: row.created_at }));
  }

  async listBranches(database: string): Promise<{ name: string; createdAt: string }[]> {
    requireDatabaseName(database);
    const { rows } = await this.#engine.query<{ branch: string; created_at: string }>(
      `SELECT branch, ${CREATED_AT} FROM lodestone.branches WHERE database = $1 ORDER BY branch`,
      [database],
    );
    if (rows.length === 0) await requireDatabase(this.#engine, database);
    return rows.map((row) => ({ name: row.branch, createdAt: row.created_at }));
  }

  /** Every branch of every database, as it is now. */
  async allBranches(): Promise<BranchRef[]> {
    return (await this.#engine.query<BranchRef>("SELECT database, branch FROM lodestone.branches ORDER BY database, branch")).rows;
  }

  /** See RecordStore.createBranch. A copy is one transaction: on the embedded engine other requests wait for it. */
  async createBranch(ref: BranchRef, options: { from?: string } = {}): Promise<{ branch: BranchInfo; created: boolean }> {
    requireBranchRef(ref);
    const from = options.from === undefined ? undefined : { database: ref.database, branch: options.from };
    if (from !== undefined) requireBranchRef(from);
    const schemaName = schemaNameOf(ref);
    const created = await this.#engine
      .transaction(
        async (connection) => {
          const source = from === undefined ? undefined : await findSource(connection, from);
          await connection.query("INSERT INTO lodestone.databases (name) VALUES ($1) ON CONFLICT DO NOTHING", [ref.database]);
          const roleName = newRoleName();
          const document = source?.document ?? EMPTY_DOCUMENT;
          const inserted = await connection.query(
            `INSERT INTO lodestone.branches (database, branch, schema_name, role_name, document, started_from) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT DO NOTHING`,
            [ref.database, ref.branch, schemaName, roleName, JSON.stringify(document), options.from ?? null],
          );
          if (inserted.rowCount === 0) {
            if (from === undefined) return false;
            throw new LodestoneError(
              "CONFLICT",
              `Branch "${ref.branch}" of database "${ref.database}" exists already; drop it before you create it as a copy of "${options.from}".`,
            );
          }
          await connection.query("INSERT INTO lodestone.feeds (schema_name) VALUES ($1)", [schemaName]);
          for (const statement of createBranchStatements(ref, schemaName, roleName)) await connection.query(statement);
          if (source !== undefined) {
            await copyTables(connection, source.schema_name, { schemaName, roleName }, document);
            await replaceViews(connection, { ...ref, schema_name: schemaName, role_name: roleName, document });
            await copyHistory(connection, source.schema_name, schemaName);
          }
          await announce(connection, ref);
          return true;
        },
        from === undefined ? { timeoutMs: CHANGE_TIMEOUT_MS } : { timeoutMs: COPY_TIMEOUT_MS, isolation: "repeatable read" },
      )
      .catch(rethrowBusy);
    this.#cache.forget(ref);
    return { branch: await this.branch(ref), created };
  }

  async dropBranch(ref: BranchRef): Promise<void> {
    requireBranchRef(ref);
    await this.#inTransaction(async (connection) => {
      const row = await findBranch(connection, ref, "FOR UPDATE");
      await dropBranchOf(connection, row);
      await announce(connection, ref);
    });
    this.#cache.forget(ref);
  }

  async dropDatabase(database: string): Promise<void> {
    requireDatabaseName(database);
    const dropped = await this.#inTransaction(async (connection) => {
      await requireDatabase(connection, database, "FOR UPDATE");
      const rows = await lockBranches(connection, database);
      for (const row of rows) {
        await dropBranchOf(connection, row);
        await announce(connection, row);
      }
      await connection.query("DELETE FROM lodestone.databases WHERE name = $1", [database]);
      return rows;
    });
    for (const row of dropped) this.#cache.forget({ database: row.database, branch: row.branch });
  }

  /** Within its database, with everything in it; CONFLICT when a branch has the new name already. */
  async renameBranch(ref: BranchRef, to: string): Promise<void> {
    const target = { database: ref.database, branch: to };
    requireBranchRef(ref);
    requireBranchRef(target);
    if (to === ref.branch) return;
    await this.#inTransaction(async (connection) => {
      // Whoever else makes or renames branches of the database waits.
      await requireDatabase(connection, ref.database, "FOR UPDATE");
      const row = await findBranch(connection, ref, "FOR UPDATE");
      const taken = await connection.query("SELECT 1 FROM lodestone.branches WHERE database = $1 AND branch = $2", [ref.database, to]);
      if (taken.rows.length > 0) throw new LodestoneError("CONFLICT", `Branch "${to}" of database "${ref.database}" exists already.`);
      await moveBranch(connection, row, target);
      await announce(connection, ref);
      await announce(connection, target);
    });
    this.#cache.forget(ref);
    this.#cache.forget(target);
  }

  /** All branches move with everything in them. Requests under the old name find nothing from then on. */
  async renameDatabase(database: string, to: string): Promise<void> {
    requireDatabaseName(database);
    requireDatabaseName(to);
    if (to === database) return requireDatabase(this.#engine, database);
    const renamed = await this.#inTransaction(async (connection) => {
      await requireDatabase(connection, database, "FOR UPDATE");
      const inserted = await connection.query(
        "INSERT INTO lodestone.databases (name, metadata, created_at) SELECT $2, metadata, created_at FROM lodestone.databases WHERE name = $1 ON CONFLICT DO NOTHING",
        [database, to],
      );
      if (inserted.rowCount === 0) throw new LodestoneError("CONFLICT", `Database "${to}" exists already.`);
      const rows = await lockBranches(connection, database);
      for (const row of rows) {
        await moveBranch(connection, row, { database: to, branch: row.branch });
        await announce(connection, row);
        await announce(connection, { database: to, branch: row.branch });
      }
      await connection.query("DELETE FROM lodestone.databases WHERE name = $1", [database]);
      return rows;
    });
    for (const { branch } of renamed) {
      this.#cache.forget({ database, branch });
      this.#cache.forget({ database: to, branch });
    }
  }

  /**
   * Runs schema changes of one branch as one unit; the version grows by one. `work` may say what goes into the
   * history; otherwise it is derived from what changed. Resolves to the branch after the change.
   */
  async change(
    ref: BranchRef,
    work: (editor: SchemaEditor, connection: Connection) => Promise<readonly MigrationNote[]> | Promise<void>,
  ): Promise<BranchInfo> {
    requireBranchRef(ref);
    await this.#inTransaction(async (connection) => {
      const row = await findBranch(connection, ref, "FOR UPDATE");
      const editor = new SchemaEditor(connection, { schemaName: row.schema_name, roleName: row.role_name }, row.document);
      await dropViews(connection, row);
      const notes = await work(editor, connection);
      if (namingOf(editor.document) !== "dotted") await replaceViews(connection, { ...row, document: editor.document });
      for (const note of notes ?? []) await recordMigration(connection, row.schema_name, note);
      if (editor.document === row.document) return;
      await connection.query("UPDATE lodestone.branches SET document = $2, version = version + 1 WHERE schema_name = $1", [
        row.schema_name,
        JSON.stringify(editor.document),
      ]);
      if (!notes) await recordMigration(connection, row.schema_name, { operations: describeChange(row.document, editor.document) });
      await announce(connection, ref);
    });
    this.#cache.forget(ref);
    return this.branch(ref);
  }

  /** One transaction, which waits for locks no longer than for LOCK_TIMEOUT. @throws {LodestoneError} UNAVAILABLE after that. */
  async #inTransaction<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    return this.#engine
      .transaction(
        async (connection) => {
          await limitLockWait(connection);
          return work(connection);
        },
        { timeoutMs: CHANGE_TIMEOUT_MS },
      )
      .catch(rethrowBusy);
  }

  /**
   * A dump of one database does not contain roles. After a restore into another cluster, one of the servers
   * that start makes them again.
   */
  async #restoreRoles(): Promise<void> {
    const missing = `SELECT ${BRANCH_COLUMNS} FROM lodestone.branches WHERE NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = role_name)`;
    if ((await this.#engine.query(missing)).rows.length === 0) return;
    await this.#engine.transaction(
      async (connection) => {
        await lockInstallation(connection);
        for (const row of (await connection.query<BranchRow>(missing)).rows) await restoreRole(connection, row);
      },
      { timeoutMs: CHANGE_TIMEOUT_MS, isUpkeep: true },
    );
  }
}

/**
 * The branch to copy. If it does not exist, the request is INVALID; if its database does not exist, that is
 * NOT_FOUND.
 */
async function findSource(connection: Connection, from: BranchRef): Promise<BranchRow> {
  await requireDatabase(connection, from.database);
  return findBranch(connection, from, "FOR SHARE").catch((error: unknown) => {
    if (!(error instanceof LodestoneError) || error.code !== "NOT_FOUND") throw error;
    throw new LodestoneError("INVALID", `from: ${error.message}`, { cause: error });
  });
}

async function lockBranches(connection: Connection, database: string): Promise<BranchRow[]> {
  const lock = `SELECT ${BRANCH_COLUMNS} FROM lodestone.branches WHERE database = $1 ORDER BY branch FOR UPDATE`;
  return (await connection.query<BranchRow>(lock, [database])).rows;
}

async function announce(connection: Connection, ref: BranchRef): Promise<void> {
  await connection.query("SELECT pg_notify($1, $2)", [SCHEMA_CHANNEL, formatBranchRef(ref)]);
}

async function limitLockWait(connection: Connection): Promise<void> {
  await connection.query("SELECT set_config('lock_timeout', $1, true)", [LOCK_TIMEOUT]);
}

/** Errors of a schema change that are not the fault of the change. */
function rethrowBusy(error: unknown): never {
  if ((error as { code?: unknown }).code === "42501") throw notAllowed(error);
  if ((error as { code?: unknown }).code === "55P03") {
    throw new LodestoneError(
      "UNAVAILABLE",
      "The change waited too long for statements that still use the table; nothing was changed. Try again.",
      {
        cause: error,
      },
    );
  }
  throw error;
}
