/**
 * A statement that never ends, and a way to wait until it runs. Some tests end or outlive such a statement,
 * and must not do so before it has begun.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pgDataPath } from "../../src/records/engine/embedded/data-directory.ts";
import { until } from "./patience.ts";

/** Its rows are kept, first in memory and then in a temporary file. */
export const ENDLESS = "SELECT count(*) FROM generate_series(1, 1e12)";

/**
 * Waits until `ENDLESS` runs on the embedded engine, that is, until its temporary file exists. PostgreSQL
 * removes the file when the statement ends.
 */
export async function untilEndlessRuns(dataDir: string): Promise<void> {
  const folder = join(pgDataPath(dataDir), "base", "pgsql_tmp");
  await until("the endless statement has a temporary file", () => existsSync(folder) && readdirSync(folder).length > 0, 5);
}
