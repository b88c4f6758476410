/**
 * Each wall on its own against statements generated from the running database's catalog; and how PostgreSQL
 * itself reads the statements that pass the first wall.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ALLOWED_FUNCTIONS } from "../../../src/records/sql/allowed-names.ts";
import { runs, SEED, sampleOf } from "../../support/random-runs.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { CANARY } from "./attacks.ts";
import { firstWall } from "./first-wall.ts";
import { type GeneratedAttack, generateAttacks } from "./generated-attacks.ts";
import { randomStatements } from "./random-statements.ts";

const RANDOM_STATEMENTS = runs(900);
/** Statements per transaction in the jail. */
const AT_ONCE = 500;

/** Volatile functions, besides the allowed ones, that the role of a branch may call. Each was reviewed. */
const HARMLESS = [
  /^pg_stat_get_|^pg_(?:database|tablespace|table|indexes|relation|total_relation)_size$/, // counters and sizes
  /^pg_(?:is_in_recovery|is_wal_replay_paused|get_wal_replay_pause_state|current_wal_|last_wal_|last_xact_|last_committed_xact|xact_)/,
  /^pg_(?:control_|wal_summary|available_wal|get_wal_|get_multixact|get_loaded_modules|get_wait_events|jit_available|notification_queue_usage)/,
  /^pg_(?:blocking_pids|safe_snapshot_blocking_pids|partition_|collation_actual|database_collation_actual)/,
  /^(?:pg_lock_status|pg_prepared_xact|nextval|currval|setval|lastval|pg_sequence_last_value|pg_get_sequence_data)$/, // lists without values; those of sequences ask for rights to them
  /^(?:txid_status|current_query|timeofday|currtid2?|amvalidate)$/,
  /^binary_upgrade_/, // only in a server that is being upgraded
  /(?:handler|_validator|_inline_handler|_init|_lexize)$/, // take or give what SQL cannot make
  /^(?:bernoulli|system)$/, // sampling methods
];

const shown = (outcome: unknown): string => JSON.stringify(outcome) ?? "";

