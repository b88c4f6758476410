/** The map beyond the nearest of the pointer: its legend, a line around points, pictures to keep, and how it is zoomed. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

const COLORS = "#/search/demo:main/colors";
const PATH = "/db/demo:main/tables/colors";

describeWith("chromium", "the map", (executablePath) => {
  const at = serveConsole(executablePath, undefined, { args: ["--demo"] });

  /** How many points the map shows, by their pixels. */
  const painted = (page: Page): Promise<number> =>
    page
      .locator(".map-frame canvas")
      .first()
      .evaluate((canvas: HTMLCanvasElement) => {
        const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
        return data.filter((value, i) => i % 4 === 3 && value > 0).length;
      });

  async function saved(page: Page, name: string): Promise<Buffer> {
    await page.getByText("Picture", { exact: true }).click();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name }).click();
    const path = await (await download).path();
    await page.keyboard.press("Escape");
    return readFileSync(path);
  }

  it("the legend counts, hides and shows; the wheel alone scrolls the page, and zooms with Ctrl and by buttons", async () => {
    const { page, expectAccessible, close } = await at.open(COLORS, { height: 700 });
    await page.locator(".terms").waitFor();
    await page.getByLabel("Colour", { exact: true }).selectOption("dark");
    const legend = page.getByRole("list", { name: "Colours" });
    const { body } = await at.server.post(`${PATH}/aggregate`, { aggs: { dark: { count: { filter: { dark: true } } } } });
    const dark = legend.getByRole("button", { name: `true ${body.aggs.dark}` });
    await dark.waitFor();
    const all = await painted(page);
    // Its values are written on the map.
    const above = () =>
      page
        .locator(".map-frame canvas")
        .nth(1)
        .evaluate((canvas: HTMLCanvasElement) => {
          const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
          return data.filter((value, i) => i % 4 === 3 && value > 0).length;
        });
    const without = await above();
    await legend.getByRole("button", { name: "Captions" }).click();
    await expect.poll(above).toBeGreaterThan(without + 200);
    await legend.getByRole("button", { name: "Captions" }).click();
    await expect.poll(above).toBe(without);
    await dark.click();
    await expect.poll(() => painted(page)).toBeLessThan(all * 0.9);
    await expect.poll(() => dark.getAttribute("aria-pressed")).toBe("false");
    await expectAccessible();
    await legend.getByRole("button", { name: "Show all" }).click();
    await expect.poll(() => painted(page)).toBe(all);
    await page.locator(".map-frame").hover();
    const scrolled = () => page.evaluate(() => scrollY);
    await page.mouse.wheel(0, 200);
    await expect.poll(scrolled).toBeGreaterThan(0);
    await page.getByText("with the wheel zooms").waitFor();
    expect(await painted(page)).toBe(all);
    // It has moved away from below the pointer.
    await page.locator(".map-frame").hover();
    const before = await scrolled();
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -400);
    await page.keyboard.up("Control");
    await expect.poll(() => painted(page)).not.toBe(all);
    expect(await scrolled()).toBe(before);
    await page.getByRole("group", { name: "Zoom" }).getByRole("button", { name: "All" }).click();
    await expect.poll(() => painted(page)).toBe(all);
    await close();
  });

  it("follows the records: what another window changes, adds and deletes, in the map and in the results", async () => {
    await at.server.put("/db/live:main");
    const columns = [
      { name: "v", type: "vector", vector: { dimension: 2 } },
      { name: "kind", type: "string" },
    ];
    await at.server.put("/db/live:main/tables/t", { columns });
    const path = "/db/live:main/tables/t";
    const operations = Array.from({ length: 40 }, (_, i) => ({
      insert: { table: "t", record: { id: `r${10 + i}`, v: [Math.cos(i), Math.sin(i) + i / 50], kind: i % 2 === 0 ? "even" : "odd" } },
    }));
    await at.server.post("/db/live:main/transaction", { operations });
    const { page, close } = await at.open("#/search/live:main/t");
    await page.locator(".terms").waitFor();
    await page.getByLabel("Colour", { exact: true }).selectOption("kind");
    const legend = page.getByRole("list", { name: "Colours" });
    await legend.getByRole("button", { name: "even 20" }).waitFor();
    await page.getByRole("button", { name: "Zoom in" }).click();
    const pixels = () =>
      page
        .locator(".map-frame canvas")
        .first()
        .evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
    const before = await pixels();
    await at.server.request("PATCH", `${path}/data/r12`, { v: [0.1, 0.1] });
    await expect.poll(pixels).not.toBe(before);
    // A record that is nearest to the query from now on is in the results, without a click.
    const title = (await page.locator(".results li button").first().getAttribute("title"))!;
    const [id] = /r\d+/.exec(title)!;
    const { body } = await at.server.get(`${path}/data/${id}`);
    await at.server.put(`${path}/data/twin`, { v: body.v, kind: "even" });
    await page.getByTitle("Why was twin found?").waitFor();
    await legend.getByRole("button", { name: "even 21" }).waitFor();
    await at.server.request("DELETE", `${path}/data/twin`);
    await page.getByTitle("Why was twin found?").waitFor({ state: "detached" });
    await legend.getByRole("button", { name: "even 20" }).waitFor();
    await at.server.request("PATCH", `${path}/data/r13`, { kind: "even" });
    await legend.getByRole("button", { name: "even 21" }).waitFor();
    // The first and the last row go: others take their rows, and what is found stays right.
    for (const gone of ["r10", "r49"]) await at.server.request("DELETE", `${path}/data/${gone}`);
    await page.getByText("38 records, along").waitFor();
    await page.getByText("this page found the same to the last bit").waitFor();
    await close();
  });

  it("a line around points: a search in them, an export, a deletion that can be undone", async () => {
    await at.server.put("/db/lasso:main");
    await at.server.put("/db/lasso:main/tables/t", { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
    const operations = Array.from({ length: 30 }, (_, i) => ({
      insert: { table: "t", record: { id: `r${i}`, v: i < 12 ? [i / 100, i / 50] : [10 + i / 100, 3 - i / 50] } },
    }));
    await at.server.post("/db/lasso:main/transaction", { operations });
    const { page, expectAccessible, close } = await at.open("#/search/lasso:main/t");
    await page.locator(".terms").waitFor();
    const frame = (await page.locator(".map-frame").boundingBox())!;
    async function encloseLeft(): Promise<void> {
      const line = [
        [0.01, 0.01],
        [0.5, 0.01],
        [0.5, 0.99],
        [0.01, 0.99],
      ] as const;
      await page.getByRole("button", { name: "Lasso" }).click();
      for (const [i, [x, y]] of line.entries()) {
        await page.mouse.move(frame.x + x * frame.width, frame.y + y * frame.height, { steps: 5 });
        if (i === 0) await page.mouse.down();
      }
      await page.mouse.up();
    }
    await encloseLeft();
    const bar = page.getByRole("group", { name: "Records within the line" });
    const said = await bar.getByRole("status").innerText();
    // Which of the two groups is at the left is the map's choice.
    expect(said).toMatch(/^(12|18) records within the line$/);
    const ids = Array.from({ length: 30 }, (_, i) => i).filter((i) => i < 12 === said.startsWith("12"));
    await expectAccessible();
    await bar.getByText("Export", { exact: true }).click();
    const download = page.waitForEvent("download");
    await bar.getByRole("button", { name: "JSON Lines" }).click();
    const lines = readFileSync(await (await download).path(), "utf8")
      .trim()
      .split("\n");
    expect(lines.map((line) => JSON.parse(line).id).toSorted()).toEqual(ids.map((i) => `r${i}`).toSorted());
    await page.keyboard.press("Escape");
    await bar.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("application", { name: `Map of ${30 - ids.length} records.` }).waitFor();
    await page.goto(`${at.server.url}/console#/table/lasso:main/t`);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("30 of 30 records read").waitFor();
    await page.goto(`${at.server.url}/console#/search/lasso:main/t`);
    await page.getByRole("application", { name: "Map of 30 records." }).waitFor();
    await encloseLeft();
    await bar.getByRole("button", { name: "Search in them" }).click();
    await page.getByRole("application", { name: `Map of ${ids.length} records.` }).waitFor();
    expect(decodeURIComponent(new URL(page.url()).hash)).toContain('{"id":{"$any":["r');
    await close();
  });

  it("lays neighbours beside each other, always in the same way, and shows the principal plane again", async () => {
    const { page, expectAccessible, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    /** All pixels of the points, as a number. */
    const picture = () =>
      page
        .locator(".map-frame canvas")
        .first()
        .evaluate((canvas: HTMLCanvasElement) => {
          const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
          return data.reduce((sum, value, i) => (sum * 31 + value + (i % 7)) >>> 0, 0);
        });
    const plane = await picture();
    const layout = page.getByLabel("Layout", { exact: true });
    await layout.selectOption("neighbours");
    await page.getByText("148 records, each near its nearest neighbours").waitFor();
    await expect.poll(picture).not.toBe(plane);
    const neighbors = await picture();
    await expectAccessible();
    // The nearest still follow the pointer, wherever it is.
    const frame = page.locator(".map-frame");
    const { width, height } = (await frame.boundingBox())!;
    await frame.hover({ position: { x: width * 0.3, y: height * 0.4 } });
    await page.getByText("found in this page").waitFor();
    await page.mouse.move(0, 0);
    await page.getByLabel("Colour", { exact: true }).selectOption("family");
    await page.getByRole("list", { name: "Colours" }).waitFor();
    await page.getByText("148 records, each near its nearest neighbours").waitFor();
    await page.getByLabel("Colour", { exact: true }).selectOption("hex");
    await expect.poll(picture).toBe(neighbors);
    await layout.selectOption("principal plane");
    await page.getByText("148 records, along the two directions").waitFor();
    await expect.poll(picture).toBe(plane);
    // The same records give the same picture.
    await layout.selectOption("neighbours");
    await expect.poll(picture).toBe(neighbors);
    await close();
  });

  it("the sizes of points are those of a column of numbers, in the legend, in pictures and in the address", async () => {
    await at.server.put("/db/sizes:main");
    const columns = [
      { name: "people", type: "float" },
      { name: "kind", type: "string" },
      { name: "v", type: "vector", vector: { dimension: 2 } },
    ];
    await at.server.put("/db/sizes:main/tables/t", { columns });
    const peopleOf = (i: number): number | null => (i === 39 ? null : i * 25);
    const operations = Array.from({ length: 40 }, (_, i) => ({
      insert: { table: "t", record: { id: `r${i}`, people: peopleOf(i), kind: `k${i % 2}`, v: [i % 8, Math.floor(i / 8)] } },
    }));
    await at.server.post("/db/sizes:main/transaction", { operations });
    const { page, expectAccessible, close } = await at.open("#/search/sizes:main/t");
    await page.locator(".terms").waitFor();
    const even = await painted(page);
    const size = page.getByLabel("Size", { exact: true });
    expect(await size.locator("option").allInnerTexts()).toEqual(["all the same", "people"]);
    await size.selectOption("people");
    const legend = page.getByRole("img", { name: "Sizes: people, 0, 475, 950, none: 1" });
    await legend.waitFor();
    await expect.poll(() => painted(page)).toBeGreaterThan(even);
    await expectAccessible();
    expect(new URL(page.url()).hash).toContain("sizes=people");
    // As large as the points are.
    const ringsOf = (circles: readonly string[]): number[] => circles.map((circle) => Number(/ r="([\d.]+)"/.exec(circle)?.[1]));
    const rings = await legend.locator("circle").evaluateAll((circles) => circles.map((circle) => Number(circle.getAttribute("r"))));
    const svg = (await saved(page, "SVG, the points")).toString();
    const circles = svg.match(/<circle [^>]*>/g)!;
    const [points, marks] = [circles.filter((circle) => !circle.includes("stroke")), circles.filter((circle) => circle.includes("stroke"))];
    const radii = ringsOf(points);
    expect(points).toHaveLength(40);
    expect(radii).toEqual(radii.toSorted((a, b) => b - a));
    for (const [i, ring] of ringsOf(marks).entries()) expect(ring).toBeCloseTo(rings[i]!, 1);
    expect(radii[0]).toBeCloseTo(rings[2]!, 1);
    // The area grows evenly: the middle value has the mean of the two areas.
    expect(radii[19]! ** 2).toBeCloseTo((radii[0]! ** 2 + radii[38]! ** 2) / 2, 0);
    expect(radii[38]).toBeCloseTo(radii[39]!, 1);
    expect(svg).toMatch(/<text [^>]*>people<\/text>.*<text [^>]*>475<\/text>/);
    const withSizes = await saved(page, "PNG, as it is seen");
    // Colours, a layout and captions stay beside them, and all come back with the address.
    await page.getByLabel("Colour", { exact: true }).selectOption("kind");
    await page.getByRole("list", { name: "Colours" }).getByRole("button", { name: "Captions" }).click();
    await page.getByLabel("Layout", { exact: true }).selectOption("neighbours");
    await page.getByText("40 records, each near its nearest neighbours").waitFor();
    await page.reload();
    await page.getByText("40 records, each near its nearest neighbours").waitFor();
    await legend.waitFor();
    expect(await size.inputValue()).toBe("people");
    expect(await page.getByLabel("Colour", { exact: true }).inputValue()).toBe("kind");
    expect(await page.getByRole("button", { name: "Captions" }).getAttribute("aria-pressed")).toBe("true");
    await page.getByLabel("Layout", { exact: true }).selectOption("principal plane");
    await page.getByLabel("Colour", { exact: true }).selectOption("plain");
    await size.selectOption("all the same");
    await expect.poll(() => painted(page)).toBe(even);
    expect(await legend.count()).toBe(0);
    expect((await saved(page, "PNG, as it is seen")).equals(withSizes)).toBe(false);
    await close();
  });

  it("a picture of the map is saved as PNG or SVG; the bars reach from the lowest to the highest score", async () => {
    const { page, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    const png = await saved(page, "PNG, as it is seen");
    expect(png.subarray(1, 4).toString()).toBe("PNG");
    const canvas = page.locator(".map-frame canvas").first();
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual(
      await canvas.evaluate(({ width, height }: HTMLCanvasElement) => [width, height]),
    );
    const svg = (await saved(page, "SVG, the points")).toString();
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
    expect(svg.match(/<circle /g)).toHaveLength(148);
    // The record that is the query would make the others short: it has the whole bar.
    const widths = await page
      .locator(".results .bar rect:not(.track)")
      .evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute("width"))));
    expect(widths[1]).toBeCloseTo(100);
    expect(widths.at(-1)).toBeCloseTo(6);
    expect(widths.slice(1)).toEqual(widths.slice(1).toSorted((a, b) => b - a));
    await close();
  });
});
