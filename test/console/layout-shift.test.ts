/** Nothing moves under the hand while a view is filled, however slowly its parts come. */
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const VIEWS: readonly { readonly hash: string; readonly ready: string; readonly width: number }[] = [
  { hash: "#/search/shop:main/items", ready: ".results li", width: 1440 },
  { hash: "#/search/shop:main/items", ready: ".results li", width: 1000 },
  { hash: "#/search/shop:main/items", ready: ".results li", width: 390 },
  { hash: "#/table/shop:main/items", ready: ".grid-body .grid-row", width: 1440 },
  { hash: "#/table/shop:main/items/i7", ready: ".neighbours li", width: 1440 },
  { hash: "#/table/shop:main/items/i7", ready: ".neighbours li", width: 1024 },
  { hash: "#/search/shop:main/items/i7", ready: ".neighbours li", width: 1024 },
  { hash: "#/table/shop:main/nothing", ready: ".grid-frame .notice", width: 1440 },
  { hash: "#/new/shop:main", ready: ".new-columns", width: 1440 },
  { hash: "#/sql/shop:main/items", ready: ".sql-editor", width: 1440 },
  { hash: "#/schema/shop:main/items", ready: ".schema-panel .column-line", width: 1440 },
  { hash: "#/server", ready: ".plot canvas", width: 1440 },
  { hash: "#/reference", ready: ".operation", width: 1440 },
];

describeWith("chromium", "a view that is opened", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/shop:main");
    const columns = [
      { name: "title", type: "string" },
      { name: "look", type: "vector", vector: { dimension: 3 } },
    ];
    for (const table of ["items", "nothing"]) await server.put(`/db/shop:main/tables/${table}`, { columns });
    const records = Array.from({ length: 40 }, (_, i) => ({ id: `i${i}`, title: `Title ${i}`, look: [i, 40 - i, i % 7] }));
    const operations = records.map((record) => ({ insert: { table: "items", record } }));
    expect((await server.post("/db/shop:main/transaction", { operations })).status).toBe(200);
  });

  it.each(VIEWS)("does not move while it is filled: $hash, $width", async ({ hash, ready, width }) => {
    const { page, untilQuiet, layoutShift, close } = await at.open(hash, { isRichText: true, width, isSlow: true });
    await page.locator(ready).first().waitFor();
    await untilQuiet();
    expect(await layoutShift()).toBeLessThanOrEqual(0.02);
    await close();
  });
});
