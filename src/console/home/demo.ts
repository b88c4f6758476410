/**
 * Loads the demo data through the public API, as `lodestone demo` does. The colours themselves are fetched on
 * demand.
 */
import { ApiError, call } from "../api/client.ts";
import { branchPath, type Place, tablePath } from "../api/paths.ts";

export const DEMO_PLACE: Place = { database: "demo", branch: "main" };

/** Can be repeated: existing tables are left, and a record whose id exists is replaced. */
export async function loadDemo(): Promise<void> {
  const { DEMO_COLUMNS, DEMO_TABLE, demoColors } = await import("../../cli/demo-colors.ts");
  await unlessThere(call("PUT", branchPath(DEMO_PLACE), {}));
  await unlessThere(call("PUT", tablePath(DEMO_PLACE, DEMO_TABLE), { columns: DEMO_COLUMNS }));
  const operations = demoColors().map((record) => ({ insert: { table: DEMO_TABLE, record } }));
  await call("POST", `${branchPath(DEMO_PLACE)}/transaction`, { operations });
}

async function unlessThere(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 422)) throw error;
  }
}
