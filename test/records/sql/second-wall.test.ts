/**
 * The second wall of SQL over HTTP on its own: statements go to the branch's session unchecked, without the
 * allow-list.
 */
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import type { Engine, TransactionConnection } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import type { BranchInfo } from "../../../src/records/schema.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { describeWith } from "../../support/requirements.ts";

const jailOf = (branch: BranchInfo) => ({ jail: { roleName: branch.roleName, schemaName: branch.schemaName } });

describeOnBothEngines("the second wall alone", (fixture) => {
  const run = (statement: string): Promise<unknown> =>
    fixture.engine.transaction((connection) => connection.query(statement), jailOf(fixture.branch));

  test.each([
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT pg_logical_emit_message(false, 'x', repeat('y', 1000))",
    "SELECT set_config('standard_conforming_strings', 'off', false)",
    "SELECT set_config('lodestone.writer', 'service', false)",
    "SELECT set_config('statement_timeout', '0', false)",
    "SELECT pg_notify('lodestone_feed', 'x')",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_advisory_xact_lock(1)",
    "SELECT pg_try_advisory_lock_shared(1, 2)",
    "SELECT pg_sleep(0)",
    "SELECT pg_sleep_for('0 s')",
    "SELECT x.pg_sleep FROM unnest(ARRAY[0::float8]) x",
    "SELECT x.ts_stat FROM unnest(ARRAY['SELECT to_tsvector(relname) FROM pg_class']) x",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT table_to_xml('pg_class', true, true, '')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery')",
    "SELECT pg_export_snapshot()",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT setseed(0.5)",
  ])("refuses %j", async (statement) => {
    await expect(run(statement)).rejects.toMatchObject({ code: "42501" });
  });

  test("is restored after it was taken down", async () => {
    await fixture.engine.query("GRANT EXECUTE ON FUNCTION lo_create(oid), set_config(text, text, bool) TO PUBLIC");
    await run("SELECT set_config('work_mem', '5MB', true)");
    const catalog = await Catalog.open(fixture.engine);
    await catalog.close();
    await expect(run("SELECT set_config('work_mem', '5MB', true)")).rejects.toMatchObject({ code: "42501" });
    await expect(run("SELECT lo_create(0)")).rejects.toMatchObject({ code: "42501" });
  });

  test("nothing that a statement sets reaches the next one", async () => {
    const settings = [
      ["standard_conforming_strings", "off"],
      ["backslash_quote", "on"],
      ["exit_on_error", "off"],
      ["transform_null_equals", "on"],
      ["quote_all_identifiers", "on"],
      ["client_encoding", "LATIN1"],
      ["synchronous_commit", "off"],
      ["statement_timeout", "12345"],
      ["search_path", "pg_temp"],
    ];
    const all = async (connection: TransactionConnection): Promise<unknown> =>
      (await connection.query(`SELECT ${settings.map(([name]) => `current_setting('${name}', true) AS "${name}"`).join(", ")}`)).rows[0];
    const before = await fixture.engine.transaction(all, jailOf(fixture.branch));
    for (const [name, value] of settings) await run(`SET ${name} = '${value}'`);
    expect(await fixture.engine.transaction(all, jailOf(fixture.branch))).toEqual(before);
  });
});

describeWith("postgresql", "the time limit of a statement, on a PostgreSQL server", (bin) => {
  let server: TestPostgres;
  let engine: Engine;
  let catalog: Catalog;
  let branch: BranchInfo;
  let admin: pg.Client;

  beforeAll(async () => {
    server = await startPostgres(bin);
    const url = new URL(await server.createDatabase());
    admin = new pg.Client({ connectionString: url.href });
    await admin.connect();
    // As a user with only the rights that the service needs.
    await admin.query("CREATE ROLE lodestone_service LOGIN CREATEROLE");
    await admin.query(`ALTER DATABASE ${url.pathname.slice(1)} OWNER TO lodestone_service`);
    url.username = "lodestone_service";
    engine = await openEngine({ databaseUrl: url.href });
    catalog = await Catalog.open(engine);
    ({ branch } = await catalog.createBranch({ database: "d", branch: "main" }));
  });
  afterAll(async () => {
    await catalog.close();
    await engine.close();
    await admin.end();
    await server.stop();
  });

  const sessions = async (): Promise<number> =>
    Number((await admin.query("SELECT count(*) FROM pg_stat_activity WHERE usename = $1", [branch.roleName])).rows[0].count);

  test.each([
    ["a statement without its limit", "SELECT count(*) FROM generate_series(1, 1000000000000)"],
    [
      "a loop that catches its own cancelling",
      `DO $$ BEGIN LOOP BEGIN PERFORM count(*) FROM generate_series(1, 100000000); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$`,
    ],
  ])("ends %s from outside, before the answer", async (_name, statement) => {
    const work = engine.transaction(
      async (connection) => {
        await connection.query("SET statement_timeout = 0");
        await connection.query("SET client_connection_check_interval = 0");
        await connection.query(statement);
      },
      { ...jailOf(branch), timeoutMs: 300 },
    );
    await expect(work).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await sessions()).toBe(0);
  });

  test("ends statements that nobody waits for any more", async () => {
    const caller = new AbortController();
    const work = engine.transaction(
      async (connection) => {
        await connection.query("SET statement_timeout = 0");
        await connection.query("SET client_connection_check_interval = 0");
        setTimeout(() => caller.abort(new Error("gone")), 100);
        await connection.query("SELECT count(*) FROM generate_series(1, 1000000000000)");
      },
      { ...jailOf(branch), readOnly: true, signal: caller.signal },
    );
    await expect(work).rejects.toThrow("gone");
    expect(await sessions()).toBe(0);
  });

  test("a role's own defaults do not change the settings that both walls rely on", async () => {
    await engine.transaction(async (connection) => {
      await connection.query("ALTER ROLE CURRENT_USER SET standard_conforming_strings = off");
      await connection.query("ALTER ROLE CURRENT_USER SET exit_on_error = on");
      await connection.query("ALTER ROLE CURRENT_USER SET backslash_quote = on");
    }, jailOf(branch));
    await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [branch.roleName]);
    const seen = () =>
      engine.transaction(
        async (connection) =>
          (
            await connection.query(
              `SELECT current_setting('standard_conforming_strings') AS strings, current_setting('exit_on_error') AS exits,
                current_setting('backslash_quote') AS quote`,
            )
          ).rows[0],
        jailOf(branch),
      );
    const pinned = { strings: "on", exits: "off", quote: "safe_encoding" };
    await expect.poll(() => seen().catch(() => null)).toEqual(pinned);
    expect(await seen()).toEqual(pinned);
  });

  test("a connection whose state has changed does not return to the pool", async () => {
    const processId = () =>
      engine.transaction(
        async (connection) => (await connection.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]!.pid,
        jailOf(branch),
      );
    const first = await processId();
    expect(await processId()).toBe(first);
    await admin.query("ALTER SYSTEM SET lock_timeout = '7s'");
    await admin.query("SELECT pg_reload_conf()");
    // This one notices when it is done; the next one gets another connection.
    await expect.poll(processId).not.toBe(first);
    await admin.query("ALTER SYSTEM RESET lock_timeout");
  });
});
