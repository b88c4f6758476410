import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";

const SYSTEM_IDENTIFIER_AT_IN_LOG = 24;
const LOG_FILE_BYTES = 16 * 2 ** 20;
const BLOCK_BYTES = 512;

let root: string;
let engines: Engine[];
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "lodestone-pristine-"));
  engines = [await openEngine({ dataDir: join(root, "0") }), await openEngine({ dataDir: join(root, "1") })];
});
afterAll(async () => {
  for (const engine of engines) await engine.close();
  rmSync(root, { recursive: true, force: true });
});

const rowOf = async (engine: Engine | undefined, text: string): Promise<Record<string, unknown> | undefined> =>
  (await engine!.query<Record<string, unknown>>(text)).rows[0];

it("every new database has a system identifier of its own, in its control file and in its log", async () => {
  const identifiers = await Promise.all(
    engines.map(async (engine) => String((await rowOf(engine, "SELECT system_identifier::text AS id FROM pg_control_system()"))?.id)),
  );
  expect(new Set(identifiers).size).toBe(2);
  const inLogs = ["0", "1"].map((name) => {
    const folder = join(root, name, "postgres", "pg_wal");
    const files = readdirSync(folder).filter((file) => /^[0-9A-F]{24}$/.test(file));
    expect(files).toHaveLength(1);
    const path = join(folder, files[0]!);
    // A log with holes could find the disk full in the middle of a commit.
    expect(statSync(path)).toMatchObject({
      size: LOG_FILE_BYTES,
      blocks: expect.toSatisfy((count) => count * BLOCK_BYTES >= LOG_FILE_BYTES),
    });
    return String(readFileSync(path).readBigUInt64LE(SYSTEM_IDENTIFIER_AT_IN_LOG));
  });
  expect(inLogs).toEqual(identifiers);
});

it("text, time and numbers do not depend on the machine that built it", async () => {
  expect(
    await rowOf(
      engines[0],
      `SELECT current_setting('server_encoding') AS encoding, current_setting('TimeZone') AS zone, current_setting('lc_numeric') AS numbers,
        datcollate AS collation, datlocprovider AS provider, (SELECT array_agg(datname::text) FROM pg_database) AS databases
        FROM pg_database WHERE datname = 'postgres'`,
    ),
  ).toMatchObject({ encoding: "UTF8", zone: "UTC", numbers: "C", databases: ["postgres"] });
});

it("users' roles may neither connect, nor make temporary tables, nor use the schema public", async () => {
  expect(
    await rowOf(
      engines[0],
      `SELECT has_database_privilege('public', 'postgres', 'CONNECT, TEMPORARY, CREATE') AS database,
        has_schema_privilege('public', 'public', 'USAGE, CREATE') AS schema`,
    ),
  ).toEqual({ database: false, schema: false });
});
