/** The messages when the database cannot be used: each gives the real reason. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { describeStartError } from "../../../src/records/engine/server/start-checks.ts";
import { freePort } from "../../support/ports.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";
import { runCommand } from "../../support/server.ts";

test.each([
  [{ code: "53300", message: "too many clients" }, "has no connection left (too many clients). Raise its max_connections"],
  [{ code: "57P03", message: "the database system is starting up" }, "is starting or shutting down"],
  [{ code: "EAI_AGAIN", message: "getaddrinfo" }, "cannot be reached: its host name cannot be resolved."],
  [{ code: "ENOENT", message: "connect ENOENT /run/.s.PGSQL.5432" }, "there is no such socket (connect ENOENT /run/.s.PGSQL.5432)."],
  [{ code: "EHOSTUNREACH", message: "connect EHOSTUNREACH" }, "cannot be reached (connect EHOSTUNREACH). Check host, port and firewalls."],
  [{ message: "timeout expired" }, "cannot be reached: it does not answer."],
  [{ message: "SASL: client password must be a string" }, 'requires a password for the user "app".'],
  [{ message: "Connection terminated unexpectedly" }, "Is it PostgreSQL that listens there?"],
  [{ message: "something else" }, "The database at h/d refused: something else"],
])("%j is explained", (error, said) => {
  const explained = describeStartError(error, "h/d", "app");
  expect([explained.code, explained.message]).toEqual(["UNAVAILABLE", expect.stringContaining(said)]);
});

describeWith("postgresql", "a database that cannot be used", (bin) => {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-hba-"));
  let server: TestPostgres;
  let databaseUrl: string;
  beforeAll(async () => {
    const hba = join(directory, "pg_hba.conf");
    writeFileSync(hba, "host all stranger all reject\nhost all guest all scram-sha-256\nhost all all 127.0.0.1/32 trust\n");
    chmodSync(directory, 0o755);
    chmodSync(hba, 0o644);
    server = await startPostgres(bin, [`hba_file=${hba}`]);
    databaseUrl = await server.createDatabase();
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    await client.query("CREATE ROLE guest LOGIN PASSWORD 'r1ght-one'");
    await client.end();
  });
  afterAll(async () => {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const urlWith = (change: (url: URL) => void): string => {
    const url = new URL(databaseUrl);
    change(url);
    return url.href;
  };
  const refusal = async (url: string): Promise<string> => {
    const error = await openEngine({ databaseUrl: url }).then(
      (engine) => engine.close(),
      (reason: Error) => reason,
    );
    expect(error).toMatchObject({ code: "UNAVAILABLE" });
    return String(error);
  };

  test("reports a wrong password without revealing it", async () => {
    const said = await refusal(urlWith((url) => Object.assign(url, { username: "guest", password: "wr0ng-one" })));
    expect(said).toMatch(/refuses the password of the user "guest"/);
    expect(said).not.toContain("wr0ng-one");
  });

  test("reports that a password is required", async () => {
    expect(await refusal(urlWith((url) => Object.assign(url, { username: "guest", password: "" })))).toMatch(
      /requires a password for the user "guest"/,
    );
  });

  test("reports that the user is not allowed in", async () => {
    expect(await refusal(urlWith((url) => Object.assign(url, { username: "stranger" })))).toMatch(
      /does not let the user "stranger" log in .*pg_hba\.conf/,
    );
  });

  test("reports that the database does not exist", async () => {
    expect(await refusal(urlWith((url) => Object.assign(url, { pathname: "/nowhere" })))).toMatch(
      /\/nowhere does not exist .*CREATE DATABASE/,
    );
  });

  test("reports that nothing listens, or that the host is unknown", async () => {
    const port = String(await freePort());
    expect(await refusal(urlWith((url) => Object.assign(url, { port })))).toMatch(/nothing listens there/);
    expect(await refusal(urlWith((url) => Object.assign(url, { hostname: "no.such.host.invalid" })))).toMatch(
      /host name cannot be resolved/,
    );
  });

  test("reports it on the command line, and exits", async () => {
    const { code, stderr } = await runCommand([
      "serve",
      "--port",
      "0",
      "--database-url",
      urlWith((url) => Object.assign(url, { username: "guest", password: "wr0ng-one" })),
    ]);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/refuses the password of the user "guest"/);
    expect(stderr).not.toContain("wr0ng-one");
  });
});
