/** Dumps and CSV files of PostgreSQL: what is read is what they contain, whatever the texts. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openCsv } from "../../src/cli/import/csv-source.ts";
import { parseCopy } from "../../src/cli/import/dump/dump-file.ts";
import { decodeCell, openDump } from "../../src/cli/import/dump-source.ts";
import type { Source } from "../../src/cli/import/source.ts";
import { SourceFiles } from "../../src/cli/import/source-files.ts";
import { toRfc3339 } from "../../src/records/postgres-text.ts";
import type { ColumnSchema } from "../../src/records/schema.ts";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { runs } from "../support/random-runs.ts";
import { describeWith } from "../support/requirements.ts";

const COLUMNS: readonly ColumnSchema[] = [
  { name: "plain", type: "text" },
  { name: "list", type: "multiple" },
  { name: "flag", type: "bool" },
  { name: "whole", type: "int" },
  { name: "real", type: "float" },
  { name: "time", type: "datetime" },
  { name: "data", type: "json" },
  { name: "vector", type: "vector", vector: { dimension: 2 } },
];

const files = (): SourceFiles => new SourceFiles(undefined, new AbortController().signal);

async function read(source: Source): Promise<unknown[]> {
  const records: unknown[] = [];
  for await (const { record } of source.rows(source.start, COLUMNS)) records.push(record);
  return records;
}

describe("PostgreSQL's texts", () => {
  test.each([
    ["2020-01-02 03:04:05+00", "2020-01-02T03:04:05+00:00"],
    ["2020-01-02 03:04:05.678901-08", "2020-01-02T03:04:05.678901-08:00"],
    ["2020-01-02 03:04:05+05:30", "2020-01-02T03:04:05+05:30"],
    ["infinity", undefined],
    ["2020-01-02 03:04:05", "2020-01-02T03:04:05Z"],
    ["2020-01-02", "2020-01-02T00:00:00Z"],
    ["2020-01-02 03:04:05 PST", undefined],
    ["0044-03-15 00:00:00+00 BC", undefined],
  ])("the timestamp %j", (text, iso) => {
    expect(toRfc3339(text)).toBe(iso);
  });

  test.each([
    ["\\N", null],
    ["", ""],
    ["a\\tb\\nc\\\\d\\\\N", "a\tb\nc\\d\\N"],
    ["\\.", "."],
  ])("the cell %j", (cell, value) => {
    expect(decodeCell(cell)).toBe(value);
  });

  test.each([
    ["COPY public.teams (id, name) FROM stdin;", { table: "teams", columns: ["id", "name"] }],
    ['COPY "my schema"."odd ""table""" ("a, b", "c)") FROM stdin;', { table: 'odd "table"', columns: ["a, b", "c)"] }],
    ["COPY teams (id) FROM stdin;", { table: "teams", columns: ["id"] }],
    ["SELECT 'COPY public.teams (id) FROM stdin;'", undefined],
  ])("the line %j", (line, copy) => {
    expect(parseCopy(line)).toEqual(copy);
  });
});

describe("a dump", () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "lodestone-dump-"));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const write = (text: string): string => {
    const path = join(directory, "dump.sql");
    writeFileSync(path, text);
    return path;
  };

  test("the right table is found, rows that look like statements are rows, and metadata is left out", async () => {
    const path = write(
      "COPY public.other (xata_id, plain) FROM stdin;\nx\tCOPY public.wanted (id) FROM stdin;\nCOPY public.wanted (id) FROM stdin;\t1\n\\.\n" +
        "COPY public.wanted (xata_id, xata_version, xata_createdat, xata_updatedat, plain) FROM stdin;\na\t3\tz\tz\tone\nb\t0\tz\tz\t\\N\n\\.\nSELECT 1;\n",
    );
    expect(await read(await openDump(path, "wanted", files()))).toEqual([
      { id: "a", plain: "one" },
      { id: "b", plain: null },
    ]);
  });

  test("reading continues from any row", async () => {
    const path = write("COPY t (id, plain) FROM stdin;\n1\tä\n2\tb\n3\tc\n\\.\n");
    const source = await openDump(path, "t", files());
    const places = [];
    for await (const { next } of source.rows(source.start, COLUMNS)) places.push(next);
    const rest: unknown[] = [];
    for await (const { record, place } of source.rows(places[0]!, COLUMNS)) rest.push([place, record]);
    expect(rest).toEqual([
      ["line 3", { id: "2", plain: "b" }],
      ["line 4", { id: "3", plain: "c" }],
    ]);
  });

  test.each([
    ["COPY a (id) FROM stdin;\n1\n\\.\n", 'no records of a table "wanted"; it has those of a'],
    ["INSERT INTO wanted VALUES (1);\n", "without --inserts"],
    ["hello\n", "no records of any table: was it made by pg_dump"],
  ])("%j is refused", async (text, message) => {
    await expect(openDump(write(text), "wanted", files())).rejects.toThrow(message);
  });

  test.each([
    ["1\n2\t3\n\\.\n", "line 2: has 1 values; the table has 2 columns"],
    ["1\t{}\n", "cut off"],
    ["1\t{a,{b}}\n\\.\n", "line 2: list: expected an array of texts"],
  ])("the rows %j are refused with their place", async (rows, message) => {
    const source = await openDump(write(`COPY wanted (id, list) FROM stdin;\n${rows}`), "wanted", files());
    await expect(read(source)).rejects.toThrow(message);
  });
});

describeWith("postgresql", "What PostgreSQL itself dumps", (bin) => {
  let server: TestPostgres;
  let directory: string;
  beforeAll(async () => {
    server = await startPostgres(bin);
    directory = mkdtempSync(join(tmpdir(), "lodestone-dump-"));
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test("is read back as it was, from pg_dump and from psql's \\copy, whatever the values", async () => {
    const url = await server.createDatabase();
    const client = new pg.Client(url);
    await client.connect();
    await client.query(
      "CREATE TABLE t (xata_id text, plain text, list text[], flag bool, whole int8, real float8, time timestamptz, data jsonb, vector real[])",
    );
    const text = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 12 }),
      fc.string({ unit: fc.constantFrom("\\", '"', "'", ",", "{", "}", "\t", "\n", "\r", ".", "N", " ", "\\N", "NULL"), maxLength: 8 }),
    );
    const clean = text.map((value) => value.replaceAll("\0", ""));
    const rows = fc.sample(
      fc.record({
        plain: fc.option(clean),
        list: fc.option(fc.array(clean, { maxLength: 4 })),
        flag: fc.option(fc.boolean()),
        whole: fc.option(fc.maxSafeInteger()),
        real: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)),
        time: fc.option(fc.date({ min: new Date("0001-01-01T00:00:00Z"), max: new Date("9999-12-31T00:00:00Z"), noInvalidDate: true })),
        data: fc.option(fc.dictionary(clean, fc.oneof(clean, fc.integer(), fc.boolean()), { maxKeys: 3, noNullPrototype: true })),
        vector: fc.option(fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 2, maxLength: 2 })),
      }),
      { numRuns: runs(300) },
    );
    for (const [i, row] of rows.entries()) {
      const { plain, list, flag, whole, real, time, data, vector } = row;
      await client.query("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", [
        String(i).padStart(4, "0"),
        plain,
        list,
        flag,
        whole,
        real,
        time?.toISOString(),
        data === null ? null : JSON.stringify(data),
        vector,
      ]);
    }
    await client.end();
    const dump = join(directory, "dump.sql");
    const csv = join(directory, "t.csv");
    execFileSync(join(bin, "pg_dump"), ["-d", url, "-f", dump]);
    execFileSync(join(bin, "psql"), ["-d", url, "-q", "-c", `\\copy (SELECT * FROM t) TO '${csv}' WITH (FORMAT csv, HEADER)`]);

    const expected = rows.map((row, i) => ({ id: String(i).padStart(4, "0"), ...row }));
    // jsonb keeps the value, not the text. float4 is written with as many digits as it takes to read the same
    // float4 back.
    const comparable = (record: Record<string, unknown>): Record<string, unknown> => ({
      ...record,
      time: record.time === null ? null : new Date(record.time as string).getTime(),
      data: typeof record.data === "string" ? JSON.parse(record.data) : record.data,
      vector: (record.vector as number[] | null)?.map((element) => Math.fround(element) + 0) ?? null,
    });
    // A table has no order: a short row may lie on an earlier page.
    const inOrder = async (source: Parameters<typeof read>[0]) =>
      (await read(source))
        .map((record) => comparable(record as Record<string, unknown>))
        .toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1));
    const want = expected.map((row) => comparable({ ...row, time: row.time === null ? null : row.time.toISOString() }));
    expect(await inOrder(await openDump(dump, "t", files()))).toEqual(want);
    expect(await inOrder(await openCsv(csv, files()))).toEqual(want);
  });
});
