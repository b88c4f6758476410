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
    expect(await page.locator(".arrow").count()).toBe(1);
    await page.getByText("5 records").waitFor();
    await expectAccessible();
    // Deleting: the number of values that go, then Escape, then for good.
    await page.getByRole("button", { name: "Delete price" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("the values that 3 of 5 records have in it").waitFor();
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
    await dialog.getByText("The existing 5 records will have no value in it.").waitFor();
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
    expect(await dialog.count()).toBe(0);
    await page.getByRole("button", { name: "Table", exact: true }).click();
    await page.getByLabel("Name of the new table").fill("a b");
    await page.keyboard.press("Enter");
    await page.locator(".fault").filter({ hasText: "a b" }).waitFor();
    await page.getByLabel("Name of the new table").fill("notes");
    await page.keyboard.press("Enter");
    await dialog.getByText("Creates the table notes.").waitFor();
    await dialog.getByRole("button", { name: "Create table" }).press("Enter");
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "notes", exact: true }).waitFor();
    await page.getByRole("link", { name: "makers, 1 column" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "makers", exact: true }).waitFor();
    await page.getByRole("button", { name: "Rename", exact: true }).click();
    await page.getByLabel("New name of the table").fill("people");
    await page.keyboard.press("Enter");
    await dialog.getByText("1 column of links to it will point to people").waitFor();
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
    expect(await branches.getByLabel("Name of the branch").inputValue()).toBe("not a name");
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
    await branches.getByRole("button", { name: "Do this to main" }).click();
    await dialog.getByText("Deletes the table notes with 0 records").waitFor();
    await dialog.getByRole("button", { name: "Change the schema" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await columnsOf("items")).toContain("weight");
    expect((await at.server.get(`${SHOP}/tables/notes/columns`)).status).toBe(404);
    await branches.getByRole("button", { name: "Delete the branch next" }).click();
    await dialog.getByText("which has 2 tables with 5 records").waitFor();
    await dialog.getByRole("button", { name: "Delete branch" }).click();
    await branches.getByRole("link", { name: "next" }).waitFor({ state: "detached" });
    expect((await at.server.get("/db/shop:next")).status).toBe(404);
    await close();
  });
});
