/**
 * A newcomer's path: an empty server, a file of vectors that others have made, a search by words and vector, a link that is passed on.
 * Its clicks are counted.
 */
import { readFileSync } from "node:fs";
import type { Locator } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const ROWS = 2_000;
const DIMENSION = 128;
const PLACES = ["a harbour", "a facade", "a garden", "a street", "an old map"];

describeWith("bigann10k", "a newcomer with real vectors", (folder) => {
  describeWith("chromium", "at the console", (executablePath) => {
    const at = serveConsole(executablePath);

    it("comes from a file to a search by words and vector, and passes it on, with three clicks", async () => {
      const { page, expectAccessible, close } = await at.open("#/home");
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      let clicks = 0;
      const click = async (target: Locator): Promise<void> => {
        await target.click();
        clicks++;
      };
      await page.getByRole("heading", { name: "Drop a file here" }).waitFor();
      await page.evaluate(
        (text) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([text], "patches.csv"));
          document.querySelector("main")?.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        },
        csvOf(`${folder}/base.bvecs`),
      );
      await click(page.getByRole("button", { name: "Create and import" }));
      await page.getByRole("application", { name: `Map of ${ROWS} records.` }).waitFor();
      await page.getByRole("heading", { name: /^Nearest to Patch \d+ of a/ }).waitFor();
      await click(page.getByLabel("Words", { exact: true }));
      await page.keyboard.type("harbour");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: /^“harbour”, near Patch/ }).waitFor();
      const names = (await page.locator(".results .result-name").allInnerTexts()).map((name) => name.trim());
      expect(names).toHaveLength(10);
      expect(names[0]).toMatch(/^Patch \d+ of a harbour$/);
      await expectAccessible();
      await click(page.getByRole("button", { name: "Copy link" }));
      await page.getByRole("button", { name: "Copied" }).waitFor();
      const link = await page.evaluate(() => navigator.clipboard.readText());
      const other = await at.open(new URL(link).hash);
      await other.page.getByRole("heading", { name: /^“harbour”, near Patch/ }).waitFor();
      await expect
        .poll(async () => (await other.page.locator(".results .result-name").allInnerTexts()).map((name) => name.trim()))
        .toEqual(names);
      expect(clicks).toBe(3);
      await other.close();
      await close();
    });
  });
});

/** The first vectors of a .bvecs file (int32 dimension, then bytes), each with a title. */
function csvOf(path: string): string {
  const bytes = readFileSync(path);
  const lines = Array.from({ length: ROWS }, (_, i) => {
    const begin = i * (4 + DIMENSION) + 4;
    return `p${i},Patch ${i} of ${PLACES[i % PLACES.length]},"[${[...bytes.subarray(begin, begin + DIMENSION)]}]"`;
  });
  return `id,title,descriptor\n${lines.join("\n")}\n`;
}
