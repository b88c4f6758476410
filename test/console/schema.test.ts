/** The schema view, as a person uses it, on the real server. */
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const SHOP = "/db/shop:main";

describeWith("chromium", "the schema in the console", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put(SHOP);
    await server.put(`${SHOP}/tables/makers`, { columns: [{ name: "name", type: "string" }] });
    await server.put(`${SHOP}/tables/items`, {
      columns: [
        { name: "title", type: "string" },
        { name: "price", type: "int" },
        { name: "maker", type: "link", link: { table: "makers" } },
      ],
    });
    const records = Array.from({ length: 5 }, (_, i) => (i < 3 ? { title: `t${i}`, price: i } : { title: `t${i}` }));
    await server.post(`${SHOP}/tables/items/bulk`, { records });
  });

  const columnsOf = async (table: string): Promise<string[]> =>
    (await at.server.get(`${SHOP}/tables/${table}/columns`)).body.columns.map(({ name }: { name: string }) => name);

  it("draws tables and links, and changes a column after showing the consequences and asking for confirmation", async () => {
    const { page, expectAccessible, close } = await at.open("#/schema/shop:main/items");
    await page.getByRole("link", { name: "items, 3 columns, links to makers" }).waitFor();
    await expect.poll(() => page.locator(".arrow").count()).toBe(1);
    await page.getByText("5 records").waitFor();
    await expectAccessible();
    // Deleting: the number of values that go, then Escape, then for good.
    await page.getByRole("button", { name: "Delete price" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("3 of 5 records have a value in it, which will be lost").waitFor();
    await expectAccessible();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await columnsOf("items")).toContain("price");
    await page.getByRole("button", { name: "Delete price" }).click();
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("link", { name: "items, 2 columns, links to makers" }).waitFor();
    expect(await columnsOf("items")).not.toContain("price");
    // A new one: the server's objection is shown beside the field, and what was typed stays.
    await page.getByRole("button", { name: "Column", exact: true }).click();
    const form = page.getByRole("form", { name: "New column" });
    await form.getByLabel("Name").fill("look");
    await form.getByLabel("Type").selectOption("vector");
    await form.getByLabel("Dimension").fill("1");
    await form.getByRole("button", { name: "Add" }).click();
    await form.locator(".fault").filter({ hasText: "dimension" }).waitFor();
    await expectAccessible();
    await form.getByLabel("Dimension").fill("4");
    await form.getByRole("button", { name: "Add" }).click();
    await dialog.getByText("It will be empty in the 5 records that are there already.").waitFor();
    await dialog.getByRole("button", { name: "Add column" }).click();
    await page.getByRole("list", { name: "Columns" }).getByText("vector · 4").waitFor();
    // Refused when it is done, not before: the dialog shows the server's words.
    await page.getByRole("button", { name: "Column", exact: true }).click();
    await form.getByLabel("Name").fill("must");
    await form.getByLabel("not null").check();
    await form.getByRole("button", { name: "Add" }).click();
    await dialog.getByRole("button", { name: "Add column" }).click();
    await dialog.getByRole("alert").filter({ hasText: "notNull" }).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await columnsOf("items")).not.toContain("must");
    await close();
  });

  it("creates, renames and deletes tables, refuses to delete what a link needs, and works by keyboard", async () => {
    const { page, close } = await at.open("#/schema/shop:main/makers");
    const dialog = page.getByRole("dialog");
    const alert = page.getByRole("alert");
    await page.getByRole("button", { name: "Delete table" }).click();
    await alert.filter({ hasText: 'is linked to by column "maker" of table "items"' }).waitFor();
    await expect.poll(() => dialog.count()).toBe(0);
    await at.server.put(`${SHOP}/tables/notes`, { columns: [] });
    await page.getByRole("link", { name: "makers, 1 column" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "makers", exact: true }).waitFor();
    await page.getByRole("button", { name: "Rename", exact: true }).click();
    await page.getByLabel("New name of the table").fill("people");
    await page.keyboard.press("Enter");
    await dialog.getByText("Links to it, in 1 column, will point to people.").waitFor();
    await dialog.getByRole("button", { name: "Rename" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "people", exact: true }).waitFor();
    expect((await at.server.get(`${SHOP}/tables/items/columns/maker`)).body.link).toEqual({ table: "people" });
    await close();
  });

  it("copies a branch, shows the difference, applies it, and deletes the branch", async () => {
    const { page, expectAccessible, close } = await at.open("#/schema/shop:main/items", { colorScheme: "dark" });
    const dialog = page.getByRole("dialog");
    const branches = page.getByRole("region", { name: "Branches" });
    await branches.getByRole("button", { name: "Branch", exact: true }).click();
    // Refused by the server when it is made: said in the dialog, and what was typed stays.
    await branches.getByLabel("Name of the branch").fill("not a name");
    await branches.getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("button", { name: "Create branch" }).click();
    await dialog.getByRole("alert").filter({ hasText: "not a name" }).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await expect.poll(() => branches.getByLabel("Name of the branch").inputValue()).toBe("not a name");
    await branches.getByLabel("Name of the branch").fill("next");
    await branches.getByLabel("Copy of").selectOption("main");
    await branches.getByRole("button", { name: "Create" }).click();
    await dialog.getByText("a copy of 3 tables with 5 records").waitFor();
    await dialog.getByRole("button", { name: "Create branch" }).click();
    await expect.poll(() => page.url()).toContain("#/schema/shop:next");
    await at.server.post("/db/shop:next/tables/items/columns", { name: "weight", type: "float" });
    await at.server.delete("/db/shop:next/tables/notes");
    await branches.getByRole("link", { name: "main" }).click();
    await branches.getByLabel("Compare main with").selectOption("next");
    await branches.getByRole("button", { name: "Compare" }).click();
    await branches.locator(".difference li").first().waitFor();
    const lines = await branches.locator(".difference li bdi").allInnerTexts();
    expect(lines.toSorted()).toEqual(["column items.weight: float", "table notes"]);
    await expectAccessible();
    await branches.getByRole("button", { name: "Apply to main" }).click();
    await dialog.getByText("The table notes will be deleted, with its 0 records").waitFor();
    await dialog.getByRole("button", { name: "Change the schema" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await columnsOf("items")).toContain("weight");
    expect((await at.server.get(`${SHOP}/tables/notes/columns`)).status).toBe(404);
    await branches.getByRole("button", { name: "Delete the branch next" }).click();
    await dialog.getByText("It has 2 tables with 5 records").waitFor();
    await dialog.getByRole("button", { name: "Delete branch" }).click();
    await branches.getByRole("link", { name: "next" }).waitFor({ state: "detached" });
    expect((await at.server.get("/db/shop:next")).status).toBe(404);
    await close();
  });

  it("finds tables and columns in a large picture, zooms it, and keeps what is chosen in view", async () => {
    await at.server.put("/db/many:main");
    const operations = Array.from({ length: 40 }, (_, i) => ({
      addTable: {
        table: `t${i}`,
        columns: [
          { name: `note${i}`, type: "string" },
          ...(i === 0 ? [] : [{ name: "before", type: "link", link: { table: `t${i - 1}` } }]),
        ],
      },
    }));
    for (const { addTable } of operations) await at.server.put(`/db/many:main/tables/${addTable.table}`, { columns: addTable.columns });
    const { page, expectAccessible, close } = await at.open("#/schema/many:main/t20");
    const frame = page.getByRole("region", { name: "Picture of the tables" });
    /** Whether the box of a table is all in the frame. */
    const isInView = (name: string): Promise<boolean> =>
      frame.evaluate((element, wanted) => {
        const outer = element.getBoundingClientRect();
        const box = [...element.querySelectorAll(".table-box")].find((other) => other.querySelector("title")?.textContent === wanted);
        const inner = box?.querySelector("rect")?.getBoundingClientRect();
        return (
          inner !== undefined &&
          inner.left >= outer.left &&
          inner.right <= outer.right &&
          inner.top >= outer.top &&
          inner.bottom <= outer.bottom
        );
      }, name);
    await expect.poll(() => isInView("t20")).toBe(true);
    expect(await isInView("t0")).toBe(false);
    await page.getByRole("searchbox", { name: "Find a table or a column" }).fill("note3");
    // note3, and note30 to note39.
    await page.getByText("In 11 of 40 tables").waitFor();
    await expect.poll(() => page.locator(".table-box.faint").count()).toBe(29);
    await expect.poll(() => isInView("t3")).toBe(true);
    await expectAccessible();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "t3", exact: true }).waitFor();
    await page.getByRole("searchbox", { name: "Find a table or a column" }).fill("");
    await expect.poll(() => isInView("t3")).toBe(true);
    await page.getByRole("button", { name: "Fit" }).click();
    await expect.poll(() => frame.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    await expect.poll(async () => (await isInView("t0")) && (await isInView("t39"))).toBe(true);
    await page.getByRole("button", { name: "Zoom in" }).click();
    await page.getByRole("button", { name: "back to 100 %" }).click();
    await page.getByRole("button", { name: "Zoom 100 %" }).waitFor();
    await expect.poll(() => isInView("t3")).toBe(true);
    await close();
  });

  it("an arrow leads from the line of its column to the name of the table", async () => {
    const { page, close } = await at.open("#/schema/shop:main/items");
    const arrow = page.locator(".arrow");
    await arrow.waitFor();
    const [title, ends] = await arrow.evaluate((path: SVGPathElement) => {
      const length = path.getTotalLength();
      return [
        path.querySelector("title")?.textContent,
        [path.getPointAtLength(0), path.getPointAtLength(length)].map(({ x, y }) => [x, y]),
      ];
    });
    expect(title).toBe("items.maker → people");
    const heightOf = (text: string) =>
      page
        .locator(".table-box text")
        .filter({ hasText: new RegExp(`^${text}$`) })
        .evaluate((element: SVGTextElement) => element.y.baseVal[0]!.value);
    // A line is 21 high, and its text stands near its lower end.
    expect(Math.abs((await heightOf("maker")) - ends[0]![1]!)).toBeLessThan(12);
    expect(Math.abs((await heightOf("people")) - ends[1]![1]!)).toBeLessThan(12);
    await close();
  });
});
