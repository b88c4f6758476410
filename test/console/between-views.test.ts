/** Going from view to view: addresses that lead nowhere, Back, what was typed, what can be undone, menus, an empty server. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const ITEMS = "#/table/shop:main/items";
const LINES = "one\ntwo\nthree";

describeWith("chromium", "the console, from view to view", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/shop:main");
    await server.put("/db/shop:main/tables/items", {
      columns: [
        { name: "title", type: "string" },
        { name: "note", type: "text" },
      ],
    });
    await server.put("/db/shop:main/tables/makers", { columns: [{ name: "name", type: "string" }] });
    const operations = Array.from({ length: 60 }, (_, i) => ({
      insert: { table: "items", record: { id: `i${String(i).padStart(2, "0")}`, title: `Title ${i}`, note: LINES } },
    }));
    expect((await server.post("/db/shop:main/transaction", { operations })).status).toBe(200);
  });

  const cell = (page: Page, id: string, column: number) =>
    page.locator(".grid-body .grid-row").filter({ hasText: id }).getByRole("gridcell").nth(column);
  const view = (page: Page, name: string) => page.getByRole("navigation").getByRole("link", { name }).click();

  it("Back leads to where one was, past addresses that the page has completed", async () => {
    const { page, close } = await at.open("#/home");
    await page.getByRole("link", { name: "items" }).waitFor();
    // Without a database, a branch and a table: the page adds all three.
    await page.evaluate(() => {
      location.hash = "#/table";
    });
    await page.reload();
    await page.getByText("60 of 60 records read").waitFor();
    expect(new URL(page.url()).hash).toBe(ITEMS);
    await page.goBack();
    await page.getByRole("link", { name: "items" }).waitFor();
    expect(new URL(page.url()).hash).toBe("#/home");
    await close();
  });

  it("says that a table or a record of the address does not exist, and opens no other", async () => {
    const { page, expectAccessible, close } = await at.open("#/table/shop:main/itmes");
    await page.getByText("There is no table itmes in shop:main").waitFor();
    expect(new URL(page.url()).hash).toBe("#/table/shop:main/itmes");
    await expectAccessible();
    await page.getByRole("main").getByRole("link", { name: "items" }).click();
    await page.getByText("60 of 60 records read").waitFor();
    await page.evaluate(() => {
      location.hash = "#/table/shop:main/items/nobody";
    });
    const card = page.getByRole("complementary", { name: "Record nobody" });
    await card.getByText("There is no record nobody in this table.").waitFor();
    await expectAccessible();
    await card.getByRole("button", { name: "Close the record" }).click();
    await card.waitFor({ state: "detached" });
    expect(new URL(page.url()).hash).toBe(ITEMS);
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByLabel("Filter", { exact: true }).fill('{"title": "none"}');
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("No record matches the filter.").waitFor();
    await page.getByRole("button", { name: "Clear the filter" }).click();
    await page.getByText("60 of 60 records read").waitFor();
    await close();
  });

  it("asks before it deletes; what was typed and what can be undone is there when one comes back", async () => {
    const { page, expectAccessible, close } = await at.open(ITEMS);
    await page.getByLabel("Select i01").check();
    await page.getByLabel("Select i02").check();
    await page.getByRole("button", { name: "Delete 2" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("2 records of the table items will be deleted.").waitFor();
    await expectAccessible();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Delete 2" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("deleted 2 records").waitFor();
    expect((await at.server.get("/db/shop:main/tables/items/data/i01")).status).toBe(404);
    await page.getByRole("button", { name: "New" }).click();
    await page.getByRole("form", { name: "New record" }).getByLabel("title").fill("half a rec");
    await cell(page, "i05", 1).dblclick();
    await page.getByLabel("New value of title").fill("half a wo");
    await view(page, "Search");
    await page.getByLabel("Words", { exact: true }).fill("title");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.locator(".results li").first().waitFor();
    await view(page, "Table");
    await expect.poll(() => page.getByLabel("New value of title").inputValue()).toBe("half a wo");
    await expect.poll(() => page.getByRole("form", { name: "New record" }).getByLabel("title").inputValue()).toBe("half a rec");
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(async () => (await at.server.get("/db/shop:main/tables/items/data/i01")).status).toBe(200);
    // A change that was given up is gone.
    await page.getByLabel("New value of title").press("Escape");
    await cell(page, "i05", 1).dblclick();
    await expect.poll(() => page.getByLabel("New value of title").inputValue()).toBe("Title 5");
    await view(page, "Search");
    await expect.poll(() => page.getByLabel("Words", { exact: true }).inputValue()).toBe("title");
    await expect.poll(() => page.locator(".results li").count()).toBe(10);
    await close();
  });

  it("a search that was left before it was answered is made again when one comes back", async () => {
    const { page, close } = await at.open("#/search/shop:main/items");
    const path = "**/tables/items/search";
    await page.route(path, () => {}); // no answer
    await page.getByLabel("Words", { exact: true }).fill("title");
    const asked = page.waitForRequest(path);
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await asked;
    await view(page, "Table");
    await page.getByText("60 of 60 records read").waitFor();
    await page.unroute(path);
    await view(page, "Search");
    await expect.poll(() => page.locator(".results li").count()).toBe(10);
    await close();
  });

  it("menus close on Escape, by a click elsewhere, and when another opens", async () => {
    const { page, close } = await at.open(ITEMS);
    const open = () => page.locator("details.builder[open] summary").allInnerTexts();
    await page.getByText("Columns", { exact: true }).click();
    expect(await open()).toEqual(["Columns"]);
    await page.getByText("Export", { exact: true }).click();
    await expect.poll(open).toEqual(["Export"]);
    await page.getByRole("button", { name: "JSON Lines" }).focus();
    await page.keyboard.press("Escape");
    await expect.poll(open).toEqual([]);
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Export");
    await page.getByText("Add a filter", { exact: true }).click();
    // Not below the menu.
    await cell(page, "i11", 2).click();
    await expect.poll(open).toEqual([]);
    await close();
  });

  it("a cell's editor is in view as a whole, and the grid can be reached by Tab wherever it is scrolled to", async () => {
    const { page, close } = await at.open(ITEMS, { width: 900, height: 600 });
    await page.getByText("60 of 60 records read").waitFor();
    const editor = page.locator(".cell-editor");
    const grid = (await page.locator(".grid").boundingBox())!;
    const expectInView = async (): Promise<void> => {
      const box = (await editor.boundingBox())!;
      expect(box.x).toBeGreaterThanOrEqual(grid.x);
      expect(box.x + box.width).toBeLessThanOrEqual(grid.x + grid.width);
      expect(box.y + box.height).toBeLessThanOrEqual(grid.y + grid.height);
    };
    await cell(page, "i02", 2).dblclick();
    await expectInView();
    expect(await page.locator(".grid").evaluate((element) => element.scrollLeft)).toBe(0);
    // Of a text of three lines, all three.
    const note = page.getByLabel("New value of note");
    expect(await note.evaluate((area: HTMLTextAreaElement) => area.scrollHeight - area.clientHeight)).toBeLessThanOrEqual(1);
    // Escape closes it from its buttons as well.
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Save");
    await page.keyboard.press("Escape");
    await editor.waitFor({ state: "detached" });
    await page.locator(".grid").evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await cell(page, "i59", 2).dblclick();
    await expectInView();
    await page.keyboard.press("Escape");
    await page.locator(".grid").evaluate((element) => element.scrollTo(0, 0));
    await cell(page, "i00", 0).waitFor();
    await page.getByRole("columnheader", { name: "note" }).getByRole("button").focus();
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("gridcell");
    await close();
  });

  it("a file that is dropped on a table is imported into it, or becomes a table of its own", async () => {
    const { page, close } = await at.open("#/table/shop:main/makers");
    const drop = () =>
      page.evaluate(() => {
        const data = new DataTransfer();
        data.items.add(new File(["id;name\nada;Ada, Countess\n"], "makers.csv", { type: "text/csv" }));
        const target = document.querySelector("header") as HTMLElement;
        const over = new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true });
        target.dispatchEvent(over);
        target.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        return over.defaultPrevented;
      });
    await page.locator(".grid").waitFor();
    expect(await drop()).toBe(true);
    // Its columns are separated by semicolons.
    await page.getByRole("region", { name: "Import" }).getByRole("button", { name: "Import" }).click();
    await expect.poll(async () => (await at.server.get("/db/shop:main/tables/makers/data/ada")).body.name).toBe("Ada, Countess");
    await page.getByRole("region", { name: "Import" }).getByRole("button", { name: "Close" }).click();
    await drop();
    await page.getByRole("button", { name: "Make it a new table" }).click();
    await expect.poll(() => page.getByRole("form", { name: "New table" }).getByLabel("Name of the table").inputValue()).toBe("makers_2");
    await close();
  });

  it("a view that is opened while the server is away is there when it is back", async () => {
    const { page, close } = await at.open(ITEMS);
    await page.getByText("60 of 60 records read").waitFor();
    const { port } = at.server;
    await at.server.end("SIGKILL");
    await page.evaluate(() => {
      location.hash = "#/schema/shop:main/items";
    });
    await page.getByText("The server is not responding").waitFor();
    await at.server.start(["--port", String(port)]);
    await page.getByRole("region", { name: "Table items" }).getByText("60 records").waitFor();
    await close();
  });
});

describeWith("chromium", "the console of an empty server", (executablePath) => {
  const at = serveConsole(executablePath);

  it("says in every view that there is no database yet, and where one is made", async () => {
    for (const hash of ["#/search", "#/table", "#/sql"]) {
      const { page, expectAccessible, close } = await at.open(hash);
      await page.getByText("There is no database yet.").waitFor();
      await expectAccessible();
      await page.getByRole("main").getByRole("link", { name: "Schema" }).click();
      await page.getByRole("region", { name: "New database" }).waitFor();
      await close();
    }
  });
});
