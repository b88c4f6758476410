/**
 * `lodestone migrate`: dumps of pg_dump in all its formats, and folders with a schema. Covers stops at any
 * point, what is left out, what differs, and what cannot be read.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import { runHere } from "../support/run-here.ts";
import { MAIN, startServer, type TestServer } from "../support/server.ts";

const FIXTURES = fileURLToPath(new URL("../sdk/fixtures", import.meta.url));
let server: TestServer;
let directory: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "lodestone-migrate-"));
  server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
});
afterAll(async () => {
  await server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => run(["migrate", ...args], env);

function run(args: readonly string[], env: Readonly<Record<string, string>>): { child: ChildProcess; ended: Promise<Run> } {
  const child = spawn(process.execPath, [MAIN, ...args, "--url", server.url], {
    env: { PATH: process.env.PATH, HOME: directory, ...env },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk;
  });
  return { child, ended: new Promise((resolve) => child.once("close", (code) => resolve({ code, stdout, stderr }))) };
}

const migrate = (...args: string[]): Promise<Run> => runHere(["migrate", ...args, "--url", server.url]);
const branches = async (database: string): Promise<string[]> =>
  ((await server.get(`/dbs/${database}`)).body.branches ?? []).map(({ name }: { name: string }) => name);
const records = async (branch: string, table: string) =>
  (await server.post(`/db/${branch}/tables/${table}/query`, { sort: { id: "asc" }, page: { size: 1000 } })).body.records;

/** Tables as the retired service made them for databases with Postgres enabled. */
const XATA_TABLES = `
CREATE TABLE teams (
  xata_id text DEFAULT ('rec_'::text || md5(random()::text)) NOT NULL UNIQUE CHECK (length(xata_id) < 256),
  xata_version integer DEFAULT 0 NOT NULL, xata_createdat timestamptz DEFAULT now() NOT NULL, xata_updatedat timestamptz DEFAULT now() NOT NULL,
  name text, email text UNIQUE, plan text NOT NULL DEFAULT 'free', size bigint DEFAULT 5, ratio double precision, active boolean DEFAULT true,
  founded timestamptz, day date, tags text[], config jsonb, vec real[], owner text, exact numeric(20,5), parent text REFERENCES teams (xata_id));
CREATE TABLE users (
  id serial, xata_id text NOT NULL UNIQUE, xata_version integer DEFAULT 0 NOT NULL,
  xata_createdat timestamptz DEFAULT now() NOT NULL, xata_updatedat timestamptz DEFAULT now() NOT NULL, name character varying(50) NOT NULL, team text);
CREATE TABLE nothing (xata_id text NOT NULL UNIQUE, xata_version integer NOT NULL, xata_createdat timestamptz NOT NULL, xata_updatedat timestamptz NOT NULL, n int);
ALTER TABLE ONLY teams ADD CONSTRAINT owner_link FOREIGN KEY (owner) REFERENCES users (xata_id) ON DELETE SET NULL;
ALTER TABLE ONLY users ADD CONSTRAINT team_link FOREIGN KEY (team) REFERENCES teams (xata_id);
COMMENT ON COLUMN teams.name IS '{"xata.type":"string"}';
COMMENT ON COLUMN teams.email IS '{"xata.type":"email"}';
COMMENT ON COLUMN teams.vec IS '{"xata.search.dimension":2}';
COMMENT ON COLUMN teams.owner IS '{"xata.link":"users"}';
CREATE FUNCTION misleading() RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
  -- The next line is a text's, and no statement.
COPY public.teams (xata_id, name) FROM stdin;
  RETURN 'it''s; -- $$';
END $body$;
INSERT INTO users (xata_id, name) VALUES ('u1', 'Ada'), ('u2', E'tab\\tand\\nline \\\\ back');
INSERT INTO teams (xata_id, name, email, plan, size, ratio, active, founded, day, tags, config, vec, owner, exact, parent) VALUES
  ('t1', 'One', 'one@example.com', 'paid', 9007199254740991, 0.1, false, '2020-01-02 03:04:05.678901+00', '1999-12-31', '{a,NULL,"b c"}', '{"b": [1, null], "a": "x"}', '{0.1,-2}', 'u1', 12345678901234.56789, NULL),
  ('t2', NULL, NULL, 'free', NULL, NULL, NULL, NULL, NULL, '{}', '[]', NULL, NULL, NULL, 't1');
INSERT INTO teams (xata_id, name, parent) SELECT 'many' || i, 'Team ' || i, 't1' FROM generate_series(1, 700) AS i;
UPDATE users SET team = 't1' WHERE xata_id = 'u1';`;

