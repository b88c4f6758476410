/** Home with many branches: what it asks the server for, and how it is read. */
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const COLUMNS = [{ name: "v", type: "vector", vector: { dimension: 2 } }];
const BRANCHES = 12;
/** Of them, so many are read before somebody opens one. */
const OPEN = 6;

describeWith("chromium", "the console's home with many branches", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/many:main");
    for (const table of ["part-10", "part-9"])
      expect((await server.put(`/db/many:main/tables/${table}`, { columns: COLUMNS })).status).toBe(201);
    expect((await server.post("/db/many:main/tables/part-9/data", { v: [1, 0] })).status).toBe(201);
    for (let i = 1; i < BRANCHES; i++) expect((await server.put(`/db/many:branch-${i}`, { from: "main" })).status).toBe(201);
  });

  it("asks for few of them, in the order in which people count, and for nothing while nobody can see it", async () => {
    const { page, expectAccessible, layoutShift, close } = await at.open("#/home");
    const asked: string[] = [];
    page.on("request", (request) => {
      const { pathname } = new URL(request.url());
      if (!pathname.startsWith("/console")) asked.push(pathname);
    });
    await page.clock.install();
    // What the first load asked for is not counted.
    await page.locator(".snippets").waitFor();
    asked.length = 0;
    await page.reload();
    await page.locator(".snippets").waitFor();
    await expect.poll(() => page.locator("tbody td.number").first().innerText()).toBe("1");
    const branches = await page.locator(".branch .tag").allInnerTexts();
    const numbered = Array.from({ length: BRANCHES - 1 }, (_, i) => `branch-${i + 1}`);
    expect(branches.filter((name) => !name.includes("·"))).toEqual(["main", ...numbered]);
    await expect.poll(() => page.locator("tbody th").allInnerTexts()).toEqual(Array(OPEN).fill(["part-9", "part-10"]).flat());
    const read = new Set(asked.flatMap((path) => /^\/db\/([^/]+)/.exec(path)?.[1] ?? []));
    // The one that the snippets are for is among them.
    expect(read.size).toBe(OPEN);
    // The tables and the numbers of their records, and the tables once more for what there is to paste; statistics follow.
    expect(asked.filter((path) => path.startsWith("/db/") && !path.endsWith("/statistics")).length).toBeLessThanOrEqual(2 * OPEN + 1);
    // Nothing has moved while it was filled.
    expect(await layoutShift()).toBeLessThanOrEqual(0.02);
    await expectAccessible();
    const show = (isHidden: boolean) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange"));
      }, isHidden);
    await show(true);
    asked.length = 0;
    await page.clock.runFor(60_000);
    expect(asked).toEqual([]);
    await show(false);
    await expect.poll(() => asked.filter((path) => path.endsWith("/statistics")).length).toBe(OPEN);
    // The others on demand.
    await page.getByRole("button", { name: "Show tables" }).first().click();
    await expect.poll(() => page.locator("tbody th").count()).toBe(2 * (OPEN + 1));
    await close();
  });
});
