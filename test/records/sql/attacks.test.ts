import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { EmbeddedEngine } from "../../../src/records/engine/embedded/embedded-engine.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import type { BranchInfo } from "../../../src/records/schema.ts";
import { runSql } from "../../../src/records/sql/run-sql.ts";
import { until } from "../../support/patience.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { sampleOf } from "../../support/random-runs.ts";
import { describeOnce, describeWith } from "../../support/requirements.ts";
import { CANARY, LARGE_ANSWERS, REFUSED, RUNAWAY } from "./attacks.ts";
import { firstWall } from "./first-wall.ts";
import { NOT_COLUMNS, PEOPLE } from "./names.ts";

/** The walls hold whatever time a statement takes. */
const LONG_MS = 3_600_000;
const RUNAWAY_MS = 1_500;
/** Some attacks only wait. */
const ATTACK_MS = 1_500;
const AT_ONCE = 10;

const GROUPS: Readonly<Record<string, readonly string[]>> = { ...REFUSED, "calls that look like columns": NOT_COLUMNS };

/** A few at a time, named after the first: comparing the whole state after each one would take minutes. */
const parts = (statements: readonly string[]): (readonly [string, readonly string[]])[] =>
  Array.from({ length: Math.ceil(statements.length / AT_ONCE) }, (_, part) => {
    const some = statements.slice(part * AT_ONCE, (part + 1) * AT_ONCE);
    return [some[0]!, some] as const;
  });

test("the suite has at least 400 different attacks, besides the generated ones", () => {
  const all = [...Object.values(GROUPS).flat(), ...RUNAWAY];
  expect(new Set(all).size).toBe(all.length);
  expect(all.length).toBeGreaterThanOrEqual(400);
});

/** What must be equal before and after every attack. */
async function stateOf(engine: Engine): Promise<unknown> {
  const { rows } = await engine.query(
    `SELECT current_user AS me, session_user AS session, current_setting('search_path') AS path, current_setting('statement_timeout') AS timeout,
        (SELECT jsonb_object_agg(name, setting) FROM pg_settings WHERE source = 'session' AND name NOT IN ('application_name')) AS settings,
        (SELECT array_agg("name") FROM "test:other"."secrets") AS secrets,
        (SELECT array_agg("id" || "name") FROM "test:main"."t") AS own,
        (SELECT count(*)::int4 FROM lodestone.branches) AS branches,
        (SELECT array_agg(tgname || tgenabled::text ORDER BY tgrelid, tgname) FROM pg_trigger WHERE NOT tgisinternal) AS triggers,
        (SELECT array_agg(rolname || rolsuper ORDER BY rolname) FROM pg_roles) AS roles,
        (SELECT array_agg(nspname || '.' || relname ORDER BY 1) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
          WHERE relkind IN ('r', 'v', 'm', 'S') AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\\_toast%') AS relations,
        (SELECT array_agg(proname ORDER BY oid) FROM pg_proc WHERE oid > 16383) AS functions,
        (SELECT count(*)::int4 FROM pg_db_role_setting) AS defaults, (SELECT count(*)::int4 FROM pg_replication_slots) AS slots,
        (SELECT count(*)::int4 FROM pg_largeobject_metadata) AS large_objects,
        (SELECT count(*)::int4 FROM pg_locks WHERE locktype = 'advisory') AS advisory_locks,
        (SELECT array_agg(name) FROM pg_prepared_statements) AS prepared`,
  );
  return rows;
}

type Open = () => Promise<{ engine: Engine; close: () => Promise<void> }>;

/** A branch with tables of its own beside another's secrets, there while the tests of the suite run. */
class Stage {
  engine!: Engine;
  branch!: BranchInfo;
  before: unknown;
  readonly #open: Open;
  #catalog: Catalog | undefined;
  #close: (() => Promise<void>) | undefined;

