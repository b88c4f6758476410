import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openEngine } from "../../../src/records/engine/open-engine.ts";

const root = mkdtempSync(join(tmpdir(), "lodestone-backup-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test("a backup taken while transactions run is a database of its own, with whole transactions and everything acknowledged before it began", async () => {
  const engine = await openEngine({ dataDir: join(root, "data") });
  await engine.query("CREATE TABLE pairs (n int4, half text, filler text)");
  let acknowledged = 0;
  let stop = false;
  const writer = (async () => {
    for (let n = 1; !stop; n++) {
      await engine.transaction(async (connection) => {
        await connection.query("INSERT INTO pairs VALUES ($1, 'a', repeat('x', 2000))", [n]);
        await connection.query("INSERT INTO pairs VALUES ($1, 'b', repeat('x', 2000))", [n]);
      });
      acknowledged = n;
    }
  })();
  await expect.poll(() => acknowledged).toBeGreaterThan(5);
  const before = acknowledged;
  const backup = join(root, "backup");
  await engine.backup(backup);
  const during = acknowledged;
  stop = true;
  await writer;
  // It did not stop the writer.
  expect(during).toBeGreaterThan(before);
  await expect(engine.backup(backup)).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining("exists already") });
  await engine.close();

  const copy = await openEngine({ dataDir: backup });
  const { rows } = await copy.query<{ n: number; halves: string }>(
    "SELECT n, string_agg(half, '' ORDER BY half) AS halves FROM pairs GROUP BY n ORDER BY n",
  );
  expect(rows.filter(({ halves }) => halves !== "ab")).toEqual([]);
  expect(rows.length).toBeGreaterThanOrEqual(before);
  expect(rows.map(({ n }) => n)).toEqual(Array.from({ length: rows.length }, (_, i) => i + 1));
  await copy.query("INSERT INTO pairs VALUES (0, 'new', '')");
  await copy.close();
  expect(existsSync(join(backup, "postgres", "backup_label"))).toBe(false);
});