describeOnBothEngines("generated attacks", (fixture) => {
  let attacks: GeneratedAttack[];
  const jail = () => ({ roleName: fixture.branch.roleName, schemaName: fixture.branch.schemaName });

  beforeAll(async () => {
    await fixture.createTable("t", [{ name: "called", type: "string" }]);
    await fixture.createTable(
      "u",
      ["n", "exp", "pg_column_size"].map((name) => ({ name, type: "float" })),
    );
    await fixture.engine.query(`CREATE SCHEMA "test:other"`);
    await fixture.engine.query(`CREATE TABLE "test:other"."secrets" AS SELECT '${CANARY}' AS name`);
    await fixture.engine.query(`INSERT INTO "${fixture.branch.schemaName}"."t" ("id", "called") VALUES ('one', 'own')`);
    // The first use of the jail makes the role that is tested.
    await fixture.engine.transaction((connection) => connection.query("SELECT 1"), { jail: jail() });
    attacks = await generateAttacks(fixture.engine);
  });
  afterAll(() => {
    attacks = [];
  });

  /** What no statement of a branch may change. */
  const state = async (): Promise<unknown> =>
    (
      await fixture.engine.query(
        `SELECT (SELECT array_agg(rolname || rolsuper::text ORDER BY rolname) FROM pg_roles) AS roles,
          (SELECT count(*)::int4 FROM pg_class WHERE relnamespace::regnamespace::text NOT LIKE 'lodestone%') AS relations,
          (SELECT count(*)::int4 FROM pg_proc) AS functions, (SELECT count(*)::int4 FROM pg_largeobject_metadata) AS large_objects,
          (SELECT count(*)::int4 FROM pg_locks WHERE locktype = 'advisory') AS locks, (SELECT count(*)::int4 FROM pg_db_role_setting) AS defaults,
          (SELECT count(*)::int4 FROM pg_replication_slots) AS slots, (SELECT count(*)::int4 FROM pg_prepared_xacts) AS prepared,
          (SELECT array_agg("id" || "called") FROM "${fixture.branch.schemaName}"."t") AS own, (SELECT array_agg(name) FROM "test:other".secrets) AS secrets,
          (SELECT jsonb_object_agg(name, setting) FROM pg_settings WHERE source = 'session') AS settings`,
      )
    ).rows;

  test("there are thousands, of every kind", () => {
    for (const kind of ["function", "attribute", "type", "operator", "relation", "system column", "keyword"] as const) {
      expect(attacks.filter((attack) => attack.kind === kind).length, kind).toBeGreaterThanOrEqual(50);
    }
    expect(new Set(attacks.map(({ statement }) => statement)).size).toBeGreaterThan(5_000);
    expect(attacks.filter(({ isForbidden }) => !isForbidden).length).toBeGreaterThan(500);
  });

  test("the first wall alone refuses everything that is not on its lists, and EXPLAIN of it", async () => {
    const passed: string[] = [];
    const inTurn = async (part: readonly GeneratedAttack[]): Promise<void> => {
      for (const statement of part.flatMap((attack) => [attack.statement, `EXPLAIN ${attack.statement}`])) {
        const outcome = await firstWall(fixture.engine, fixture.branch, statement);
        if (outcome === "passed") passed.push(statement);
        else expect(outcome, statement).toMatchObject({ code: "INVALID" });
      }
    };
    await Promise.all(
      Array.from({ length: 8 }, (_, lane) => inTurn(attacks.filter((_attack, at) => at % 8 === lane && _attack.isForbidden))),
    );
    expect(passed).toEqual([]);
  });

  test("the second wall alone holds all of them", async () => {
    const before = await state();
    // Statements that end the transaction would end the batch; attacks.test.ts runs them one by one.
    const inside = sampleOf(attacks.filter(({ kind }) => kind !== "keyword"));
    for (let from = 0; from < inside.length; from += AT_ONCE) {
      const part = inside.slice(from, from + AT_ONCE);
      const leaks: string[] = [];
      await fixture.engine
        .transaction(
          async (connection) => {
            await connection.query("SAVEPOINT s");
            for (const { statement } of part) {
              // Both in one message: what the statement did is undone before the next one, and a failed
              // transaction is taken up again.
              const outcome: unknown = await connection
                .query(`ROLLBACK TO SAVEPOINT s; ${statement}`, undefined, { raw: true })
                .catch((error: Error) => error.message);
              if (/root:/.test(shown(outcome)) || shown(outcome).includes(CANARY)) leaks.push(statement);
            }
            throw new Error("roll back");
          },
          { jail: jail(), timeoutMs: 3_600_000 },
        )
        .catch((error: Error) => expect(error.message).toBe("roll back"));
      expect(leaks).toEqual([]);
      expect(await state(), part[0]!.statement).toEqual(before);
    }
  });

  test("every volatile function that the role of a branch can call was reviewed", async () => {
    const { rows } = await fixture.engine.query<{ name: string }>(
      `SELECT DISTINCT proname::text AS name FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v' AND prokind <> 'p'
        AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) AND has_function_privilege($1, oid, 'EXECUTE') ORDER BY 1`,
      [fixture.branch.roleName],
    );
    const unknown = rows
      .map(({ name }) => name)
      .filter((name) => !ALLOWED_FUNCTIONS.has(name) && !HARMLESS.some((known) => known.test(name)));
    expect(unknown).toEqual([]);
  });

  test("PostgreSQL reads what passes the first wall as columns, allowed calls, and calls of immutable functions", async () => {
    const allowedCalls = new Set(
      (
        await fixture.engine.query<{ oid: number }>(
          `SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND (proname = ANY ($1::name[]) OR provolatile = 'i') UNION SELECT castfunc FROM pg_cast`,
          [[...ALLOWED_FUNCTIONS]],
        )
      ).rows.map(({ oid }) => oid),
    );
    let refused = 0;
    let read = 0;
    for (const statement of randomStatements(SEED % 1_000_000, RANDOM_STATEMENTS)) {
      if ((await firstWall(fixture.engine, fixture.branch, statement)) !== "passed") {
        refused++;
        continue;
      }
      // A function of this kind stores its body as PostgreSQL has analysed it: calls by function number,
      // system columns by negative numbers.
      await fixture.engine
        .transaction(async (connection) => {
          await connection.query(`SET LOCAL search_path = "${fixture.branch.schemaName}"`);
          await connection.query(`CREATE FUNCTION public.analysed() RETURNS void LANGUAGE sql BEGIN ATOMIC ${statement}; END`);
          const { rows } = await connection.query<{ tree: string }>(
            "SELECT prosqlbody::text AS tree FROM pg_proc WHERE oid = 'public.analysed'::regproc",
          );
          const calls = [...rows[0]!.tree.matchAll(/:(?:funcid|aggfnoid|winfnoid) (\d+)/g)].map((match) => Number(match[1]));
          expect(
            calls.filter((oid) => !allowedCalls.has(oid)),
            `seed ${SEED % 1_000_000}: ${statement}`,
          ).toEqual([]);
          expect(rows[0]!.tree, `seed ${SEED % 1_000_000}: ${statement}`).not.toMatch(/:varattno -\d/);
          read++;
          throw new Error("roll back");
        })
        .catch((reason: Error) => {
          // Ambiguous and unknown names are for PostgreSQL to refuse.
          if (reason.name === "AssertionError") throw reason;
        });
    }
    // Both outcomes must occur, or the test shows nothing.
    expect(refused).toBeGreaterThan(RANDOM_STATEMENTS / 20);
    expect(read).toBeGreaterThan(RANDOM_STATEMENTS / 20);
  });
});
