import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Maintenance } from "../../../src/records/engine/embedded/maintenance.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";

describe("maintenance of the embedded engine", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-maintenance-"));
  let engine: Engine;
  beforeAll(async () => {
    engine = await openEngine({ dataDir });
  });
  afterAll(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** One run, awaited to its end. */
  async function lookOnce(): Promise<void> {
    const maintenance = new Maintenance({
      waiting: 0,
      unitsRun: 1,
      isHeld: false,
      query: (text, values, options) => engine.query(text, values, options),
    });
    maintenance.look();
    await maintenance.finished();
    await maintenance.stop();
  }

  const walBytes = async (): Promise<number> =>
    (
      await engine.query<{ bytes: number }>(
        "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::float8 AS bytes FROM pg_control_checkpoint()",
      )
    ).rows[0]!.bytes;

  test("makes a checkpoint once there is much WAL, and not before", async () => {
    await engine.query("CHECKPOINT");
    await engine.query("CREATE TABLE wal (filler text)");
    await engine.query("ALTER TABLE wal ALTER filler SET STORAGE EXTERNAL");
    await engine.query("INSERT INTO wal SELECT repeat('x', 100000) FROM generate_series(1, 100)");
    await lookOnce();
    expect(await walBytes()).toBeGreaterThan(10_000_000);
    await engine.query("INSERT INTO wal SELECT repeat('x', 100000) FROM generate_series(1, 700)");
    await lookOnce();
    expect(await walBytes()).toBeLessThan(1_000_000);
  });

  test("vacuums a table whose rows were deleted, so that their space is reused", async () => {
    await engine.query("CREATE TABLE churn (id int4 PRIMARY KEY, filler text)");
    const sizes: number[] = [];
    for (let round = 0; round < 6; round++) {
      await engine.query("INSERT INTO churn SELECT n, repeat('x', 200) FROM generate_series(1, 5000) AS n");
      await engine.query("DELETE FROM churn");
      await lookOnce();
      sizes.push((await engine.query<{ size: number }>("SELECT pg_relation_size('churn')::int4 AS size")).rows[0]!.size);
    }
    expect(sizes[5]).toBeLessThanOrEqual(sizes[0]! * 2);
  });

  test("analyzes a table that has changed", async () => {
    await engine.query("CREATE TABLE fresh AS SELECT n FROM generate_series(1, 3000) AS n");
    await lookOnce();
    expect((await engine.query("SELECT reltuples FROM pg_class WHERE relname = 'fresh'")).rows).toEqual([{ reltuples: 3000 }]);
  });

  test("what is refused because the database is closed is no fault, and what fails before is one", async () => {
    const faults: unknown[] = [];
    let refuse: (error: Error) => void = () => {};
    const host = {
      waiting: 0,
      unitsRun: 1,
      isHeld: false,
      query: () => new Promise<never>((_, reject) => (refuse = reject)),
    };
    const watched = (): Maintenance => new Maintenance(host, { onFault: (fault) => faults.push(fault) });
    const open = watched();
    open.look();
    refuse(new Error("the disk is full"));
    await open.finished();
    expect(faults).toHaveLength(1);
    const closing = watched();
    closing.look();
    const stopped = closing.stop();
    refuse(new Error("the database is closed"));
    await stopped;
    expect(faults).toHaveLength(1);
  });
});