describeWith("postgresql", "a dump of a database with Postgres enabled", (bin) => {
  let postgres: TestPostgres;
  const dump = (name: string) => join(directory, name);
  beforeAll(async () => {
    postgres = await startPostgres(bin);
    const url = await postgres.createDatabase();
    const client = new pg.Client(url);
    await client.connect();
    await client.query(XATA_TABLES);
    await client.end();
    const guide = ["--no-acl", "--no-owner", "--no-table-access-method", "--no-privileges", "--schema=public", "-d", url];
    for (const [format, name] of [
      ["plain", "plain.sql"],
      ["tar", "export.tar"],
      ["custom", "custom.dump"],
      ["directory", "folder"],
    ] as const) {
      execFileSync(join(bin, "pg_dump"), [...guide, `--format=${format}`, "-f", dump(name)]);
    }
    execFileSync("tar", ["-xf", dump("export.tar"), "-C", directory, "restore.sql"]);
  });
  afterAll(() => postgres?.stop());

  test.each(["plain.sql", "export.tar", "custom.dump", "folder"])(
    "%s: tables, links and records come whole, in their dialect",
    async (name) => {
      const database = name.split(".")[0] as string;
      const run = await start([dump(name), `${database}:main`], { PATH: [bin, process.env.PATH].join(delimiter) }).ended;
      expect(run, run.stderr).toMatchObject({ code: 0 });
      expect(run.stdout).toContain(`${database}:main is there: 3 tables, 704 records, verified.`);
      for (const sentence of [
        "teams.day, a date, is kept as a datetime",
        "teams.exact, of PostgreSQL's type numeric, is kept as text",
        "users.id is called id_ here",
      ])
        expect(run.stdout).toContain(sentence);
      expect(await branches(database)).toEqual(["main"]);
      expect(
        (await records(`${database}:main`, "users")).map((user: Record<string, unknown>) => [user.xata_id, user.id_, user.name, user.team]),
      ).toEqual([
        ["u1", 1, "Ada", { xata_id: "t1" }],
        ["u2", 2, "tab\tand\nline \\ back", undefined],
      ]);
      expect((await server.get(`/db/${database}:main/tables/teams/data/t1`)).body).toMatchObject({
        xata_id: "t1",
        name: "One",
        email: "one@example.com",
        plan: "paid",
        size: 9007199254740991,
        ratio: 0.1,
        active: false,
        founded: "2020-01-02T03:04:05.678901Z",
        day: "1999-12-31T00:00:00.000Z",
        tags: ["a", "b c"],
        config: { a: "x", b: [1, null] },
        vec: [Math.fround(0.1), -2].map((element) => expect.closeTo(element, 6)),
        owner: { xata_id: "u1" },
        exact: "12345678901234.56789",
      });
      expect((await server.get(`/db/${database}:main/tables/teams/data/many700`)).body).toMatchObject({
        parent: { xata_id: "t1" },
        plan: "free",
        size: 5,
      });
      const { columns } = (await server.get(`/db/${database}:main/tables/teams/schema`)).body;
      expect(columns).toEqual(
        expect.arrayContaining([
          { name: "email", type: "email", unique: true },
          { name: "plan", type: "text", notNull: true, defaultValue: "free" },
          { name: "vec", type: "vector", vector: { dimension: 2 } },
          { name: "owner", type: "link", link: { table: "users" } },
        ]),
      );
      // Once more: it knows that it is done, and does nothing.
      expect(await start([dump(name), `${database}:main`], { PATH: [bin, process.env.PATH].join(delimiter) }).ended).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("completed and verified by an earlier run"),
      });
    },
  );

  test("one table of any of them can be imported by itself, and a table without records is not a success", async () => {
    await server.put("/db/single:main", {});
    await server.put("/db/single:main/tables/users", {
      columns: [
        { name: "name", type: "text" },
        { name: "id_", type: "int" },
      ],
    });
    await server.put("/db/single:main/tables/nothing", { columns: [{ name: "n", type: "int" }] });
    const importTable = (file: string, table: string, ...more: string[]): Promise<Run> =>
      run(["import", file, `single:main/${table}`, ...more], {}).ended;
    for (const more of [[], ["--format", "sql"]]) {
      expect(await importTable(dump("export.tar"), "users", "--skip-column", "team", ...more)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("2 records imported"),
      });
    }
    expect(await importTable(dump("export.tar"), "nothing")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("has no records for the table"),
    });
    expect(await importTable(dump("restore.sql"), "users")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("restore.sql of a tar dump"),
    });
  });

  const withPrograms = (env: Record<string, string> = {}) => ({ PATH: [bin, process.env.PATH].join(delimiter), ...env });

  test("is converted in a folder of its own: what others put into the temporary folder is neither read nor changed", async () => {
    const temporary = join(directory, "temporary");
    const [taken, victims] = [join(temporary, `lodestone-dumps-${process.getuid?.()}`), join(directory, "victims")];
    mkdirSync(taken, { recursive: true });
    mkdirSync(victims);
    const planted = "CREATE TABLE teams (xata_id text);\nCOPY public.teams (xata_id) FROM stdin;\nplanted\n\\.\n";
    const { size, mtimeMs } = statSync(dump("custom.dump"));
    const name = createHash("sha256")
      .update(`${dump("custom.dump")}\n${size}\n${mtimeMs}`)
      .digest("hex")
      .slice(0, 24);
    // Says where it writes, and who may read that.
    const programs = join(directory, "programs");
    mkdirSync(programs);
    writeFileSync(
      join(programs, "pg_restore"),
      `#!/bin/sh\nout=$(readlink /proc/$$/fd/1)\nstat -c '%a %F' "$(dirname "$out")" "$out" > ${join(directory, "modes")}\nexec ${join(bin, "pg_restore")} "$@"\n`,
      { mode: 0o755 },
    );
    for (const [i, plant] of [
      () => writeFileSync(join(taken, `${name}.sql`), planted),
      () => {
        writeFileSync(join(victims, "private"), planted, { mode: 0o600 });
        rmSync(taken, { recursive: true });
        symlinkSync(victims, taken);
        symlinkSync(join(victims, "private"), join(victims, `${name}.sql`));
      },
    ].entries()) {
      plant();
      const run = await start([dump("custom.dump"), `planted${i}:main`, "--state", join(directory, `planted${i}`)], {
        PATH: [programs, bin, process.env.PATH].join(delimiter),
        TMPDIR: temporary,
      }).ended;
      expect(run, run.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("3 tables, 704 records, verified.") });
      expect(readFileSync(join(taken, `${name}.sql`), "utf8")).toBe(planted);
      expect(readdirSync(temporary)).toEqual([basename(taken)]);
      expect(readFileSync(join(directory, "modes"), "utf8")).toMatch(/^700 directory\n600 regular (empty )?file\n$/);
    }
  });

  test("in a format that is converted, continues after an interruption, and leaves nothing behind", async () => {
    await server.put("/db/resumed:main", {});
    await server.put("/db/resumed:main/tables/teams", { columns: [{ name: "name", type: "text" }] });
    const temporary = join(directory, "temporary-resumed");
    mkdirSync(temporary);
    const skipped = ["email", "plan", "size", "ratio", "active", "founded", "day", "tags", "config", "vec", "owner", "exact", "parent"];
    const importTeams = async (...more: string[]): Promise<{ child: ChildProcess; ended: Promise<Run> }> =>
      run(["import", dump("custom.dump"), "resumed:main/teams", ...skipped.flatMap((name) => ["--skip-column", name]), ...more], {
        ...withPrograms({ TMPDIR: temporary }),
      });
    const first = await importTeams("--batch", "2");
    const stored = async () => (await server.post("/db/resumed:main/tables/teams/aggregate", {})).body.aggs.count;
    while ((await stored()) < 20) await new Promise((resolve) => setTimeout(resolve, 5));
    first.child.kill("SIGINT");
    expect(await first.ended).toMatchObject({ code: 130, stdout: expect.stringContaining("run the same command again") });
    expect(readdirSync(temporary)).toEqual([]);
    const sofar = await stored();
    expect(sofar).toBeLessThan(702);
    expect(await (await importTeams()).ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${702 - sofar} records imported`),
      stderr: expect.stringContaining(`Continuing after record ${sofar}.`),
    });
    expect(await stored()).toBe(702);
    expect(readdirSync(temporary)).toEqual([]);
  });

  test.each(["plain", "custom", "tar"])("%s that is not in UTF-8 is read as what it says it is, or refused", async (format) => {
    const url = await postgres.createDatabase();
    const client = new pg.Client(url);
    await client.connect();
    // In latin1 this text has the bytes of another one in UTF-8.
    await client.query("CREATE TABLE t (xata_id text, s text); INSERT INTO t VALUES ('a', E'caf\\u00c3\\u00a9')");
    await client.end();
    const make = (encoding: string): string => {
      const path = dump(`${encoding}.${format}`);
      execFileSync(join(bin, "pg_dump"), [`--encoding=${encoding}`, `--format=${format}`, "-d", url, "-f", path]);
      return path;
    };
    const migrated = (path: string, ...more: string[]) => start([path, `encoded-${format}:main`, ...more], withPrograms()).ended;
    const latin1 = make("LATIN1");
    if (format === "tar") {
      expect(await migrated(latin1)).toMatchObject({ code: 1, stderr: expect.stringContaining("pg_dump --encoding=UTF8") });
      return;
    }
    expect(await migrated(latin1, "--encoding", "windows-1252")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("the dump says itself that it is in latin1"),
    });
    expect(await migrated(make("LATIN9"))).toMatchObject({ code: 1, stderr: expect.stringContaining("PostgreSQL's encoding LATIN9") });
    const run = await migrated(latin1);
    expect(run, run.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("1 tables, 1 records, verified.") });
    expect(await records(`encoded-${format}:main`, "t")).toMatchObject([{ xata_id: "a", s: "caf\u00c3\u00a9" }]);
  });

  test("for what cannot be read, reports why, and makes no branch", async () => {
    const refused = async (file: string, message: string, env: Record<string, string> = {}) => {
      expect(await start([file, "refused:main"], env).ended).toMatchObject({
        code: 1,
        stdout: "",
        stderr: expect.stringContaining(message),
      });
    };
    execFileSync("sh", ["-c", `gzip -c plain.sql > packed.sql; head -c 3000 export.tar > cut.tar; cp custom.dump other.dump`], {
      cwd: directory,
    });
    await refused(dump("packed.sql"), "compressed with gzip");
    await refused(dump("cut.tar"), "cut off");
    await refused(dump("restore.sql"), "restore.sql of a tar dump");
    await refused(dump("other.dump"), "Install PostgreSQL's client programs", { PATH: "/nowhere" });
    writeFileSync(dump("empty.sql"), "-- nothing\n");
    await refused(dump("empty.sql"), "has no records of any table");
    expect((await server.get("/dbs/refused")).status).toBe(404);
  });
});

/** The export of the docs' sample, with the schema as the retired service's code generator wrote it. */
function classicFolder(name: string): string {
  const folder = join(directory, name);
  mkdirSync(folder);
  for (const file of ["authors.csv", "books.csv", "xata.ts"]) cpSync(join(FIXTURES, file), join(folder, file));
  return folder;
}

describe("a folder of CSV files and the generated schema", () => {
  test("in another encoding is refused with its place, and migrated as what it is when it is named", async () => {
    const folder = join(directory, "latin1");
    mkdirSync(folder);
    writeFileSync(join(folder, "schema.json"), JSON.stringify({ tables: [{ name: "t", columns: [{ name: "s", type: "string" }] }] }));
    writeFileSync(join(folder, "t.csv"), Buffer.from("id,s\na,x\nb,caf\u00e9 \u0080\n", "latin1"));
    expect(await migrate(folder, "latin1:main")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(`${join(folder, "t.csv")}, line 3, byte 14: 0xe9 is not text in UTF-8.`),
    });
    expect((await server.get("/dbs/latin1")).status).toBe(404);
    const run = await migrate(folder, "latin1:main", "--encoding", "windows-1252");
    expect(run, run.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("latin1:main is there: 1 tables, 2 records, verified."),
    });
    expect(await records("latin1:main", "t")).toMatchObject([
      { id: "a", s: "x" },
      { id: "b", s: "caf\u00e9 \u20ac" },
    ]);
  });

  test("is planned, migrated and verified; files that are left out are reported", async () => {
    const folder = classicFolder("classic");
    const plan = await migrate(folder, "classic:main", "--plan");
    expect(plan).toMatchObject({ code: 0 });
    expect(plan.stdout).toContain("authors: 5 columns");
    expect(plan.stdout).toContain("authors.portrait: File columns are not part of Lodestone.");
    expect((await server.get("/dbs/classic")).status).toBe(404);
    const run = await migrate(folder, "classic:main");
    expect(run, run.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("classic:main is there: 2 tables, 8 records, verified."),
    });
    const [tombs] = (await records("classic:main", "books")).filter(({ id }: { id: string }) => id === "rec_tombs");
    expect(tombs).toMatchObject({ author: { id: "rec_leguin" }, sequel_of: { id: "rec_wizard" }, details: { isbn: "978-0-689-20680-4" } });
  });

  test("is refused for an existing branch, and when its files differ from those it was begun with", async () => {
    const folder = classicFolder("again");
    await server.put("/db/again:main", {});
    expect(await migrate(folder, "again:main")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("The branch again:main exists already"),
    });
    await server.delete("/db/again:main");
    writeFileSync(
      join(folder, "books.csv"),
      `${readFileSync(join(folder, "books.csv"), "utf8")}rec_wizard,Twice\n`.replace(/rec_wizard,Twice\n$/, ""),
    );
    const other = await migrate(folder, "again:main");
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining("--restart") });
    expect(await migrate(folder, "again:main", "--restart")).toMatchObject({ code: 0 });
  });

  test("is an error if other records arrive than it has, and the branch does not appear", async () => {
    const folder = join(directory, "twice");
    mkdirSync(folder);
    writeFileSync(join(folder, "schema.json"), JSON.stringify({ tables: [{ name: "t", columns: [{ name: "n", type: "int" }] }] }));
    writeFileSync(join(folder, "t.csv"), "id,n\na,1\nb,2\na,3\n");
    expect(await migrate(folder, "twice:main")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("3 records in the source and 2 in the server"),
    });
    expect(await branches("twice")).toEqual(["main~migrating"]);
    writeFileSync(join(folder, "t.csv"), "id,n\na,1\nb,2\n");
    expect(await migrate(folder, "twice:main", "--restart")).toMatchObject({ code: 0 });
    expect(await branches("twice")).toEqual(["main"]);
  });

  test("in JSON Lines, with ids made here, dates of the insert and a table without a file", async () => {
    const folder = join(directory, "lines");
    mkdirSync(folder);
    const columns = [
      { name: "s", type: "string" },
      { name: "made", type: "datetime", defaultValue: "now" },
      { name: "n", type: "int", defaultValue: "7" },
    ];
    writeFileSync(
      join(folder, "schema.json"),
      JSON.stringify({
        schema: {
          tables: [
            { name: "notes", columns },
            { name: "bare", columns: [] },
          ],
        },
      }),
    );
    writeFileSync(join(folder, "notes.jsonl"), '{"s":"one"}\n{"s":"two","n":null}\n{"s":"three","n":3,"made":"2020-01-01T00:00:00Z"}\n');
    const run = await migrate(folder, "lines:main");
    expect(run, run.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("Table bare: no file has its records") });
    expect((await records("lines:main", "notes")).map(({ s, n }: { s: string; n?: number }) => [s, n])).toEqual([
      ["one", 7],
      ["two", undefined],
      ["three", 3],
    ]);
  });

  test.each(["SIGKILL", "SIGINT"] as const)("stopped by %s anywhere, it continues, and ends with every record once", async (signal) => {
    const folder = join(directory, `stopped-${signal}`);
    mkdirSync(folder);
    const columns = [
      { name: "n", type: "int" },
      { name: "next", type: "link", link: { table: "chain" } },
    ];
    writeFileSync(
      join(folder, "schema.json"),
      JSON.stringify({
        tables: [
          { name: "chain", columns },
          { name: "plain", columns: [{ name: "n", type: "int" }] },
        ],
      }),
    );
    writeFileSync(
      join(folder, "chain.csv"),
      `id,n,next\n${Array.from({ length: 600 }, (_, i) => `c${i},${i},c${(i + 1) % 600}`).join("\n")}\n`,
    );
    // Without ids: they are made on the way, and must be the same when it continues.
    writeFileSync(join(folder, "plain.csv"), `n\n${Array.from({ length: 600 }, (_, i) => i).join("\n")}\n`);
    const database = `stopped${signal}`;
    const target = `${database}:main`;
    // It is stopped each time one more step has left its mark: at a table's records, at its links, and before
    // the new name.
    let stops = 0;
    for (let run = 0; ; run++) {
      const { child, ended } = start([folder, target, "--batch", "20"]);
      const before = readState(folder);
      const watch = setInterval(() => {
        const now = readState(folder);
        if (now === before || child.killed || stops > 8) return;
        stops++;
        child.kill(signal);
      }, 2);
      const { code, stderr } = await ended;
      clearInterval(watch);
      if (code === 0) break;
      expect(run, stderr).toBeLessThan(20);
      expect((await server.get(`/dbs/${database}`)).status === 404 ? [] : await branches(database)).not.toContain("main");
    }
    expect(stops).toBeGreaterThan(1);
    expect(await branches(database)).toEqual(["main"]);
    const count = async (table: string) => (await server.post(`/db/${target}/tables/${table}/aggregate`, {})).body.aggs.count;
    expect([await count("chain"), await count("plain")]).toEqual([600, 600]);
    expect((await server.get(`/db/${target}/tables/chain/data/c599`)).body).toMatchObject({ n: 599, next: { id: "c0" } });
  });
});

/** The state and the journals of a migration, as one text that changes whenever it has made progress. */
function readState(folder: string): string {
  const at = join(folder, ".lodestone-migration");
  return ["state.json", "records-chain.json", "records-plain.json", "links-chain.json"]
    .map((name) => (existsSync(join(at, name)) ? readFileSync(join(at, name), "utf8") : ""))
    .join("\n");
}
