/** A hundred thousand records of 384 dimensions, in the table and on the map, on the real server. */
import type { Page } from "playwright-core";
import { afterEach, expect, it } from "vitest";
import { referenceSearch } from "../reference.ts";
import { describeWith } from "../support/requirements.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { createVectorTable, type VectorTable } from "../support/vector-table.ts";
import { serveConsole } from "./serve-console.ts";

const ROWS = 100_000;
const DIMENSION = 384;
/** 24 MiB. */
const SAMPLE = 16_384;
const GIB = 1024 ** 3;

describeWith("chromium", "a hundred thousand records in the console", (executablePath) => {
  let table: VectorTable;
  let proxy: TcpProxy | undefined;
  const at = serveConsole(executablePath, async (server) => {
    table = await createVectorTable(server, ROWS, DIMENSION);
  });
  afterEach(() => proxy?.close());

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
    await expect.poll(() => page.getByRole("grid").getAttribute("aria-rowcount")).toBe(String(ROWS + 1));
    const grid = page.locator(".grid");
    const rowHeight = await page.locator(".grid-body").evaluate((body) => body.clientHeight / 100_000);
    for (const row of [61_803, 99_990, 12_345, 0]) {
      await grid.evaluate((element, top) => element.scrollTo(0, top), row * rowHeight);
      const shown = page.locator(".grid-body .grid-row").filter({ hasText: table.idOf(row) });
      await expect.poll(() => shown.getByRole("gridcell").nth(1).innerText()).toBe(String(row));
      await expect.poll(() => shown.getAttribute("aria-rowindex")).toBe(String(row + 2));
      await expect.poll(() => page.locator(".grid-body .grid-row").count()).toBeLessThan(80);
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

  it("the map shows a sample before it loads them, tells how far it is, and the ten nearest to the pointer are the oracle's", async () => {
    const { page, close } = await at.open("#/search/many:main/t");
    await page.getByText("A sample: 16,384 of 100,000. All take 226 MB of this page's memory.").waitFor();
    await page.evaluate(() => {
      const seen = new Set<number>();
      Object.assign(globalThis, { progressSeen: seen });
      new MutationObserver(() => {
        const progress = document.querySelector<HTMLProgressElement>(".map progress");
        if (progress?.max === 100_000) seen.add(progress.value);
      }).observe(document.body, { subtree: true, childList: true, attributes: true });
    });
    await page.getByRole("button", { name: "Load all" }).click();
    await page.getByText("100,000 records, along the two directions").waitFor();
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

  const rest = (page: Page) => page.locator(".map-rest");
  const loadAll = (page: Page) => page.getByRole("button", { name: "Load all" });

  it("Stop shows what has come of the rest, which can be searched, and Load all goes on from there", async () => {
    proxy = await startTcpProxy(at.server.port);
    const { page, close } = await at.open("#/search/many:main/t", {}, `http://127.0.0.1:${proxy.port}`);
    await loadAll(page).waitFor();
    const asked: { filter?: unknown; limit: number }[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/vectors")) asked.push(request.postDataJSON());
    });
    await loadAll(page).click();
    await page.waitForFunction(
      (sample) => (document.querySelector<HTMLProgressElement>(".map progress")?.value ?? 0) > sample,
      SAMPLE + 2_000,
    );
    // The sample can be searched while more arrives.
    await expectFollowed(page);
    expect(await shownOf(page)).toBe(SAMPLE);
    // Stop does not wait for a network that loses everything.
    await proxy.swallow();
    await page.getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => shownOf(page)).toBeGreaterThan(SAMPLE);
    const shown = await shownOf(page);
    expect(shown).toBeLessThan(ROWS);
    await rest(page)
      .getByText(`Shown: ${shown.toLocaleString("en")} of 100,000.`)
      .waitFor();
    expect(await page.locator(".map progress").count()).toBe(0);
    await expectFollowed(page);
    await proxy.forward();
    await loadAll(page).click();
    await page.getByText("100,000 records, along the two directions").waitFor();
    expect(await rest(page).count()).toBe(0);
    // Nothing was read twice.
    expect(asked).toEqual([
      expect.objectContaining({ filter: { id: { $gt: table.idOf(SAMPLE - 1) } }, limit: ROWS - SAMPLE }),
      expect.objectContaining({ filter: { id: { $gt: table.idOf(shown - 1) } }, limit: ROWS - shown }),
    ]);
    await page.getByText("this page found the same to the last bit").waitFor();
    await close();
  });

  it("a connection that breaks leaves what has come, and says why it is not all", async () => {
    proxy = await startTcpProxy(at.server.port);
    const { page, close } = await at.open("#/search/many:main/t", {}, `http://127.0.0.1:${proxy.port}`);
    await loadAll(page).click();
    await page.waitForFunction((sample) => (document.querySelector<HTMLProgressElement>(".map progress")?.value ?? 0) > sample, SAMPLE);
    proxy.breakAll();
    await page.locator(".map").getByRole("alert").waitFor();
    expect(await shownOf(page)).toBeGreaterThan(SAMPLE);
    await expectFollowed(page);
    await loadAll(page).click();
    await page.getByText("100,000 records, along the two directions").waitFor();
    expect(await page.locator(".map").getByRole("alert").count()).toBe(0);
    await close();
  });

  it("loads no more than fits into the page's memory, and says how many of how many these are, and why", async () => {
    const { page, expectAccessible, close } = await at.open("#/search/many:main/t");
    await declareMemory(page, [0.25]);
    const fitting = Math.floor((0.25 * GIB) / 2 / (5.5 * DIMENSION + 150));
    const said = fitting.toLocaleString("en");
    await rest(page)
      .getByText("A sample: 16,384 of 100,000. All would take 226 MB of memory, and this page has 134 MB for them.")
      .waitFor();
    await page.getByRole("button", { name: `Load ${said}` }).click();
    await rest(page).getByText(`Shown: ${said} of 100,000. All would take 226 MB of memory`).waitFor();
    expect(await shownOf(page)).toBe(fitting);
    expect(await rest(page).getByRole("button").count()).toBe(0);
    await expectFollowed(page);
    await expectAccessible();
    await close();
  });

  it("shows what has come when the memory ends before that", async () => {
    const { page, close } = await at.open("#/search/many:main/t");
    // Room for all, when it is counted; and a memory of 64 MiB.
    await declareMemory(page, [8, 0.125]);
    await loadAll(page).click();
    await rest(page)
      .getByText(/^Shown: [\d,]+ of 100,000\. All would take 226 MB of memory, and this page has \d+ MB for them\./)
      .waitFor();
    const shown = await shownOf(page);
    expect(shown).toBeGreaterThan(SAMPLE);
    expect(shown).toBeLessThan(ROWS / 2);
    expect(await rest(page).getByRole("button").count()).toBe(0);
    expect(await page.locator(".map progress").count()).toBe(0);
    await expectFollowed(page);
    await close();
  });

  it("a layout that is being computed can be stopped, and one of too many says why it is not", async () => {
    const { page, close } = await at.open("#/search/many:main/t");
    const layout = page.getByLabel("Layout", { exact: true });
    await layout.selectOption("neighbours");
    await page.waitForFunction(() => (document.querySelector<HTMLProgressElement>(".map progress")?.value ?? 0) > 0);
    await expectFollowed(page);
    await page.getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => page.locator(".map progress").count()).toBe(0);
    expect(await layout.inputValue()).toBe("plane");
    await page.getByText("16,384 records (the first of more), along the two directions").waitFor();
    await expectFollowed(page);
    await loadAll(page).click();
    await page.getByText("100,000 records, along the two directions").waitFor();
    await layout.selectOption("neighbours");
    await page.locator(".map").getByRole("alert").getByText("laid out for 4 to 20,000 records, not 100,000").waitFor();
    expect(await layout.inputValue()).toBe("plane");
    await close();
  });
});