  constructor(open: Open) {
    this.#open = open;
    beforeAll(() => this.#set());
    afterAll(async () => {
      await this.#catalog?.close();
      await this.#close?.();
    });
  }

  async #set(): Promise<void> {
    ({ engine: this.engine, close: this.#close } = await this.#open());
    const catalog = await Catalog.open(this.engine);
    this.#catalog = catalog;
    const other = { database: "test", branch: "other" };
    await catalog.createBranch(other);
    await catalog.change(other, (editor) => editor.createTable("secrets", [{ name: "name", type: "string" }]));
    await this.engine.query(`INSERT INTO "test:other"."secrets" ("id", "name") VALUES ('s', $1)`, [CANARY]);
    await catalog.createBranch({ database: "test", branch: "main" });
    await catalog.change({ database: "test", branch: "main" }, (editor) => editor.createTable("t", [{ name: "name", type: "string" }]));
    this.branch = await catalog.change({ database: "test", branch: "main" }, async (editor) => {
      await editor.createTable("teams", [{ name: "name", type: "string" }]);
      await editor.createTable("people", PEOPLE);
    });
    await this.engine.query(`INSERT INTO "test:main"."t" ("id", "name") VALUES ('one', 'own')`);
    // Logs in and looks up names once, so that the traces of this are in the state before.
    const login = (): Promise<boolean> =>
      runSql(this.engine, this.branch, { statement: `SELECT 1` }).then(
        () => true,
        () => false,
      );
    await until("SQL of the branch is served", login);
    this.before = await stateOf(this.engine);
  }
}

function describeWalls(open: Open): void {
  const at = new Stage(open);

  describe.each(Object.entries(GROUPS))("%s", (_group, statements) => {
    test.each(parts(statements))("the first wall refuses %j and what follows", async (_first, some) => {
      for (const statement of some) expect(await firstWall(at.engine, at.branch, statement), statement).toMatchObject({ code: "INVALID" });
    });

    test.each(parts(statements))("the first wall refuses EXPLAIN of %j and of what follows", async (_first, some) => {
      for (const statement of some)
        expect(await firstWall(at.engine, at.branch, `EXPLAIN ${statement}`), statement).toMatchObject({ code: "INVALID" });
    });

    test.each(parts(statements))("the second wall holds %j and what follows", async (_first, some) => {
      // Effects inside their own branch are rolled back here. Nothing else may change, and no secret may be
      // seen.
      for (const statement of some) {
        const seen: unknown[] = [];
        await at.engine
          .transaction(
            async (connection) => {
              seen.push(await connection.query(statement.replaceAll("\0", " ")));
              throw new Error("roll back");
            },
            { jail: { roleName: at.branch.roleName, schemaName: at.branch.schemaName }, timeoutMs: ATTACK_MS },
          )
          .catch((error: Error) => seen.push(error.message));
        const shown = JSON.stringify(seen, (_key, value) => (typeof value === "bigint" ? String(value) : (value as unknown)));
        expect(shown, statement).not.toContain(CANARY);
        expect(shown, statement).not.toContain("root:");
      }
      expect(await stateOf(at.engine)).toEqual(at.before);
      expect(existsSync("/tmp/lodestone-attack")).toBe(false);
    });
  });

  test("nothing that a user's session leaves behind reaches the next", async () => {
    const jail = { roleName: at.branch.roleName, schemaName: at.branch.schemaName };
    const leave = [
      "PREPARE left AS SELECT 1",
      "SELECT set_config('application_name', 'left', false)",
      "SET work_mem = '99MB'",
      "SET search_path = pg_catalog",
      "SELECT pg_advisory_lock(77)",
      "LISTEN left_channel",
      "DECLARE left_cursor CURSOR WITH HOLD FOR SELECT 1",
    ];
    for (const statement of leave) await at.engine.transaction((connection) => connection.query(statement), { jail }).catch(() => {});
    await at.engine.transaction(
      async (connection) => {
        const { rows } = await connection.query(
          `SELECT (SELECT count(*)::int4 FROM pg_prepared_statements WHERE name = 'left') AS prepared, current_setting('work_mem') = '99MB' AS kept,
             current_setting('application_name') = 'left' AS named, (SELECT count(*)::int4 FROM pg_cursors WHERE name = 'left_cursor') AS cursors,
             (SELECT count(*)::int4 FROM pg_locks WHERE locktype = 'advisory') AS locks, (SELECT count(*)::int4 FROM pg_listening_channels() AS c WHERE c = 'left_channel') AS channels,
             current_setting('search_path') AS path`,
        );
        expect(rows).toEqual([{ prepared: 0, kept: false, named: false, cursors: 0, locks: 0, channels: 0, path: '"test:main"' }]);
      },
      { jail },
    );
  });

  test("in the jail the user is the branch's role, and nothing restores another", async () => {
    const jail = { roleName: at.branch.roleName, schemaName: at.branch.schemaName };
    for (const way of [
      "RESET ROLE",
      "SET ROLE NONE",
      "RESET SESSION AUTHORIZATION",
      "SET SESSION AUTHORIZATION DEFAULT",
      "COMMIT",
      "ROLLBACK",
      "DISCARD ALL",
      "RESET ALL",
    ]) {
      const users: unknown[] = [];
      await at.engine
        .transaction(
          async (connection) => {
            await connection.query("SAVEPOINT before");
            await connection.query(way).catch(() => connection.query("ROLLBACK TO SAVEPOINT before"));
            users.push(
              (
                await connection.query(
                  "SELECT current_user::text AS me, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS super",
                )
              ).rows[0],
            );
          },
          { jail },
        )
        .catch(() => {});
      expect(users).toEqual([{ me: at.branch.roleName, super: false }]);
    }
    expect((await at.engine.query("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")).rows).toEqual([{ rolsuper: true }]);
  });
}

function describeRunaways(open: Open): void {
  const at = new Stage(open);

  test.each(sampleOf(RUNAWAY).map((statement, index) => [index, statement.slice(0, 80), statement] as const))(
    "runaway %i ends within the time limit and the next request is served: %s",
    async (_index, _shown, statement) => {
      const outcome = await runSql(at.engine, at.branch, { statement }).catch((error: { code?: string }) => error.code);
      const allowed = LARGE_ANSWERS.includes(statement) ? ["INVALID", "TIMEOUT", "TOO_LARGE"] : ["INVALID", "TIMEOUT"];
      if (typeof outcome === "string") expect(allowed).toContain(outcome);
      // The limit is for it as well: on a busy machine it may take several attempts.
      const next = () => runSql(at.engine, at.branch, { statement: `SELECT "name" FROM "t"` });
      await expect.poll(async () => (await next().catch(() => undefined))?.records).toEqual([{ name: "own" }]);
      expect(await stateOf(at.engine)).toEqual(at.before);
    },
  );
}

async function openEmbedded(sqlTimeoutMs: number): ReturnType<Open> {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-attacks-"));
  const engine = await EmbeddedEngine.open({ dataDir, statementTimeoutMs: LONG_MS, sqlTimeoutMs, replacePatienceMs: LONG_MS });
  return {
    engine,
    close: async () => {
      await engine.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

describeOnce("attacks on the embedded engine", () => {
  describe("the walls", () => describeWalls(() => openEmbedded(LONG_MS)));
  describe("runaways", () => describeRunaways(() => openEmbedded(RUNAWAY_MS)));
});

describeWith("postgresql", "attacks on a PostgreSQL server", (bin) => {
  const openServer = async (statementTimeoutMs: number, settings: readonly string[] = []): ReturnType<Open> => {
    const server: TestPostgres = await startPostgres(bin, settings);
    const engine = await openEngine({ databaseUrl: await server.createDatabase(), statementTimeoutMs });
    return {
      engine,
      close: async () => {
        await engine.close();
        await server.stop();
      },
    };
  };
  describe("the walls", () => describeWalls(() => openServer(LONG_MS)));
  // A server of its own: some of them cannot be interrupted, and their database could not be dropped.
  describe("runaways", () => describeRunaways(() => openServer(RUNAWAY_MS, ["max_connections=60"])));
});
