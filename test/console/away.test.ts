/** The server is stopped and started under each view (the search view: search.test.ts): what was typed stays, and the view continues. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { closeChromium, launchChromium } from "../browser/launch.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer } from "../support/server.ts";
import { type ConsolePage, openConsole } from "./console-page.ts";

const AWAY = "The server cannot be reached. Nothing is lost";

interface Visit {
  readonly hash: string;
  readonly isRichText?: boolean;
  /** What a person is doing when the server stops. */
  readonly begin: (page: Page) => Promise<void>;
  /** Sends a request, and sees beside it that the server is away. */
  readonly tryAway?: (page: Page) => Promise<void>;
  /** What was typed is there, and works now. */
  readonly goOn: (page: Page) => Promise<void>;
}

const sqlEditor = (page: Page) => page.getByRole("textbox", { name: "SQL statement" });
const columnForm = (page: Page) => page.getByRole("form", { name: "New column" });
const requestForm = (page: Page) => page.getByRole("form", { name: "Try" });
const cellEditor = (page: Page) => page.getByLabel("New value of family");
const save = (page: Page) => page.getByRole("button", { name: "Save" }).click();

const VISITS: readonly Visit[] = [
  {
    hash: "#/home",
    begin: (page) => page.getByRole("link", { name: "colors" }).waitFor(),
    goOn: (page) => page.locator(".health").filter({ hasText: "ready" }).waitFor(),
  },
  {
    hash: "#/table/demo:main/colors",
    async begin(page) {
      const row = page.locator(".grid-body .grid-row").filter({ hasText: "aliceblue" });
      await row.getByRole("gridcell").nth(1).dblclick();
      await cellEditor(page).fill("icy");
    },
    async tryAway(page) {
      await save(page);
      await page.locator("#cell-fault").filter({ hasText: AWAY }).waitFor();
    },
    async goOn(page) {
      await expect.poll(() => cellEditor(page).inputValue()).toBe("icy");
      await save(page);
      await page.getByText("changed family of aliceblue").waitFor();
    },
  },
  {
    hash: "#/sql/demo:main/colors",
    isRichText: true,
    async begin(page) {
      await sqlEditor(page).fill('SELECT "id" FROM "colors" WHERE "id" = $1');
      await page.getByLabel("Parameters").fill('["tomato"]');
    },
    async tryAway(page) {
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByRole("main").getByRole("alert").filter({ hasText: AWAY }).waitFor();
      // Nothing is wrong with the statement.
      await expect.poll(() => page.locator(".sql-editor .cm-lintRange-error").count()).toBe(0);
    },
    async goOn(page) {
      await expect.poll(() => sqlEditor(page).innerText()).toBe('SELECT "id" FROM "colors" WHERE "id" = $1');
      await page.getByRole("button", { name: "Run" }).click();
      await page.locator(".result-scroll td", { hasText: "tomato" }).waitFor();
    },
  },
  {
    hash: "#/schema/demo:main/colors",
    async begin(page) {
      await page.getByRole("button", { name: "Column", exact: true }).click();
      await columnForm(page).getByLabel("Name").fill("weight");
    },
    async tryAway(page) {
      await columnForm(page).getByRole("button", { name: "Add" }).click();
      await columnForm(page).locator(".fault").filter({ hasText: AWAY }).waitFor();
    },
    async goOn(page) {
      await expect.poll(() => columnForm(page).getByLabel("Name").inputValue()).toBe("weight");
      await columnForm(page).getByRole("button", { name: "Add" }).click();
      await page.getByRole("dialog").getByText("will get a new column, weight").waitFor();
    },
  },
  {
    hash: "#/server/demo:main/colors",
    begin: (page) => page.getByRole("region", { name: "Limits" }).getByText("Dimensions per vector").waitFor(),
    async goOn(page) {
      await page.locator('.fact:has(dt:text-is("Status"))').filter({ hasText: "ready" }).waitFor();
      // The plots start over with the server's counters, and fill.
      await expect.poll(() => page.getByRole("region", { name: "Memory" }).getByRole("listitem").first().innerText()).toMatch(/RSS\s+\d/);
    },
  },
  {
    hash: "#/reference/demo:main/colors",
    async begin(page) {
      await page.getByLabel("Find").fill("post vectorsearch");
      await page.locator(".operation summary").first().click();
      await requestForm(page).getByLabel("Body").fill('{"column": "lab", "queryVector": [50, 0, 0], "size": 1}');
    },
    async tryAway(page) {
      await requestForm(page).getByRole("button", { name: "Send" }).click();
      await page.getByRole("main").getByRole("alert").filter({ hasText: AWAY }).waitFor();
    },
    async goOn(page) {
      await requestForm(page).getByRole("button", { name: "Send" }).click();
      await page.getByRole("region", { name: "Answer", exact: true }).getByText('"totalCount": 2').waitFor();
    },
  },
];

describeWith("chromium", "the console while the server is away", (executablePath) => {
  it("keeps in every view what was typed, says that the server is away, and continues when it is back", async () => {
    const server = await startServer();
    const browser = await launchChromium(executablePath);
    try {
      await server.put("/db/demo:main");
      const columns = [
        { name: "family", type: "string" },
        { name: "lab", type: "vector", vector: { dimension: 3 } },
      ];
      await server.put("/db/demo:main/tables/colors", { columns });
      for (const id of ["aliceblue", "tomato"])
        await server.put(`/db/demo:main/tables/colors/data/${id}`, { family: "red", lab: [62, 58, 46] });
      const opened: (readonly [Visit, ConsolePage])[] = [];
      for (const visit of VISITS) {
        const console = await openConsole(browser, server.url, visit.hash, { isRichText: visit.isRichText === true });
        await visit.begin(console.page);
        opened.push([visit, console]);
      }
      const { port } = server;
      await server.end("SIGKILL");
      for (const [visit, { page }] of opened) {
        await visit.tryAway?.(page);
        await page.getByText("The server is not responding").waitFor();
      }
      await server.start(["--port", String(port)]);
      for (const [visit, { page, close }] of opened) {
        await page.getByText("The server is not responding").waitFor({ state: "detached" });
        await visit.goOn(page);
        await close();
      }
    } finally {
      await closeChromium(browser);
      await server.stop();
    }
  });
});
