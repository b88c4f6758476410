/** The content of records is treated as text only, in every view that shows it; and every view fits a phone. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const IDS = ["<script>globalThis.hurt=1</script>", "\u202eright to left שלום", `"'${"x".repeat(200)}`];
const MARKUP = '<img src="x" onerror="globalThis.hurt=1">';
/** A megabyte of each. */
const LARGE = MARKUP.repeat(Math.ceil(1_000_000 / MARKUP.length));

describeWith("chromium", "hostile content in the console", (executablePath) => {
  const at = serveConsole(
    executablePath,
    async (server) => {
      await server.put("/db/hostile:main");
      await server.put("/db/hostile:main/tables/t", {
        columns: [
          { name: "note", type: "string", notNull: true, defaultValue: MARKUP },
          { name: "text", type: "text" },
          { name: "v", type: "vector", vector: { dimension: 2 } },
        ],
      });
      for (const [i, id] of IDS.entries()) {
        const statement = 'INSERT INTO "t" ("id", "text", "v") VALUES ($1, $2, $3)';
        const { status } = await server.post("/db/hostile:main/sql", { statement, params: [id, LARGE, [i, 1]] });
        expect(status).toBe(200);
      }
    },
    { args: ["--demo"] },
  );

  async function expectUnhurt(page: Page): Promise<void> {
    const found = await page.evaluate(() => ({
      isHurt: "hurt" in globalThis,
      elements: document.querySelectorAll("main script, main img").length,
      sticksOut: Math.max(0, document.documentElement.scrollWidth - innerWidth),
    }));
    expect(found).toEqual({ isHurt: false, elements: 0, sticksOut: 0 });
  }

  it("is text in the table, in its editor, and after it was edited", async () => {
    const { page, expectAccessible, close } = await at.open("#/table/hostile:main/t");
    await page.getByText("3 of 3 records read").waitFor();
    const row = page.locator(".grid-body .grid-row").filter({ hasText: IDS[0] as string });
    await expect.poll(() => row.getByRole("gridcell").nth(1).innerText()).toBe(MARKUP);
    // The page contains no more of a cell than is visible.
    expect(await page.locator(".grid-body").evaluate((body) => body.textContent?.length ?? 0)).toBeLessThan(5_000);
    await expectUnhurt(page);
    await expectAccessible();
    await row.getByRole("gridcell").nth(2).dblclick();
    const editor = page.getByLabel("New value of text");
    await expect.poll(() => editor.inputValue()).toBe(LARGE);
    await editor.fill(`${LARGE}!`);
    await page.getByRole("button", { name: "Save" }).click();
    await editor.waitFor({ state: "detached" });
    await page.getByText(`changed text of ${IDS[0]}`).waitFor();
    const { body } = await at.server.get(`/db/hostile:main/tables/t/data/${encodeURIComponent(IDS[0] as string)}`);
    expect(body.text).toBe(`${LARGE}!`);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("changed text of").waitFor({ state: "detached" });
    await expectUnhurt(page);
    await close();
  });

  it("is text in answers of SQL, in the schema, and in what the API answers", async () => {
    const { page, close } = await at.open("#/sql/hostile:main/t", { isRichText: true });
    const editor = page.getByRole("textbox", { name: "SQL statement" });
    await editor.fill(`SELECT "id", "note", "text", '${MARKUP}' AS "<b>name</b>" FROM "t" ORDER BY "id"`);
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("3 rows in").waitFor();
    expect((await page.locator(".result-scroll tbody tr > td:first-child").allInnerTexts()).toSorted()).toEqual(IDS.toSorted());
    await expect.poll(() => page.locator(".result-scroll th").last().innerText()).toContain("<b>name</b>");
    await expectUnhurt(page);
    await page.goto(`${at.server.url}/console#/schema/hostile:main/t`);
    await page.getByText(`default ${MARKUP}`).waitFor();
    await expectUnhurt(page);
    await page.goto(`${at.server.url}/console#/reference/hostile:main/t`);
    await page.getByLabel("Find").fill("getRecord");
    await page.locator(".operation summary").first().click();
    const form = page.getByRole("form", { name: "Try" });
    await form.getByLabel("id", { exact: true }).fill(IDS[1] as string);
    await form.getByRole("button", { name: "Send" }).click();
    await page.getByText("the first 100,000 of").waitFor();
    await expectUnhurt(page);
    await close();
  });

  it.each([
    ["home", ".snippets"],
    ["search", ".terms"],
    ["table", ".grid-body .grid-row"],
    ["sql", ".cm-content"],
    ["schema", ".column-line"],
    ["server", ".limits dd"],
    ["reference", ".operation"],
  ])("the view %s fits a phone, in the dark, with all seven views at hand", async (view, ready) => {
    const { page, expectAccessible, close } = await at.open(`#/${view}/demo:main/colors`, {
      colorScheme: "dark",
      width: 360,
      height: 740,
    });
    await page.locator(ready).first().waitFor();
    await expectUnhurt(page);
    await expectAccessible();
    const links = page.getByRole("navigation").getByRole("listitem").getByRole("link");
    await expect.poll(() => links.count()).toBe(7);
    for (const link of await links.all()) {
      const { x, width } = (await link.boundingBox())!;
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x + width).toBeLessThanOrEqual(360);
    }
    await close();
  });
});
