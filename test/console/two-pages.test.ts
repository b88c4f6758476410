/** Two people at once: each in a page of their own, on one record and on one schema. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const TABLE = "/db/shop:main/tables/items";

describeWith("chromium", "two pages of the console", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/shop:main");
    await server.put(TABLE, {
      columns: [
        { name: "title", type: "string" },
        { name: "price", type: "int" },
      ],
    });
    for (const id of ["one", "two"]) await server.put(`${TABLE}/data/${id}`, { title: `title of ${id}` });
  });

  const both = (hash: string) => Promise.all([at.open(hash), at.open(hash)]);
  const title = (page: Page) => page.getByLabel("New value of title");
  const save = (page: Page) => page.getByRole("button", { name: "Save" }).click();
  const titleOf = async (id: string): Promise<string> => (await at.server.get(`${TABLE}/data/${id}`)).body.title;

  it("do not overwrite each other's record unknowingly, and what was typed is kept", async () => {
    const [ours, theirs] = await both("#/table/shop:main/items");
    for (const { page } of [ours, theirs]) {
      await page.getByRole("gridcell", { name: "title of one" }).dblclick();
      await title(page).waitFor();
    }
    await title(theirs.page).fill("theirs");
    await save(theirs.page);
    await theirs.page.getByRole("gridcell", { name: "theirs", exact: true }).waitFor();
    await title(ours.page).fill("ours");
    await save(ours.page);
    await ours.page.locator("#cell-fault").filter({ hasText: "title is now theirs" }).waitFor();
    expect(await titleOf("one")).toBe("theirs");
    await expect.poll(() => title(ours.page).inputValue()).toBe("ours");
    await save(ours.page);
    await expect.poll(() => titleOf("one")).toBe("ours");
    // Their undo concerns a record that has changed since.
    await theirs.page.getByRole("button", { name: "Undo" }).click();
    await theirs.page.getByRole("alert").waitFor();
    expect(await titleOf("one")).toBe("ours");
    // A record that is gone.
    await ours.page.getByRole("gridcell", { name: "title of two" }).dblclick();
    await title(ours.page).fill("too late");
    await theirs.page.getByLabel("Select two").check();
    await theirs.page.getByRole("button", { name: "Delete 1" }).click();
    await theirs.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await theirs.page.getByText("deleted two").waitFor();
    await save(ours.page);
    await ours.page.locator("#cell-fault").filter({ hasText: "two" }).waitFor();
    await expect.poll(() => title(ours.page).inputValue()).toBe("too late");
    expect((await at.server.get(`${TABLE}/data/two`)).status).toBe(404);
    await Promise.all([ours.close(), theirs.close()]);
  });

  it("see what the other did to the schema when the server refuses their own change", async () => {
    const [ours, theirs] = await both("#/schema/shop:main/items");
    const columns = (page: Page) => page.getByRole("list", { name: "Columns" }).locator(".column-name");
    for (const { page } of [ours, theirs]) await expect.poll(() => columns(page).allInnerTexts()).toEqual(["title", "price"]);
    const dialog = theirs.page.getByRole("dialog");
    await theirs.page.getByRole("button", { name: "Delete price" }).click();
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    await ours.page.getByRole("button", { name: "Delete price" }).click();
    await ours.page.getByRole("alert").filter({ hasText: "price" }).waitFor();
    await expect.poll(() => columns(ours.page).allInnerTexts()).toEqual(["title"]);
    const form = (page: Page) => page.getByRole("form", { name: "New column" });
    for (const { page } of [ours, theirs]) {
      await page.getByRole("button", { name: "Column", exact: true }).click();
      await form(page).getByLabel("Name").fill("size");
    }
    await form(theirs.page).getByRole("button", { name: "Add" }).click();
    await dialog.getByRole("button", { name: "Add column" }).click();
    await dialog.waitFor({ state: "detached" });
    await form(ours.page).getByRole("button", { name: "Add" }).click();
    await form(ours.page).locator(".fault").filter({ hasText: 'Column "size" exists already' }).waitFor();
    await expect.poll(() => form(ours.page).getByLabel("Name").inputValue()).toBe("size");
    await expect.poll(() => columns(ours.page).allInnerTexts()).toEqual(["title", "size"]);
    await Promise.all([ours.close(), theirs.close()]);
  });
});