/** The browser is told to say that the machine has so much memory. @param gib  for each time that it is asked; the last stays. */
async function declareMemory(page: Page, gib: readonly number[]): Promise<void> {
  await page.addInitScript((said) => {
    let asked = 0;
    Object.defineProperty(Navigator.prototype, "deviceMemory", { get: () => said[Math.min(asked++, said.length - 1)] });
  }, gib);
  await page.reload();
}

/** How many records the map shows. */
async function shownOf(page: Page): Promise<number> {
  const label = (await page.getByRole("application", { name: "Map of" }).getAttribute("aria-label")) ?? "";
  return Number(/^Map of (\d+) records/.exec(label)?.[1]);
}

/** Wherever the pointer is, ten records of those that are shown are found in the page. */
async function expectFollowed(page: Page): Promise<void> {
  const frame = page.locator(".map-frame");
  const { width, height } = (await frame.boundingBox())!;
  await frame.hover({ position: { x: width * 0.4, y: height * 0.55 } });
  await page.getByText("found in this page").waitFor();
  const { names } = await settled(page);
  expect(names).toHaveLength(10);
  const shown = await shownOf(page);
  for (const name of names) expect(Number(name.slice(1))).toBeLessThan(shown);
  await page.mouse.move(0, 0);
}

/** What the list says, title and names at one moment. */
const settled = (page: Page): Promise<{ said: string; names: string[] }> =>
  page.locator(".results").evaluate((results) => ({
    said: results.querySelector("h2")?.textContent ?? "",
    names: [...results.querySelectorAll(".result-name")].map((name) => name.textContent?.trim() ?? ""),
  }));
