/** Dates, lists, sizes and names as people write and find them. */
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const LONG = "a_table_with_a_name_that_is_much_longer_than_the_column_that_it_stands_in_can_be";

describeWith("chromium", "what the console shows", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/shop:a-branch");
    await server.put("/db/shop:main");
    const columns = [
      { name: "title", type: "string" },
      { name: "printed", type: "datetime" },
      { name: "genres", type: "multiple" },
      { name: "facts", type: "json" },
    ];
    await server.put("/db/shop:main/tables/books", { columns });
    await server.put(`/db/shop:main/tables/${LONG}`, { columns: [] });
    const records = [
      { id: "day", title: "Dracula", printed: "1897-05-26T00:00:00Z", genres: ["horror", "letters"], facts: { pages: 418 } },
      { id: "minute", title: "Walden", printed: "1854-08-09T10:58:00Z" },
      { id: "second", title: "Kim", printed: "1901-10-01T10:58:03.250Z" },
    ];
    const operations = records.map((record) => ({ insert: { table: "books", record } }));
    expect((await server.post("/db/shop:main/transaction", { operations })).status).toBe(200);
  });

  it("is a day where a day is meant, in UTC wherever one is, and a list without brackets", async () => {
    const { page, expectAccessible, close } = await at.open("#/table/shop:main/books/day", { timezoneId: "America/New_York" });
    for (const text of ["1897-05-26", "1854-08-09 10:58", "1901-10-01 10:58:03.250", "horror, letters"])
      await page.getByRole("gridcell", { name: text, exact: true }).waitFor();
    const card = page.getByRole("complementary");
    await card.getByText("26 May 1897", { exact: true }).waitFor();
    await card.getByText("{ 1 field }").waitFor();
    await expectAccessible();
    await page.getByRole("gridcell").getByRole("link", { name: "minute", exact: true }).click();
    await card.getByText("9 Aug 1854, 10:58 UTC", { exact: true }).waitFor();
    await close();
  });

  it("has the main branch first, long names within their column, and finds tables from Home", async () => {
    const { page, expectAccessible, close } = await at.open("#/home");
    await expect.poll(() => page.locator(".branch h3 > .tag").allInnerTexts()).toEqual(["main", "a-branch"]);
    const overflow = () => page.getByRole("rowheader", { name: LONG }).evaluate((cell) => getComputedStyle(cell).overflowX);
    await expect.poll(overflow).toBe("hidden");
    await page.keyboard.press("Control+k");
    const finder = page.getByRole("dialog", { name: "Go to" });
    await finder.getByRole("combobox").fill("book");
    await finder.getByRole("option", { name: "books" }).waitFor();
    await expectAccessible();
    await finder.getByRole("option", { name: "books" }).press("Enter");
    await page.getByRole("gridcell", { name: "Dracula" }).waitFor();
    await close();
  });
});
