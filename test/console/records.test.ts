/** The spreadsheet and SQL, as a person uses them, on the real server. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const ROWS = 1_234;
const DATA = "/db/shop:main/tables/items/data";

describeWith("chromium", "tables in the console", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/shop:main");
    await server.put("/db/shop:main/tables/makers", { columns: [{ name: "name", type: "string" }] });
    await server.put("/db/shop:main/tables/items", {
      columns: [
        { name: "title", type: "string" },
        { name: "price", type: "int" },
        { name: "maker", type: "link", link: { table: "makers" } },
        { name: "look", type: "vector", vector: { dimension: 5 } },
      ],
    });
    await server.put("/db/shop:main/tables/makers/data/ada", { name: "Ada" });
    const records = Array.from({ length: ROWS }, (_, i) => ({
      id: `item-${String(i).padStart(4, "0")}`,
      title: i === 3 ? "<b>bold</b> & שלום" : `Title ${i}`,
      price: (i * 37) % 1000,
      maker: i === 0 ? "ada" : null,
      look: [i, 1, -2, 3, -4],
    }));
    for (const part of [records.slice(0, 1000), records.slice(1000)]) {
      const operations = part.map((record) => ({ insert: { table: "items", record } }));
      expect((await server.post("/db/shop:main/transaction", { operations })).status).toBe(200);
    }
  });

  const cell = (page: Page, id: string, column: number) =>
    page.locator(".grid-body .grid-row").filter({ hasText: id }).getByRole("gridcell").nth(column);
  const ids = async (page: Page): Promise<string[]> => {
    const shown = await page.locator(".grid-body .grid-row .cell:first-child bdi").allInnerTexts();
    return shown.slice(0, 3);
  };

  it("shows a table of any length, few rows of it in the page at a time, sorted and filtered by the server", async () => {
    const { page, expectAccessible, close } = await at.open("#/table/shop:main/items");
    await page.getByText("1,234 records read").waitFor();
    await expect.poll(() => page.getByRole("grid").getAttribute("aria-rowcount")).toBe(String(ROWS + 1));
    await expect.poll(() => cell(page, "item-0003", 1).innerText()).toContain("<b>bold</b> & שלום");
    await expectAccessible();
    // To the end, page after page.
    await expect
      .poll(async () => {
        await page.locator(".grid").evaluate((grid) => grid.scrollTo(0, grid.scrollHeight));
        return page.getByText("1,234 of 1,234 records read").count();
      })
      .toBe(1);
    await page.locator(".grid").evaluate((grid) => grid.scrollTo(0, grid.scrollHeight));
    await page.getByText("item-1233").waitFor();
    await expect.poll(() => page.locator(".grid-body .grid-row").count()).toBeLessThan(80);
    await page.getByRole("columnheader", { name: "price" }).getByRole("button").click();
    await page.getByRole("columnheader", { name: "price" }).getByRole("button").click();
    const { body } = await at.server.post("/db/shop:main/tables/items/query", { sort: { price: "desc" }, page: { size: 3 } });
    await page.locator(".grid").evaluate((grid) => grid.scrollTo(0, 0));
    await expect.poll(() => ids(page)).toEqual(body.records.map(({ id }: { id: string }) => id));
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByLabel("Filter", { exact: true }).fill('{"prize": 1}');
    await page.getByRole("button", { name: "Apply" }).click();
    await page.locator(".filter-bar .fault").filter({ hasText: "prize" }).waitFor();
    await page.getByLabel("Filter", { exact: true }).fill("");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByText("Add a filter").click();
    await page.getByLabel("Column", { exact: true }).selectOption("price");
    await page.getByLabel("Condition", { exact: true }).selectOption("$lt");
    await page.getByLabel("Value").fill("2");
    await page.getByRole("button", { name: "Add condition" }).click();
    await page.getByText("3 of 3 records read").waitFor();
    await close();
  });

  it("edits a cell, reports an error in it, shows what another page wrote meanwhile, and undoes the edit", async () => {
    const { page, close } = await at.open("#/table/shop:main/items");
    await cell(page, "item-0005", 2).dblclick();
    const editor = page.getByLabel("New value of price");
    await editor.fill("many");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator("#cell-fault").filter({ hasText: "price" }).waitFor();
    await expect.poll(() => editor.inputValue()).toBe("many");
    await editor.fill("77");
    await editor.press("Enter");
    await expect.poll(() => cell(page, "item-0005", 2).innerText()).toBe("77");
    expect((await at.server.get(`${DATA}/item-0005`)).body).toMatchObject({ price: 77, xata: { version: 1 } });
    // Another page writes the same record.
    await cell(page, "item-0006", 1).dblclick();
    await at.server.patch(`${DATA}/item-0006`, { title: "theirs" });
    await page.getByLabel("New value of title").fill("ours");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator("#cell-fault").filter({ hasText: "title is now theirs" }).waitFor();
    expect((await at.server.get(`${DATA}/item-0006`)).body.title).toBe("theirs");
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => cell(page, "item-0006", 1).innerText()).toBe("ours");
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(() => cell(page, "item-0006", 1).innerText()).toBe("theirs");
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(async () => (await at.server.get(`${DATA}/item-0005`)).body.price).toBe(185);
    // What was typed in one cell is saved when another is opened, and that cell opens again when it is refused.
    await cell(page, "item-0008", 1).dblclick();
    await page.getByLabel("New value of title").fill("typed");
    await cell(page, "item-0004", 1).dblclick();
    await expect.poll(() => page.getByLabel("New value of title").inputValue()).toBe("Title 4");
    await expect.poll(async () => (await at.server.get(`${DATA}/item-0008`)).body.title).toBe("typed");
    await cell(page, "item-0010", 2).dblclick();
    await editor.fill("many");
    await cell(page, "item-0002", 1).dblclick();
    await page.locator("#cell-fault").filter({ hasText: "price" }).waitFor();
    await expect.poll(() => editor.inputValue()).toBe("many");
    await editor.press("Escape");
    // Scrolled far out of view and back: what was typed is there.
    await cell(page, "item-0007", 1).dblclick();
    await page.getByLabel("New value of title").fill("half a wo");
    await expect
      .poll(async () => {
        await page.locator(".grid").evaluate((grid) => grid.scrollTo(0, 3_000));
        return page.getByText("item-0080").count();
      })
      .toBe(1);
    await page.locator(".grid").evaluate((grid) => grid.scrollTo(0, 0));
    await page.getByText("item-0001").waitFor();
    await expect.poll(() => page.getByLabel("New value of title").inputValue()).toBe("half a wo");
    await page.getByLabel("New value of title").press("Escape");
    // By the keyboard alone.
    await cell(page, "item-0000", 0).click();
    for (const key of ["ArrowDown", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    await page.getByLabel("New value of title").fill("by keys");
    await page.keyboard.press("Enter");
    await expect.poll(async () => (await at.server.get(`${DATA}/item-0001`)).body.title).toBe("by keys");
    await close();
  });

  it("inserts, deletes many as one, undoes it, and follows a link", async () => {
    const { page, expectAccessible, close } = await at.open("#/table/shop:main/items");
    await page.getByRole("button", { name: "New" }).click();
    const form = page.getByRole("form", { name: "New record" });
    await form.getByLabel("id", { exact: true }).fill("a-new-one");
    await form.getByLabel("look (vector)").fill("[1, 2]");
    await form.getByRole("button", { name: "Insert" }).click();
    await form.locator(".fault").filter({ hasText: "look" }).waitFor();
    await expectAccessible();
    await form.getByLabel("look (vector)").fill("[1, 2, 3, 4, 5]");
    await form.getByRole("button", { name: "Insert" }).click();
    // In its row, which moves the others: what is clicked next must not move.
    await page.getByLabel("Select a-new-one").waitFor();
    expect((await at.server.get(`${DATA}/a-new-one`)).body.look).toEqual([1, 2, 3, 4, 5]);
    await page.getByLabel("Select item-0000").check();
    await page.getByLabel("Select item-0002").check();
    await page.getByRole("button", { name: "Delete 2" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("deleted 2 records").waitFor();
    expect((await at.server.get(`${DATA}/item-0000`)).status).toBe(404);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("item-0000").waitFor();
    expect((await at.server.get(`${DATA}/item-0000?columns=*`)).body).toMatchObject({
      title: "Title 0",
      price: 0,
      maker: { id: "ada" },
      look: [0, 1, -2, 3, -4],
    });
    // A link is called by the title of its record, and leads to it.
    await cell(page, "item-0000", 3).getByRole("link", { name: "Ada" }).click();
    await page.getByRole("complementary", { name: "Record ada" }).getByRole("heading", { name: "Ada" }).waitFor();
    await page.getByText("1 of 1 records read").waitFor();
    await close();
  });

  it("runs SQL with parameters, marks where it is wrong, and keeps the statement", async () => {
    const { page, expectAccessible, close } = await at.open("#/sql/shop:main/items", { isRichText: true });
    const editor = page.getByRole("textbox", { name: "SQL statement" });
    await editor.fill('SELECT "id", "prize" FROM "items"');
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("alert").filter({ hasText: 'column "prize" does not exist' }).waitFor();
    await expect.poll(() => page.locator(".sql-editor .cm-lintRange-error").innerText()).toBe('"prize"');
    await expectAccessible();
    await editor.fill('SELECT "id", "price" FROM "items" WHERE "price" < $1 ORDER BY "price", "id"');
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator(".sql-controls .fault").waitFor();
    await page.getByLabel("Parameters").fill("[2]");
    await page.getByLabel("Parameters").blur();
    await editor.press("Control+Enter");
    await page.getByText("3 rows in").waitFor();
    await expect.poll(() => page.locator(".result-scroll tbody tr").count()).toBe(3);
    await page.getByLabel("Plot").selectOption("price");
    await page.getByRole("img", { name: "price against row: 3 values from 0 to 1" }).waitFor();
    await expectAccessible();
    // All of an answer is plotted.
    await editor.fill("SELECT n FROM generate_series(1, 500) AS n");
    await page.getByLabel("Parameters").fill("");
    await editor.press("Control+Enter");
    await page.getByText("500 rows in").waitFor();
    await page.getByLabel("Plot").selectOption("n");
    await page.getByRole("img", { name: "n against row: 500 values from 1 to 500" }).waitFor();
    await editor.fill('SELECT "id" FROM "items" WHERE "price" < $1');
    await page.getByLabel("Parameters").fill("[2]");
    await editor.press("Control+Enter");
    await page.getByText("3 rows in").waitFor();
    await page.reload();
    await expect.poll(() => editor.innerText()).toContain('WHERE "price" < $1');
    await close();
  });

  it("completes tables and columns as SQL has them, and brings back an earlier statement", async () => {
    const { page, close } = await at.open("#/sql/shop:main/items", { isRichText: true });
    const editor = page.getByRole("textbox", { name: "SQL statement" });
    const option = (name: string) => page.locator(".cm-tooltip-autocomplete li").filter({ hasText: new RegExp(`^${name}`) });
    const run = page.getByRole("button", { name: "Run" });
    await editor.fill("");
    await editor.pressSequentially("SELECT pri");
    await option("price").click();
    await editor.pressSequentially(" FROM mak");
    await option("makers").click();
    await expect.poll(() => editor.innerText()).toBe('SELECT "price" FROM makers');
    await editor.fill('SELECT "price" FROM items WHERE items.ti');
    await editor.press("Control+Space");
    await option("title").click();
    await expect.poll(() => editor.innerText()).toBe('SELECT "price" FROM items WHERE items."title"');
    await editor.pressSequentially(" = 'Title 9'");
    await run.click();
    await page.getByText("1 row in").waitFor();
    await expect.poll(() => page.locator(".result-scroll tbody td").innerText()).toBe("333");
    await editor.fill('SELECT "id" FROM "makers"');
    await run.click();
    await page.locator(".result-scroll tbody td", { hasText: "ada" }).waitFor();
    await page.getByLabel("Recent").selectOption({ label: 'SELECT "price" FROM items WHERE items."title" = \'Title 9\'' });
    await expect.poll(() => editor.innerText()).toContain("'Title 9'");
    await close();
  });
});
