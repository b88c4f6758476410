/** The address is the state: Back, a reload and a link that is passed on bring back what was seen. And a record's card, and its title. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const DATA = "/db/shop:main/tables/books/data";

describeWith("chromium", "addresses in the console", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/shop:main");
    await server.put("/db/shop:main/tables/authors", { columns: [{ name: "name", type: "string" }] });
    await server.put("/db/shop:main/tables/authors/data/a1", { name: "Ada Lovelace" });
    await server.put("/db/shop:main/tables/books", {
      columns: [
        { name: "shelf", type: "string" },
        { name: "title", type: "string" },
        { name: "story", type: "text" },
        { name: "facts", type: "json" },
        { name: "author", type: "link", link: { table: "authors" } },
        { name: "look", type: "vector", vector: { dimension: 2 } },
      ],
    });
    const operations = Array.from({ length: 40 }, (_, i) => ({
      insert: {
        table: "books",
        record: {
          id: `rec_${String(i).padStart(2, "0")}`,
          shelf: `s${i % 4}`,
          title: `The ${i === 7 ? "lighthouse" : `volume ${i}`}`,
          story: `Line one of ${i}\nLine two`,
          facts: { pages: i, parts: { first: 1 } },
          author: "a1",
          look: [Math.cos(i / 9), Math.sin(i / 9)],
        },
      },
    }));
    expect((await server.post("/db/shop:main/transaction", { operations })).status).toBe(200);
  });

  const hash = (page: Page): string => decodeURIComponent(new URL(page.url()).hash).replaceAll("+", " ");
  const records = (page: Page, text: string) => page.getByText(`${text} records read`).waitFor();

  it("a table's filter, order and hidden columns are in it; Back and a reload bring them back", async () => {
    const { page, close } = await at.open("#/table/shop:main/books");
    await records(page, "40 of 40");
    expect(await page.title()).toBe("books · Table · shop:main · Lodestone");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByLabel("Filter", { exact: true }).fill('{"shelf": "s1"}');
    await page.getByRole("button", { name: "Apply" }).click();
    await records(page, "10 of 10");
    await page.getByRole("columnheader", { name: "title" }).getByRole("button").click();
    await page.getByText("Columns", { exact: true }).click();
    await page.getByLabel("shelf").uncheck();
    expect(hash(page)).toBe('#/table/shop:main/books?filter={"shelf": "s1"}&sort=title&hide=shelf');
    await page.reload();
    await records(page, "10 of 10");
    await page.getByRole("list", { name: "Conditions of the filter" }).getByText("shelf is “s1”").waitFor();
    await expect.poll(() => page.getByRole("columnheader", { name: "title" }).getAttribute("aria-sort")).toBe("ascending");
    await expect.poll(() => page.getByRole("columnheader", { name: "shelf" }).count()).toBe(0);
    // Another view, and the table again: as it was.
    await page.getByRole("navigation").getByRole("link", { name: "Schema" }).click();
    await page.getByRole("region", { name: "Table books" }).waitFor();
    await page.getByRole("navigation").getByRole("link", { name: "Table", exact: true }).click();
    await records(page, "10 of 10");
    for (let i = 0; i < 4; i++) await page.goBack();
    await records(page, "40 of 40");
    await expect.poll(() => page.getByRole("list", { name: "Conditions of the filter" }).count()).toBe(0);
    await close();
  });

  it("a search is in it: a link that was copied finds the same in another page", async () => {
    const { page, close } = await at.open("#/search/shop:main/books");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.locator(".results li").first().waitFor();
    await page.getByLabel("Words", { exact: true }).fill("lighthouse");
    // A record is offered by its title.
    await page.getByLabel("Record", { exact: true }).fill("volume 3");
    await expect.poll(() => page.locator("#record-ids option").first().getAttribute("label")).toBe("The volume 3");
    await page.getByLabel("Record", { exact: true }).fill("rec_03");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByRole("heading", { name: "“lighthouse”, near The volume 3" }).waitFor();
    await page.getByLabel("Measure").selectOption("l1");
    await expect.poll(() => hash(page)).toBe("#/search/shop:main/books?like=rec_03&words=lighthouse&measure=l1");
    await expect.poll(() => page.locator(".results .result-name").first().innerText()).toBe("The lighthouse");
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    const other = await at.open(new URL(link).hash);
    await other.page.getByRole("heading", { name: "“lighthouse”, near The volume 3" }).waitFor();
    await expect.poll(() => other.page.getByLabel("Words", { exact: true }).inputValue()).toBe("lighthouse");
    await expect.poll(() => other.page.getByLabel("Measure").inputValue()).toBe("l1");
    await expect
      .poll(() => other.page.locator(".results .result-name").allInnerTexts())
      .toEqual(await page.locator(".results .result-name").allInnerTexts());
    await other.close();
    await page.getByLabel("Words", { exact: true }).fill("volume");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByRole("heading", { name: "“volume”" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "“lighthouse”" }).waitFor();
    await expect.poll(() => page.getByLabel("Words", { exact: true }).inputValue()).toBe("lighthouse");
    await close();
  });

  it("SQL is in it, and is not run by a link; so is the endpoint of the API that is open", async () => {
    const { page, close } = await at.open("#/sql/shop:main/books?sql=DELETE+FROM+%22books%22", { isRichText: true });
    const editor = page.getByRole("textbox", { name: "SQL statement" });
    await expect.poll(() => editor.innerText()).toBe('DELETE FROM "books"');
    await editor.fill('SELECT count(*) FROM "books"');
    await editor.press("Control+Enter");
    await page.locator(".result-scroll td", { hasText: "40" }).waitFor();
    expect(hash(page)).toContain('sql=SELECT count(*) FROM "books"');
    await page.goBack();
    await expect.poll(() => editor.innerText()).toBe('DELETE FROM "books"');
    await page.getByRole("navigation").getByRole("link", { name: "API" }).click();
    await page.locator(".operation summary", { hasText: "/vectorSearch" }).first().click();
    await page.getByRole("form", { name: "Try vectorSearch" }).waitFor();
    expect(hash(page)).toContain("endpoint=vectorSearch");
    await page.reload();
    await page.getByRole("form", { name: "Try vectorSearch" }).waitFor();
    await close();
  });

  it("a record's card shows and edits its fields, leads to its nearest and its links, and its title can be chosen", async () => {
    const { page, expectAccessible, close } = await at.open("#/table/shop:main/books");
    const card = (id: string) => page.getByRole("complementary", { name: `Record ${id}` });
    await page.getByRole("gridcell").getByRole("link", { name: "rec_07", exact: true }).click();
    await card("rec_07").getByRole("heading", { name: "The lighthouse" }).waitFor();
    await card("rec_07").getByText("Line one of 7\nLine two").waitFor();
    await card("rec_07").getByText("parts").waitFor();
    await card("rec_07").getByRole("link", { name: "Ada Lovelace" }).waitFor();
    await expect.poll(() => card("rec_07").locator(".neighbours li").allInnerTexts()).toHaveLength(5);
    expect(await page.title()).toBe("rec_07 · books · Table · shop:main · Lodestone");
    await expectAccessible();
    await card("rec_07").getByRole("button", { name: "Edit title" }).click();
    await page.getByLabel("New value of title").fill("To the lighthouse");
    await page.keyboard.press("Enter");
    // In the table beside it as well, and it can be undone.
    await page.getByRole("gridcell", { name: "To the lighthouse" }).waitFor();
    await card("rec_07").getByRole("heading", { name: "To the lighthouse" }).waitFor();
    expect((await at.server.get(`${DATA}/rec_07`)).body.title).toBe("To the lighthouse");
    await page.getByRole("button", { name: "Undo" }).click();
    await card("rec_07").getByRole("heading", { name: "The lighthouse" }).waitFor();
    await card("rec_07").locator(".neighbours a").first().click();
    await card("rec_07").waitFor({ state: "detached" });
    await page.goBack();
    await card("rec_07").getByLabel("Title of each record in books").selectOption("shelf");
    await card("rec_07").getByRole("heading", { name: "s3" }).waitFor();
    await page.reload();
    await card("rec_07").getByRole("heading", { name: "s3" }).waitFor();
    await card("rec_07").getByLabel("Title of each record in books").selectOption("title");
    // From a result.
    await card("rec_07").getByRole("link", { name: "Search for more like this" }).click();
    await page.getByRole("heading", { name: "Nearest to The lighthouse" }).waitFor();
    await page.getByRole("link", { name: "Open rec_08" }).click();
    await card("rec_08").getByRole("heading", { name: "The volume 8" }).waitFor();
    expect(hash(page)).toContain("#/search/shop:main/books/rec_08?");
    await expectAccessible();
    await close();
  });

  it("Ctrl and K goes to a view, a table, a branch or a record by a part of its name", async () => {
    const { page, expectAccessible, close } = await at.open("#/table/shop:main/books");
    await records(page, "40 of 40");
    const field = page.getByRole("combobox", { name: "Name of a view" });
    await page.keyboard.press("Control+k");
    await field.fill("lightho");
    await page.getByRole("option", { name: "The lighthouse" }).waitFor();
    await expectAccessible();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Record rec_07" }).waitFor();
    await page.keyboard.press("Control+k");
    await field.fill("auth");
    await page.keyboard.press("Enter");
    await records(page, "1 of 1");
    // The tables are at the side as well.
    await page.getByRole("region", { name: "Tables" }).getByRole("link", { name: "books" }).click();
    await records(page, "40 of 40");
    await page.getByRole("button", { name: "Go to" }).click();
    await field.fill("view sch");
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Table books" }).waitFor();
    await close();
  });
});
