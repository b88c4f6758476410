/** The SQL view beyond a statement and its rows: plots, answers to take along, saved statements, and a statement that is stopped. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const VIEW = "#/sql/shop:main/items";
const SALES = 'SELECT "title", "price", "sold" FROM "items" ORDER BY "id"';

describeWith("chromium", "the SQL view", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/shop:main");
    const columns = [
      { name: "title", type: "string" },
      { name: "price", type: "int" },
      { name: "sold", type: "datetime" },
    ];
    await server.put("/db/shop:main/tables/items", { columns });
    const records = [
      { id: "a", title: "=1+1", price: 30, sold: "2026-03-01T00:00:00Z" },
      { id: "b", title: 'two, "three"', price: -5, sold: "2026-01-01T00:00:00Z" },
      { id: "c", title: "last", sold: "2026-02-01T00:00:00Z" },
    ];
    const operations = records.map((record) => ({ insert: { table: "items", record } }));
    expect((await server.post("/db/shop:main/transaction", { operations })).status).toBe(200);
  });

  const editor = (page: Page) => page.getByRole("textbox", { name: "SQL statement" });
  async function run(page: Page, statement: string): Promise<void> {
    await editor(page).fill(statement);
    await editor(page).press("Control+Enter");
  }
  /** How much of the plot has the colour of what is plotted, and whether something stands where the numbers of the axis are. */
  const drawn = (page: Page): Promise<{ plotted: number; hasAxis: boolean }> =>
    page.locator(".answer-plot canvas").evaluate((canvas: HTMLCanvasElement) => {
      const hex = getComputedStyle(canvas).getPropertyValue("--accent").trim();
      const accent = [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16));
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      let plotted = 0;
      let hasAxis = false;
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3]! > 200 && accent.every((value, j) => Math.abs(data[i + j]! - value) < 3)) plotted++;
        if (data[i + 3]! > 0 && (i / 4) % canvas.width < 60) hasAxis = true;
      }
      return { plotted, hasAxis };
    });

  it("plots a column against another one, as bars, a line or points, with the axes' names", async () => {
    const { page, expectAccessible, close } = await at.open(VIEW, { isRichText: true });
    await run(page, SALES);
    await page.getByText("3 rows in").waitFor();
    const plot = page.getByLabel("Plot");
    // Only numbers can be plotted.
    await expect.poll(() => plot.getByRole("option").allTextContents()).toEqual(["nothing", "price"]);
    await plot.selectOption("price");
    await page.getByRole("img", { name: "price against row: 2 values from -5 to 30" }).waitFor();
    await page.getByText("1 row without a value to plot.").waitFor();
    await expect.poll(() => drawn(page)).toEqual({ plotted: expect.any(Number), hasAxis: true });
    for (const against of ["title", "sold"]) {
      await page.getByLabel("Against", { exact: true }).selectOption(against);
      await page.getByRole("img", { name: `price against ${against}: 2 values from -5 to 30` }).waitFor();
      for (const kind of ["line", "points", "bars"]) {
        await page.getByLabel("Drawn as").selectOption(kind);
        // A point has fewer pixels than a line, and a line fewer than bars.
        await expect.poll(async () => (await drawn(page)).plotted).toBeGreaterThan({ points: 10, line: 100, bars: 1_000 }[kind]!);
        expect((await drawn(page)).hasAxis).toBe(true);
      }
    }
    await expectAccessible();
    await close();
  });

  it("copies an answer, saves it as CSV, and says which answer is older than an error", async () => {
    const { page, expectAccessible, close } = await at.open(VIEW, { isRichText: true });
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await run(page, 'SELECT "title", "price" FROM "items" ORDER BY "id"');
    await page.getByText("3 rows in").waitFor();
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('title\tprice\n=1+1\t30\ntwo, "three"\t-5\nlast\t\n');
    const saved = async (name: string): Promise<string> => {
      await page.getByText("Export", { exact: true }).click();
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name, exact: true }).click();
      const path = await (await download).path();
      await page.keyboard.press("Escape");
      return readFileSync(path, "utf8");
    };
    expect(await saved("CSV")).toBe('title,price\r\n=1+1,30\r\n"two, ""three""",-5\r\nlast,\r\n');
    expect(await saved("CSV for spreadsheets")).toBe('title,price\r\n\'=1+1,30\r\n"two, ""three""",-5\r\nlast,\r\n');
    await page.getByLabel("Plot").selectOption("price");
    await run(page, 'SELECT "prize" FROM "items"');
    await page.getByRole("alert").filter({ hasText: "prize" }).waitFor();
    const old = page.getByRole("region", { name: "Earlier answer" });
    await old.getByText("Before the error: 3 rows in").waitFor();
    await expect.poll(() => old.locator("tbody tr").count()).toBe(3);
    await expectAccessible();
    await run(page, 'SELECT "id" FROM "items"');
    await page.getByRole("region", { name: "Answer", exact: true }).getByText("3 rows in").waitFor();
    await expect.poll(() => old.count()).toBe(0);
    await close();
  });

  it("keeps statements under a name, also when the browser is opened again", async () => {
    const { page, expectAccessible, close } = await at.open(VIEW, { isRichText: true });
    await editor(page).fill('SELECT "id" FROM "items" WHERE "price" > $1');
    await page.getByLabel("Parameters").fill("[7]");
    await page.getByText("Saved", { exact: true }).click();
    await page.getByRole("button", { name: "Save the statement" }).click();
    await page.locator(".fault").filter({ hasText: "Give it a name." }).waitFor();
    await page.getByLabel("Name", { exact: true }).fill("dear ones");
    await page.getByRole("button", { name: "Save the statement" }).click();
    await page.getByRole("list", { name: "Saved statements" }).getByRole("button", { name: "dear ones", exact: true }).waitFor();
    await expectAccessible();
    await page.evaluate(() => sessionStorage.clear());
    await page.goto(`${at.server.url}/console#/home`);
    await page.goto(`${at.server.url}/console${VIEW}`);
    await page.reload();
    await expect.poll(() => editor(page).innerText()).toContain("LIMIT 20");
    await page.getByText("Saved", { exact: true }).click();
    await page.getByRole("button", { name: "dear ones", exact: true }).click();
    await expect.poll(() => editor(page).innerText()).toContain('"price" > $1');
    await expect.poll(() => page.getByLabel("Parameters").inputValue()).toBe("[7]");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("1 row in").waitFor();
    await page.getByText("Saved", { exact: true }).click();
    await page.getByRole("button", { name: "Delete the saved statement dear ones" }).click();
    await page.getByRole("list", { name: "Saved statements" }).waitFor({ state: "detached" });
    await close();
  });

  it("a statement that takes long can be stopped, and another one run", async () => {
    const { page, close } = await at.open(VIEW, { isRichText: true });
    await page.route("**/db/shop:main/sql", () => {}); // no answer
    await run(page, SALES);
    const aborted = page.waitForEvent("requestfailed");
    await page.getByRole("button", { name: "Stop" }).click();
    await aborted;
    await page.getByRole("status").filter({ hasText: "Stopped." }).waitFor();
    await page.unroute("**/db/shop:main/sql");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("3 rows in").waitFor();
    await expect.poll(() => page.getByText("Stopped.").count()).toBe(0);
    await close();
  });

  it("Explain draws how a statement would be run, as a tree, and does not run it", async () => {
    const { page, expectAccessible, close } = await at.open(VIEW, { isRichText: true });
    const explain = page.getByRole("button", { name: "Explain" });
    const plan = page.getByRole("region", { name: "Plan" });
    await editor(page).fill(
      'SELECT a."title" FROM "items" a JOIN "items" b ON b."price" = a."price" WHERE a."price" > $1 ORDER BY a."title" LIMIT 2',
    );
    await page.getByLabel("Parameters").fill("[7]");
    await explain.click();
    await page.getByText("How the statement would be run. Nothing was changed.").waitFor();
    // A step is above those that it reads from.
    const inner = plan.locator("li li li").filter({ hasText: /Scan of items as [ab]/ });
    await inner.first().waitFor();
    expect(await inner.filter({ hasText: "(price > '7'::bigint)" }).count()).toBeGreaterThan(0);
    expect((await plan.locator("strong").allTextContents())[0]).toBe("Limit");
    expect(await plan.locator("li").first().innerText()).toMatch(/^Limit\s+\d+\s+rows, cost\s+\d/);
    await expectAccessible();
    // What is told apart from the steps is that which the address and the list of earlier statements hold.
    expect(await page.evaluate(() => decodeURIComponent(location.hash))).not.toContain("EXPLAIN");
    await page.getByLabel("Parameters").fill("");
    await editor(page).fill('DELETE FROM "items"');
    await explain.click();
    await plan.getByText("Delete", { exact: true }).waitFor();
    await plan.getByText("on items").first().waitFor();
    const { body } = await at.server.post("/db/shop:main/sql", { statement: 'SELECT count(*) AS n FROM "items"' });
    expect(body).toMatchObject({ records: [{ n: 3 }] });
    // The place of an error is that in the statement as it was typed.
    await editor(page).fill('SELECT "prize" FROM "items"');
    await explain.click();
    await page.getByRole("alert").filter({ hasText: "(at character 8)" }).waitFor();
    await page.getByText("Before the error: How the statement would be run.").waitFor();
    // One that was written by hand is drawn as well, and a statement may call its column as it likes.
    await run(page, `EXPLAIN (FORMAT JSON) SELECT 1`);
    await plan.getByText("Result", { exact: true }).waitFor();
    await run(page, `SELECT '[5]'::json AS "QUERY PLAN"`);
    await page.getByText("1 row in").waitFor();
    await close();
  });
});
