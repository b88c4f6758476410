/** A hundred thousand records of 384 dimensions, in the table and on the map, on the real server. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { referenceSearch } from "../reference.ts";
import { describeWith } from "../support/requirements.ts";
import { createVectorTable, type VectorTable } from "../support/vector-table.ts";
import { serveConsole } from "./serve-console.ts";

const ROWS = 100_000;
const DIMENSION = 384;
/** Patience for a busy machine. */

describeWith("chromium", "a hundred thousand records in the console", (executablePath) => {
  let table: VectorTable;
  const at = serveConsole(executablePath, async (server) => {
    table = await createVectorTable(server, ROWS, DIMENSION);
  });

  /** All are scored, roughly; the oracle has the last word on those that could be among the ten. */
  function nearestTo(row: number): string[] {
    const query = table.vectorOf(row);
    const norm = (vector: Float32Array): number => Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
    const scored = Array.from({ length: ROWS }, (_, other) => {
      const vector = table.vectorOf(other);
      return { other, score: vector.reduce((sum, x, i) => sum + x * query[i]!, 0) / norm(vector) };
    });
    const best = scored.toSorted((a, b) => b.score - a.score).slice(0, 50);
    const candidates = best.map(({ other }) => [table.idOf(other), table.vectorOf(other)] as const);
    return referenceSearch(candidates, query, { k: 10, similarity: "cosineSimilarity" }).results.map(({ id }) => id);
  }

  it("the table is scrolled to any place of it, few rows in the page and not all of them held", async () => {
    const { page, expectAccessible, close } = await at.open("#/table/many:main/t");
    await page.getByText("of 100,000 records read").waitFor();
    expect(await page.getByRole("grid").getAttribute("aria-rowcount")).toBe(String(ROWS + 1));
    const grid = page.locator(".grid");
    const rowHeight = await page.locator(".grid-body").evaluate((body) => body.clientHeight / 100_000);
    for (const row of [61_803, 99_990, 12_345, 0]) {
      await grid.evaluate((element, top) => element.scrollTo(0, top), row * rowHeight);
      const shown = page.locator(".grid-body .grid-row").filter({ hasText: table.idOf(row) });
      await expect.poll(() => shown.getByRole("gridcell").nth(1).innerText()).toBe(String(row));
      expect(await shown.getAttribute("aria-rowindex")).toBe(String(row + 2));
      expect(await page.locator(".grid-body .grid-row").count()).toBeLessThan(80);
    }
    expect(Number.parseInt((await page.getByText("of 100,000 records read").innerText()).replace(",", ""), 10)).toBeLessThan(10_000);
    await expectAccessible();
    // By the keyboard, from the end of the table.
    await grid.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.locator(".grid-body .grid-row").filter({ hasText: "r099999" }).getByRole("gridcell").first().click();
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toContain("r099998");
    await close();
  });

  it("the map asks before it loads them, tells how far it is, and the ten nearest to the pointer are the oracle's", async () => {
    const { page, close } = await at.open("#/search/many:main/t");
    await page.getByText("All 100,000 take 192 MB").waitFor();
    await page.evaluate(() => {
      const seen = new Set<number>();
      Object.assign(globalThis, { progressSeen: seen });
      new MutationObserver(() => {
        const progress = document.querySelector<HTMLProgressElement>(".map-frame progress");
        if (progress?.max === 100_000) seen.add(progress.value);
      }).observe(document.body, { subtree: true, childList: true, attributes: true });
    });
    await page.getByRole("button", { name: "Load all" }).click();
    await page.getByText("100,000 records in their two principal directions").waitFor();
    const progress = await page.evaluate(() => [...(globalThis as unknown as { progressSeen: Set<number> }).progressSeen]);
    expect(progress.filter((rows) => rows > 0 && rows < ROWS).length).toBeGreaterThan(5);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
    await page.getByText("this page found the same to the last bit").waitFor();
    const title = page.locator(".results h2");
    const frame = page.locator(".map-frame");
    const { width, height } = (await frame.boundingBox())!;
    const pointedAt = new Set<string>();
    for (const [x, y] of [
      [0.45, 0.5],
      [0.55, 0.4],
      [0.5, 0.6],
    ] as const) {
      await frame.hover({ position: { x: width * x, y: height * y } });
      // Where points are this dense, one of them is under the pointer.
      await expect
        .poll(async () => /^Nearest to (r\d+)$/.test(await title.innerText()) && !pointedAt.has(await title.innerText()))
        .toBe(true);
      const { said, names } = await settled(page);
      pointedAt.add(said);
      const row = Number(/r(\d+)$/.exec(said)?.[1]);
      expect(names).toEqual(nearestTo(row));
      expect(names[0]).toBe(table.idOf(row));
    }
    await close();
  });
});

/** What the list says, title and names at one moment. */
const settled = (page: Page): Promise<{ said: string; names: string[] }> =>
  page.locator(".results").evaluate((results) => ({
    said: results.querySelector("h2")?.textContent ?? "",
    names: [...results.querySelectorAll(".result-name")].map((name) => name.textContent?.trim() ?? ""),
  }));
