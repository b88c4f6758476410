/** A person's path through the console in Firefox: the other tests of the console are in Chromium. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launchFirefox } from "../browser/launch-firefox.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";
import { openConsole } from "./console-page.ts";

const ALICE = "/db/demo:main/tables/colors/data/aliceblue";

describeWith("firefox", "the console in Firefox", (executablePath) => {
  let browser: Browser;
  let server: TestServer;
  beforeAll(async () => {
    browser = await launchFirefox(executablePath);
    server = await startServer({ args: ["--demo"] });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  it("home, a search with its map, a cell that is edited and undone, SQL", async () => {
    const { page, expectAccessible, close } = await openConsole(browser, server.url, "", { isRichText: true });
    await page.getByRole("main").getByRole("link", { name: "colors" }).click();
    // The table: what is typed over a cell is saved, and undone by keys.
    await page.getByRole("navigation").getByRole("link", { name: "Table", exact: true }).click();
    await page.getByText("of 148 records read").waitFor();
    const familyOf = async (): Promise<string> => (await server.get(ALICE)).body.family;
    const before = await familyOf();
    await page
      .locator(".grid-body .grid-row")
      .filter({ hasText: "aliceblue" })
      .getByRole("gridcell", { name: before, exact: true })
      .click();
    await page.keyboard.type("icy");
    await page.keyboard.press("Enter");
    await expect.poll(familyOf).toBe("icy");
    await page.keyboard.press("Control+z");
    await expect.poll(familyOf).toBe(before);
    // The search: the server's answer and that of the library in the page, on the map.
    await page.getByRole("navigation").getByRole("link", { name: "Search" }).click();
    await page.getByText("this page found the same to the last bit").waitFor();
    await page.getByLabel("Words", { exact: true }).fill("tomato");
    await page.getByRole("button", { name: "Words only" }).click();
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await expect.poll(() => page.locator(".results .result-name").first().innerText()).toBe("tomato");
    const painted = () =>
      page
        .locator(".map-frame canvas")
        .first()
        .evaluate((canvas: HTMLCanvasElement) => {
          const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
          return data.filter((value, i) => i % 4 === 3 && value > 0).length;
        });
    await expect.poll(painted).toBeGreaterThan(148);
    const frame = page.locator(".map-frame");
    const { width, height } = (await frame.boundingBox())!;
    await frame.hover({ position: { x: width * 0.3, y: height * 0.4 } });
    await page.getByText("found in this page").waitFor();
    await page.mouse.move(0, 0);
    await page.getByLabel("Layout", { exact: true }).selectOption("neighbours");
    await page.getByText("148 records, each near its nearest neighbours").waitFor();
    await expectAccessible();
    // SQL, in an editor with coloured words.
    await page.getByRole("navigation").getByRole("link", { name: "SQL" }).click();
    const editor = page.getByRole("textbox", { name: "SQL statement" });
    await editor.fill('SELECT count(*) AS many FROM "colors"');
    await editor.press("Control+Enter");
    await page.getByRole("columnheader", { name: "many" }).waitFor();
    await page.getByRole("cell", { name: "148" }).waitFor();
    await close();
  });
});
