/** The table as a spreadsheet: typing, copy and paste, ranges of rows, undo by keys, the id that stays in view. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const DATA = "/db/sheet:main/tables/items/data";
const ITEMS = "#/table/sheet:main/items";

describeWith("chromium", "a table as a spreadsheet", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/sheet:main");
    const columns = [
      { name: "title", type: "string" },
      { name: "price", type: "int" },
      { name: "done", type: "bool" },
      { name: "due", type: "datetime" },
      ...Array.from({ length: 8 }, (_, i) => ({ name: `more${i}`, type: "string" })),
    ];
    await server.put("/db/sheet:main/tables/items", { columns });
    const operations = Array.from({ length: 30 }, (_, i) => ({
      insert: { table: "items", record: { id: `i${String(i).padStart(2, "0")}`, title: `Title ${i}`, price: i } },
    }));
    expect((await server.post("/db/sheet:main/transaction", { operations })).status).toBe(200);
  });

  const cell = (page: Page, id: string, column: number) =>
    page.locator(".grid-body .grid-row").filter({ hasText: id }).getByRole("gridcell").nth(column);
  const titles = async (ids: readonly string[]) => Promise.all(ids.map(async (id) => (await at.server.get(`${DATA}/${id}`)).body.title));

  it("typing replaces a cell, Ctrl+Z brings it back, and the id stays in view", async () => {
    const { page, expectAccessible, close } = await at.open(ITEMS);
    await cell(page, "i03", 1).click();
    await page.keyboard.type("New");
    expect(await page.getByLabel("New value of title").inputValue()).toBe("New");
    await page.keyboard.press("Enter");
    await expect.poll(() => titles(["i03"])).toEqual(["New"]);
    await page.keyboard.press("Control+z");
    await expect.poll(() => titles(["i03"])).toEqual(["Title 3"]);
    const left = (await cell(page, "i03", 0).boundingBox())?.x;
    await page.locator(".grid").evaluate((grid) => grid.scrollTo(900, 0));
    await expect.poll(() => page.locator(".grid").evaluate((grid) => grid.scrollLeft)).toBeGreaterThan(200);
    expect((await cell(page, "i03", 0).boundingBox())?.x).toBe(left);
    await expectAccessible();
    await close();
  });

  it("loses no letter, however fast one types: the editor has the second key", async () => {
    const { page, close } = await at.open(ITEMS);
    // All keys come before the page is drawn again, which no keyboard does and a slow machine does.
    const typeAtOnce = (text: string) =>
      page.evaluate(async (keys) => {
        for (const key of keys) {
          const target = document.activeElement as HTMLElement;
          const goesOn = target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
          if (goesOn) document.execCommand("insertText", false, key);
          await Promise.resolve();
        }
      }, text);
    const editor = page.getByLabel("New value of title");
    await cell(page, "i12", 1).click();
    await typeAtOnce("Fast");
    expect(await editor.inputValue()).toBe("Fast");
    await cell(page, "i17", 1).click();
    await typeAtOnce("Next");
    await cell(page, "i17", 1).locator("textarea").waitFor();
    expect(await editor.inputValue()).toBe("Next");
    await expect.poll(() => titles(["i12"])).toEqual(["Fast"]);
    await page.keyboard.press("Enter");
    await expect.poll(() => titles(["i17"])).toEqual(["Next"]);
    await close();
  });

  it("one goes on typing while the server is slow: nothing is lost, Ctrl+Z is the last change, and what is refused opens again", async () => {
    const { page, expectAccessible, close } = await at.open(ITEMS);
    let answer = (): void => {};
    const isAnswered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route("**/tables/items/data/**", async (route) => {
      await isAnswered;
      await route.continue();
    });
    await cell(page, "i18", 1).click();
    for (const text of ["one", "two", "three"]) {
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
      await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("Control+z");
    // A second change of a record whose first is on its way.
    await cell(page, "i18", 2).click();
    await page.keyboard.type("181");
    await page.keyboard.press("Enter");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.type("many");
    await page.keyboard.press("Enter");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.type("20");
    expect(await cell(page, "i18", 1).innerText()).toBe("one");
    expect(await titles(["i18"])).toEqual(["Title 18"]);
    await expectAccessible();
    answer();
    await cell(page, "i19", 2).locator("#cell-fault").filter({ hasText: "price" }).waitFor();
    await page.keyboard.type("2");
    await page.keyboard.press("Enter");
    await expect.poll(async () => (await at.server.get(`${DATA}/i20`)).body.price).toBe(202);
    expect(await titles(["i18", "i19", "i20"])).toEqual(["one", "two", "Title 20"]);
    expect((await at.server.get(`${DATA}/i18`)).body.price).toBe(181);
    const refused = page.getByLabel("New value of price");
    expect(await refused.inputValue()).toBe("many");
    await refused.fill("191");
    await refused.press("Enter");
    await expect.poll(async () => (await at.server.get(`${DATA}/i19`)).body.price).toBe(191);
    await expect.poll(() => page.locator(".cell-editor").count()).toBe(0);
    await close();
  });

  it("copies rows and cells, and pastes a block as one transaction that can be undone", async () => {
    const { page, close } = await at.open(ITEMS);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    // Shift selects the rows between.
    await page.getByLabel("Select i02", { exact: true }).click();
    await page.getByLabel("Select i05", { exact: true }).click({ modifiers: ["Shift"] });
    await page.getByRole("button", { name: "Delete 4" }).waitFor();
    await cell(page, "i02", 1).click();
    await page.keyboard.press("Control+c");
    await expect
      .poll(async () => (await copied()).split("\n").map((line) => line.split("\t").slice(0, 3)))
      .toEqual([2, 3, 4, 5].map((i) => [`i0${i}`, `Title ${i}`, String(i)]));
    await page.evaluate(() => navigator.clipboard.writeText("a\t10\nb\t11\nc\tmany\n"));
    await cell(page, "i07", 1).click();
    await page.keyboard.press("Control+v");
    // Refused as a whole.
    await page.getByRole("alert").filter({ hasText: "price" }).waitFor();
    expect(await titles(["i07", "i08", "i09"])).toEqual(["Title 7", "Title 8", "Title 9"]);
    await page.evaluate(() => navigator.clipboard.writeText("a\t10\nb\t11\nc\t12\n"));
    await cell(page, "i07", 1).click();
    await page.keyboard.press("Control+v");
    await expect.poll(() => titles(["i07", "i08", "i09", "i10"])).toEqual(["a", "b", "c", "Title 10"]);
    expect((await at.server.get(`${DATA}/i09`)).body.price).toBe(12);
    await page.getByText("pasted into 3 records").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(() => titles(["i07", "i08", "i09"])).toEqual(["Title 7", "Title 8", "Title 9"]);
    await close();
  });

  const copied = (page: Page) => page.evaluate(() => navigator.clipboard.readText());
  const heads = async (page: Page) =>
    (await page.getByRole("columnheader").locator("bdi").allInnerTexts()).filter((name) => !name.startsWith("more"));
  const widthOf = async (page: Page, name: string) => (await page.getByRole("columnheader", { name }).boundingBox())!.width;

  it("a range of cells is chosen by Shift and a click or arrows, copied, and filled", async () => {
    const { page, expectAccessible, close } = await at.open(ITEMS);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const chosen = () => page.locator(".in-range").count();
    await cell(page, "i13", 1).click();
    await cell(page, "i15", 2).click({ modifiers: ["Shift"] });
    await expect.poll(chosen).toBe(6);
    expect(await page.evaluate(() => getSelection()?.toString())).toBe("");
    await expectAccessible();
    await page.keyboard.press("Control+c");
    await expect.poll(() => copied(page)).toBe("Title 13\t13\nTitle 14\t14\nTitle 15\t15");
    // The other way, by keys, from the cell with the focus.
    await cell(page, "i16", 2).click();
    await expect.poll(chosen).toBe(0);
    for (const key of ["ArrowUp", "ArrowLeft"]) await page.keyboard.press(`Shift+${key}`);
    await expect.poll(chosen).toBe(4);
    await page.keyboard.press("Control+c");
    await expect.poll(() => copied(page)).toBe("Title 15\t15\nTitle 16\t16");
    await page.keyboard.press("ArrowDown");
    await expect.poll(chosen).toBe(0);
    // One value fills a range; a row is repeated down.
    await page.evaluate(() => navigator.clipboard.writeText("same"));
    await cell(page, "i20", 1).click();
    for (let i = 0; i < 2; i++) await page.keyboard.press("Shift+ArrowDown");
    await expect.poll(chosen).toBe(3);
    await page.keyboard.press("Control+v");
    await expect.poll(() => titles(["i20", "i21", "i22", "i23"])).toEqual(["same", "same", "same", "Title 23"]);
    await page.getByText("pasted into 3 records").waitFor();
    await page.evaluate(() => navigator.clipboard.writeText("row\t7"));
    await cell(page, "i24", 1).click();
    await cell(page, "i25", 2).click({ modifiers: ["Shift"] });
    await expect.poll(chosen).toBe(4);
    await page.keyboard.press("Control+v");
    await page.getByText("pasted into 2 records").waitFor();
    expect(await titles(["i24", "i25", "i26"])).toEqual(["row", "row", "Title 26"]);
    expect((await at.server.get(`${DATA}/i25`)).body.price).toBe(7);
    await close();
  });

  it("the edge of a head is dragged for a width, the head for another place; by keys, too; the browser keeps both", async () => {
    const { page, expectAccessible, close } = await at.open(ITEMS);
    await page.getByText("30 of 30 records read").waitFor();
    expect(await heads(page)).toEqual(["id", "title", "price", "done", "due"]);
    const edge = (await page.getByRole("columnheader", { name: "title" }).locator(".edge").boundingBox())!;
    await page.mouse.move(edge.x + 4, edge.y + 20);
    await page.mouse.down();
    await page.mouse.move(edge.x + 104, edge.y + 20, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => widthOf(page, "title")).toBe(300);
    expect((await cell(page, "i01", 1).boundingBox())!.width).toBe(300);
    // Sorted by neither.
    await expect.poll(() => page.getByRole("columnheader", { name: "title" }).getAttribute("aria-sort")).toBe("none");
    const from = (await page.getByRole("columnheader", { name: "due" }).boundingBox())!;
    const to = (await page.getByRole("columnheader", { name: "title" }).boundingBox())!;
    await page.mouse.move(from.x + 20, from.y + 20);
    await page.mouse.down();
    await page.mouse.move(to.x + 10, to.y + 20, { steps: 5 });
    await page.locator(".drop-here").waitFor();
    await page.mouse.up();
    await expect.poll(() => heads(page)).toEqual(["id", "due", "title", "price", "done"]);
    await expect.poll(() => page.getByRole("columnheader", { name: "due" }).getAttribute("aria-sort")).toBe("none");
    await page.getByRole("columnheader", { name: "due" }).getByRole("button").focus();
    await page.keyboard.press("Control+Shift+ArrowRight");
    await expect.poll(() => heads(page)).toEqual(["id", "title", "due", "price", "done"]);
    await page.keyboard.press("Control+Shift+ArrowRight");
    await expect.poll(() => heads(page)).toEqual(["id", "title", "price", "due", "done"]);
    const before = await widthOf(page, "due");
    await page.keyboard.press("Shift+ArrowRight");
    await expect.poll(() => widthOf(page, "due")).toBe(before + 20);
    await expectAccessible();
    await page.reload();
    await page.getByText("30 of 30 records read").waitFor();
    expect(await heads(page)).toEqual(["id", "title", "price", "due", "done"]);
    expect(await widthOf(page, "title")).toBe(300);
    // A double click on the edge brings back the width that the type has.
    await page.getByRole("columnheader", { name: "title" }).locator(".edge").dblclick();
    await expect.poll(() => widthOf(page, "title")).toBe(200);
    await close();
  });

  it("a bool is a box to tick, and a time has a field for dates", async () => {
    const { page, expectAccessible, close } = await at.open(ITEMS);
    const box = page.getByRole("checkbox", { name: "done of i02" });
    await box.waitFor();
    expect(await box.evaluate((element: HTMLInputElement) => element.indeterminate)).toBe(true);
    await box.click();
    await page.getByText("changed done of i02").waitFor();
    expect((await at.server.get(`${DATA}/i02`)).body.done).toBe(true);
    await page.keyboard.press("Space");
    await expect.poll(async () => (await at.server.get(`${DATA}/i02`)).body.done).toBe(false);
    await cell(page, "i02", 4).dblclick();
    const field = page.getByLabel("New value of due");
    await field.fill("2026-11-25T10:30:05");
    await expectAccessible();
    await page.keyboard.press("Enter");
    await expect.poll(async () => (await at.server.get(`${DATA}/i02`)).body.due).toBe("2026-11-25T10:30:05.000Z");
    await cell(page, "i02", 4).dblclick();
    await expect.poll(() => field.inputValue()).toBe("2026-11-25T10:30:05");
    await field.fill("");
    await page.keyboard.press("Enter");
    await expect.poll(async () => (await at.server.get(`${DATA}/i02`)).body.due ?? null).toBe(null);
    await close();
  });

  it("a filter is a row of conditions, each of which can be taken away; what they cannot say is JSON", async () => {
    const { page, expectAccessible, close } = await at.open(ITEMS);
    await page.getByText("30 of 30 records read").waitFor();
    async function add(column: string, condition: string, value: string): Promise<void> {
      await page.getByText("Add a filter", { exact: true }).click();
      await page.getByLabel("Column", { exact: true }).selectOption(column);
      await page.getByLabel("Condition", { exact: true }).selectOption(condition);
      await page.getByLabel("Value").fill(value);
      await page.keyboard.press("Enter");
    }
    const conditions = page.getByRole("list", { name: "Conditions of the filter" }).getByRole("listitem");
    await add("price", "≥", "3");
    await page.getByText("price ≥ 3").waitFor();
    await add("price", "<", "6");
    await page.getByText("3 of 3 records read").waitFor();
    await expect.poll(() => conditions.allInnerTexts()).toEqual(["price ≥ 3", "price < 6"]);
    await expectAccessible();
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await expect
      .poll(() => page.getByLabel("Filter", { exact: true }).inputValue())
      .toBe('{"$all":[{"price":{"$ge":3}},{"price":{"$lt":6}}]}');
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByRole("button", { name: "Remove: price < 6" }).click();
    await page.getByText("27 of 27 records read").waitFor();
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByLabel("Filter", { exact: true }).fill('{"$any": {"price": 3, "title": "Title 4"}}');
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("2 of 2 records read").waitFor();
    // It stays JSON: as conditions it would say something else.
    await expect.poll(() => page.getByRole("button", { name: "JSON", exact: true }).isDisabled()).toBe(true);
    await page.reload();
    await page.getByText("2 of 2 records read").waitFor();
    await expect.poll(() => page.getByLabel("Filter", { exact: true }).inputValue()).toContain("$any");
    await close();
  });
});
