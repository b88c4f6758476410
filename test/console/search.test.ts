/** Home and search with the map, as a person uses them, on the real server. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { closeChromium, launchChromium } from "../browser/launch.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer } from "../support/server.ts";
import { openConsole } from "./console-page.ts";
import { serveConsole } from "./serve-console.ts";

const names = (page: Page): Promise<string[]> => page.locator(".results .result-name").allInnerTexts();
const COLORS = "#/search/demo:main/colors";

describeWith("chromium", "the console", (executablePath) => {
  const at = serveConsole(executablePath);

  it("says that the server is empty, loads the demo at a click, and shows the colours nearest to one", async () => {
    const { page, expectAccessible, close } = await at.open("");
    await page.getByRole("button", { name: "Load the demo" }).waitFor();
    await expectAccessible();
    await page.getByRole("button", { name: "Load the demo" }).click();
    await page.locator(".terms").waitFor();
    expect(await page.title()).toBe("colors · Search · demo:main · Lodestone");
    expect((await at.server.get("/db/demo:main")).body.schema.tables[0].name).toBe("colors");
    expect((await names(page)).slice(0, 4)).toEqual(["rebeccapurple", "indigo", "darkslateblue", "slateblue"]);
    // The server's answer and that of the library in the page, compared to the last bit.
    await page.getByText("this page found the same to the last bit").waitFor();
    await expectAccessible();
    await page.getByRole("link", { name: "Home" }).click();
    await page.getByRole("main").getByRole("link", { name: "colors" }).waitFor();
    await expect.poll(() => page.locator("tbody tr td").first().innerText()).toBe("148");
    // 148 vectors of 3 numbers, five bytes each.
    await expect.poll(() => page.locator("tbody tr td").nth(3).innerText()).toBe("≤ 3 kB");
    // On disk, as the server says it; and whether searches see all changes.
    const { tables } = (await at.server.get("/db/demo:main/statistics")).body;
    await expect.poll(() => page.locator("tbody tr td").nth(4).innerText()).toBe(`${Math.ceil(tables[0].sizeBytes / 1000)} kB`);
    await expect.poll(() => page.locator(".search-state").innerText()).toMatch(/^148 vectors, .* in memory · no lag$/);
    await page.getByRole("button", { name: "Python" }).click();
    await expect
      .poll(() => page.locator(".snippets pre").innerText())
      .toContain(`${at.server.url}/db/demo:main/tables/colors/vectorSearch`);
    await expectAccessible();
    await close();
  });

  it("the nearest follow the pointer over the map, and a click makes the record there the query", async () => {
    const { page, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    const frame = page.locator(".map-frame");
    const { width, height } = (await frame.boundingBox())!;
    const seen = new Set<string>();
    for (const [x, y] of [
      [0.2, 0.3],
      [0.5, 0.2],
      [0.8, 0.5],
    ] as const) {
      await frame.hover({ position: { x: width * x, y: height * y } });
      await page.getByText("found in this page").waitFor();
      await expect.poll(async () => seen.has((await names(page)).join())).toBe(false);
      seen.add((await names(page)).join());
      expect(await names(page)).toHaveLength(10);
    }
    await page.mouse.move(0, 0);
    await expect.poll(async () => (await names(page))[0]).toBe("rebeccapurple");
    // By the keyboard as well: to the middle, and on until there is a record to take.
    await frame.focus();
    await page.keyboard.press("ArrowRight");
    await page.getByText("found in this page").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "More like indigo" }).click();
    await expect.poll(async () => (await names(page)).slice(0, 1)).toEqual(["indigo"]);
    expect(
      await page
        .getByRole("textbox", { name: "Record" })
        .or(page.getByRole("combobox", { name: "Record" }))
        .inputValue(),
    ).toBe("indigo");
    await close();
  });

  it("an error in the map's worker leaves no question open: the pointer is followed on", async () => {
    const { page } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    const frame = page.locator(".map-frame");
    const { width, height } = (await frame.boundingBox())!;
    const point = (x: number, y: number) => frame.hover({ position: { x: width * x, y: height * y } });
    await point(0.2, 0.3);
    await page.getByText("found in this page").waitFor();
    const before = (await names(page)).join();
    const worker = page.workers()[0]!;
    // The answer to a question gets lost …
    await worker.evaluate(() => {
      const scope = globalThis as unknown as { postMessage: () => void; kept: () => void; lost: number };
      scope.lost = 0;
      scope.kept = scope.postMessage;
      scope.postMessage = () => {
        scope.lost++;
      };
    });
    await point(0.5, 0.2);
    await expect.poll(() => worker.evaluate(() => (globalThis as unknown as { lost: number }).lost)).toBeGreaterThan(0);
    // … in an error.
    const error = page.waitForEvent("pageerror");
    await worker.evaluate(() => {
      const scope = globalThis as unknown as { postMessage: () => void; kept: () => void };
      scope.postMessage = scope.kept;
      setTimeout(() => {
        throw new Error("as by a bug");
      });
    });
    await error;
    await point(0.8, 0.5);
    await expect.poll(async () => (await names(page)).join()).not.toBe(before);
    // Without its check that there was no error.
    await page.close();
  });

  it("another measure gives other neighbours, a filter excludes records, and the terms are those of the chosen pair", async () => {
    const { page, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    const byDistance = await names(page);
    await page.getByLabel("Measure").selectOption("cosineSimilarity");
    await expect.poll(async () => (await names(page)).join()).not.toBe(byDistance.join());
    await expect.poll(() => page.locator(".formula").innerText()).toContain("‖x‖");
    await page.getByLabel("Measure").selectOption("l1");
    await page.getByLabel("Filter").fill('{"family": "blue"}');
    await page.getByRole("button", { name: "Search", exact: true }).click();
    const { body } = await at.server.post("/db/demo:main/tables/colors/vectorSearch", {
      column: "lab",
      queryVector: [32.902, 42.883, -47.149],
      similarityFunction: "l1",
      filter: { family: "blue" },
    });
    await expect.poll(() => names(page)).toEqual(body.results.map(({ id }: { id: string }) => id));
    await page.locator(".results .result-name").nth(2).click();
    const id = body.results[2].id;
    await expect.poll(() => page.locator(".terms h2").innerText()).toBe(`Why ${id} is near rebeccapurple`);
    // 1 / (1 + the terms that are shown) is the score that the server gave.
    await expect
      .poll(async () => {
        const terms = await page.locator(".term-lines tbody tr td:nth-of-type(3)").allInnerTexts();
        return 1 / (1 + terms.reduce((sum, term) => sum + Number(term), 0));
      })
      .toBeCloseTo(body.results[2].score, 4);
    await close();
  });

  it("colours the map by another column without reading the vectors again", async () => {
    const { page, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.getByLabel("Colour", { exact: true }).selectOption("family");
    const legend = page.getByRole("list", { name: "Colours" }).getByRole("listitem");
    await legend.filter({ hasText: "blue" }).waitFor();
    await page.getByLabel("Colour", { exact: true }).selectOption("dark");
    await expect.poll(async () => (await legend.locator("bdi").allInnerTexts()).toSorted()).toEqual(["false", "true"]);
    await page.getByLabel("Colour", { exact: true }).selectOption("plain");
    await expect.poll(() => legend.count()).toBe(0);
    expect(asked.filter((path) => path.endsWith("/vectors"))).toEqual([]);
    await page.locator(".map-frame").hover();
    await page.getByText("found in this page").waitFor();
    await close();
  });

  const PATH = "/db/demo:main/tables/colors";
  const LAB = [32.902, 42.883, -47.149];
  const idsOf = ({ records }: { records: { id: string }[] }): string[] => records.map(({ id }) => id);

  it("finds by words, misspelt ones, too, marks them, and says what each gave in each column", async () => {
    const { page, expectAccessible, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    const search = page.getByRole("button", { name: "Search", exact: true });
    await page.getByRole("button", { name: "Words only" }).click();
    await search.click();
    await page.locator(".fault").filter({ hasText: "Type the words to search for." }).waitFor();
    await page.getByLabel("Words", { exact: true }).fill("bleu");
    await search.click();
    const found = (await at.server.post(`${PATH}/search`, { query: "bleu", fuzziness: 1, page: { size: 10 }, explain: true })).body;
    await expect.poll(() => names(page)).toEqual(idsOf(found));
    await expect.poll(() => page.locator(".results mark").first().innerText()).toBe("blue");
    expect((await page.locator(".matches").first().boundingBox())!.width).toBeGreaterThan(200);
    // The first one is chosen: its words add up to its score.
    const { words } = found.records[0].xata.explain.text;
    expect(words.length).toBeGreaterThan(1);
    const lines = await page.locator(".why tr").allInnerTexts();
    expect(lines).toHaveLength(words.length);
    for (const [i, { column, documentFrequency }] of words.entries())
      expect(lines[i]).toMatch(new RegExp(`bleu.*in ${column}.*${documentFrequency} records`, "s"));
    const scores = await page.locator(".why td.number").allInnerTexts();
    expect(scores.reduce((sum, score) => sum + Number(score), 0)).toBeCloseTo(found.records[0].xata.score, 3);
    await expectAccessible();
    // Another result explains itself when it is chosen.
    await page.locator(".result-name").nth(1).click();
    await expect.poll(() => page.locator(".results li").nth(1).locator(".why").count()).toBe(1);
    await expect.poll(() => page.locator(".why").count()).toBe(1);
    // Taken as they are typed: nothing.
    await page.getByLabel("Typos allowed").selectOption("none");
    await page.getByText("Nothing found.").waitFor();
    await close();
  });

  it("searches words and a vector at once, as the server does, and shows what each half contributed", async () => {
    const { page, expectAccessible, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    await page.getByLabel("Words", { exact: true }).fill("blue");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    const vector = { column: "lab", queryVector: LAB, similarityFunction: "l2" };
    const ask = async (fusion: object) =>
      (await at.server.post(`${PATH}/search`, { query: "blue", vector, fusion, page: { size: 10 }, explain: true })).body;
    const both = await ask({});
    await expect.poll(() => names(page)).toEqual(idsOf(both));
    // The first is the query itself; the next is chosen.
    const { score, explain } = both.records[1].xata;
    const halves = await page.locator(".why td strong").allInnerTexts();
    expect(halves.map(Number)).toEqual([expect.closeTo(explain.vector.contribution, 4), expect.closeTo(explain.text.contribution, 4)]);
    expect(Number(halves[0]) + Number(halves[1])).toBeCloseTo(score, 3);
    await expect
      .poll(() => page.locator(".results .bar").nth(1).getAttribute("aria-label"))
      .toBe(`vector ${halves[0]}, words ${halves[1]}`);
    // The numbers that are shown are those that give the contribution.
    const [weight, value, mean, deviation] = (await page.locator(".why td.muted").first().innerText()).match(/[\d.e-]+/g)!.map(Number);
    expect((weight! * (value! - mean!)) / deviation!).toBeCloseTo(explain.vector.contribution, 1);
    await expectAccessible();
    await page.getByLabel("Combined by").selectOption("ranks");
    await page.getByLabel("k", { exact: true }).fill("0");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.locator(".field .fault").filter({ hasText: "fusion.k" }).waitFor();
    await page.getByLabel("k", { exact: true }).fill("1");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await expect.poll(() => names(page)).toEqual(idsOf(await ask({ method: "rrf", k: 1 })));
    // All weight on the vector, then on the words.
    await page.getByLabel("Combined by").selectOption("raw scores");
    for (const vectorWeight of [1, 0]) {
      await page.getByLabel("Weight").fill(String(vectorWeight));
      await expect.poll(() => names(page)).toEqual(idsOf(await ask({ method: "linear", vectorWeight })));
    }
    await close();
  });

  it("how words and vector are combined is in the address, and comes back with it", async () => {
    const { page, close } = await at.open(`${COLORS}?words=blue&like=rebeccapurple&combined=rrf&k=1`);
    const vector = { column: "lab", queryVector: LAB, similarityFunction: "l2" };
    const ask = async (fusion: object) =>
      idsOf((await at.server.post(`${PATH}/search`, { query: "blue", vector, fusion, page: { size: 10 } })).body);
    await expect.poll(() => names(page)).toEqual(await ask({ method: "rrf", k: 1 }));
    await expect.poll(() => page.getByLabel("k", { exact: true }).inputValue()).toBe("1");
    await page.getByLabel("Combined by").selectOption("raw scores");
    await page.getByLabel("Weight").fill("0.8");
    const heavier = await ask({ method: "linear", vectorWeight: 0.8 });
    await expect.poll(() => names(page)).toEqual(heavier);
    expect(new URL(page.url()).hash).toMatch(/combined=linear/);
    expect(new URL(page.url()).hash).toMatch(/weight=0\.8/);
    await page.reload();
    await expect.poll(() => names(page)).toEqual(heavier);
    await expect.poll(() => page.getByLabel("Weight").inputValue()).toBe("0.8");
    await close();
  });

  it("a search can be stopped, and one that comes before the server has read the table goes on when it has", async () => {
    const { page, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    const before = await names(page);
    let isReading = false;
    await page.route(`**${PATH}/search`, (route) => {
      if (!isReading) return; // no answer
      isReading = false;
      const message = "The search store is still reading branch demo:main; try again in a moment.";
      return route.fulfill({
        status: 503,
        headers: { "retry-after": "1" },
        contentType: "application/json",
        body: JSON.stringify({ message }),
      });
    });
    await page.getByLabel("Words", { exact: true }).fill("blue");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    const aborted = page.waitForEvent("requestfailed");
    await page.getByRole("button", { name: "Stop" }).click();
    await aborted;
    await page.getByRole("button", { name: "Search", exact: true }).waitFor();
    expect(await names(page)).toEqual(before);
    isReading = true;
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByRole("status").filter({ hasText: "still reading branch demo:main" }).waitFor();
    await page.unroute(`**${PATH}/search`);
    await page.getByText("“blue”, near rebeccapurple").waitFor();
    await expect.poll(() => page.getByText("still reading").count()).toBe(0);
    await close();
  });

  it("shows the terms of any two records, even of one that was not found", async () => {
    const { page, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    await page.getByLabel("Compare with").fill("lemonchiffon");
    await page.getByRole("button", { name: "Compare" }).click();
    await expect.poll(() => page.locator(".terms h2").innerText()).toBe("Why lemonchiffon is near rebeccapurple");
    await page.getByLabel("Compare with").fill("nocolour");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator(".terms .fault").filter({ hasText: "nocolour" }).waitFor();
    await close();
  });

  it("loads a sample of many vectors and the rest when it is asked for, and then finds in them what the server finds", async () => {
    const rows = 20_500;
    await at.server.put("/db/many:main");
    await at.server.put("/db/many:main/tables/t", { columns: [{ name: "v", type: "vector", vector: { dimension: 4 } }] });
    const statement = `INSERT INTO "t" ("id", "v") SELECT 'r' || n, ARRAY[sin(n), cos(n * 1.3), sin(n * 0.7), n % 17]::real[] FROM generate_series(1, $1::int) n`;
    expect((await at.server.post("/db/many:main/sql", { statement, params: [rows] })).body.rowCount).toBe(rows);
    const { page, close } = await at.open("#/search/many:main/t");
    // A sample at once, and a search beside it.
    await page.getByText("A sample: 20,000 of 20,500.").waitFor();
    await page.locator(".terms").waitFor();
    // What lies on many points is darker than what lies on few.
    const opacities = await page
      .locator(".map-frame canvas")
      .first()
      .evaluate((canvas: HTMLCanvasElement) => {
        const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
        return new Set(data.filter((_, i) => i % 4 === 3)).size;
      });
    expect(opacities).toBeGreaterThan(2);
    await page.getByRole("button", { name: "Load all" }).click();
    await page.getByText("20,500 records, along the two directions").waitFor();
    await page.getByText("this page found the same to the last bit").waitFor();
    await close();
  });

  it("shows the server's message beside the wrong field, and keeps what was typed", async () => {
    const { page, expectAccessible, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    const search = page.getByRole("button", { name: "Search", exact: true });
    const size = page.getByRole("textbox", { name: "Results" });
    const saidOf = async (label: string): Promise<string> => {
      const field = page.locator("input, textarea").and(page.getByLabel(label, { exact: true }));
      const id = await field.getAttribute("aria-describedby");
      return (await field.getAttribute("aria-invalid")) === "true" ? (await page.locator(`[id="${id}"]`).allInnerTexts()).join() : "";
    };
    await page.getByRole("button", { name: "A vector" }).click();
    await page.getByLabel("Vector", { exact: true }).fill("[1, 2]");
    await search.click();
    await expect.poll(() => saidOf("Vector")).toContain('column "lab" has dimension 3');
    await page.getByLabel("Vector", { exact: true }).fill("1, two, 3");
    await search.click();
    await expect.poll(() => saidOf("Vector")).toContain("Element 1");
    await page.getByLabel("Vector", { exact: true }).fill("50 0 0");
    await size.fill("0");
    await search.click();
    await expect.poll(() => saidOf("Results")).toContain("size");
    await size.fill("3");
    await page.getByLabel("Filter").fill('{"colour": "blue"}');
    await search.click();
    await expect.poll(() => saidOf("Filter")).toContain("colour");
    await expectAccessible();
    await expect.poll(() => page.getByLabel("Vector", { exact: true }).inputValue()).toBe("50 0 0");
    await page.getByLabel("Filter").fill("");
    await search.click();
    await expect.poll(() => names(page)).toHaveLength(3);
    await page.getByRole("button", { name: "More like a record" }).click();
    await page.getByLabel("Record", { exact: true }).fill("nocolour");
    await search.click();
    await expect.poll(() => saidOf("Record")).toContain("nocolour");
    await close();
  });

  it("dark and on a phone: nothing overflows sideways, and everything can be reached and read", async () => {
    const { page, expectAccessible, close } = await at.open(COLORS, {
      colorScheme: "dark",
      width: 360,
      height: 740,
    });
    await page.locator(".terms").waitFor();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    await expectAccessible();
    await page.getByRole("button", { name: "Light colours" }).click();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
    await page.reload();
    await page.locator(".terms").waitFor();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
    await close();
  });

  it("continues after the server was away, with what was typed", async () => {
    const { page, close } = await at.open(COLORS);
    await page.locator(".terms").waitFor();
    await page.getByLabel("Record", { exact: true }).fill("tomato");
    const { port } = at.server;
    await at.server.end("SIGKILL");
    // The page may have noticed already, because it asks for suggestions: then the button is disabled.
    await page.getByRole("button", { name: "Search", exact: true }).click({ force: true });
    await page.getByText("The server is not responding").waitFor();
    await at.server.start(["--port", String(port)]);
    await page.getByText("The server is not responding").waitFor({ state: "detached" });
    await expect.poll(() => page.getByLabel("Record", { exact: true }).inputValue()).toBe("tomato");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await expect.poll(async () => (await names(page))[0]).toBe("tomato");
    await close();
  });

  it("shows names with markup, right-to-left text and long values literally", async () => {
    const table = "<img src=x onerror=alert(1)>";
    const hostile = [`<script>globalThis.hurt=1</script>`, "\u202eright to left שלום", "x".repeat(200)];
    await at.server.put("/db/hostile:main");
    await at.server.put("/db/hostile:main/tables/t", {
      columns: [
        { name: "text", type: "text" },
        { name: "v", type: "vector", vector: { dimension: 2 } },
      ],
    });
    expect((await at.server.put(`/db/hostile:main/tables/${encodeURIComponent(table)}`)).status).toBe(400);
    for (const [i, id] of hostile.entries()) {
      const statement = 'INSERT INTO "t" ("id", "text", "v") VALUES ($1, $2, $3)';
      const { status } = await at.server.post("/db/hostile:main/sql", { statement, params: [id, "y".repeat(1_000_000), [i, 1]] });
      expect(status).toBe(200);
    }
    const { page, close } = await at.open("#/search/hostile:main/t");
    await page.locator(".results").waitFor();
    expect((await names(page)).toSorted()).toEqual(hostile.toSorted());
    // Marks are the server's, and never what a record has in its text.
    await at.server.put("/db/hostile:main/tables/t/data/em", { text: 'not <em>this</em> & "that", but <b>word</b>', v: [9, 1] });
    await page.getByRole("button", { name: "Words only" }).click();
    await page.getByLabel("Words", { exact: true }).fill("word");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.locator(".matches", { hasText: 'not <em>this</em> & "that", but <b>word</b>' }).waitFor();
    await expect.poll(() => page.locator(".matches mark").allInnerTexts()).toEqual(["word"]);
    expect(await page.evaluate(() => "hurt" in globalThis || document.querySelector("main script, main img") !== null)).toBe(false);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    await close();
  });
});

describeWith("chromium", "the console of a server with keys", (executablePath) => {
  it("asks for a key, says when it is wrong, keeps it only if asked, and offers what its scope allows", async () => {
    const server = await startServer({ args: ["--api-key", "the-key"] });
    const browser = await launchChromium(executablePath);
    try {
      const { page, expectAccessible, close } = await openConsole(browser, server.url, "");
      await page.getByLabel("API key").fill("wrong");
      await expectAccessible();
      await page.getByRole("button", { name: "Open" }).click();
      await page.getByText("The API key is not valid.").waitFor();
      await page.getByLabel("API key").fill("the-key");
      await page.getByRole("button", { name: "Open" }).click();
      await page.getByRole("button", { name: "Load the demo" }).waitFor();
      expect(await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]))).not.toContain("the-key");
      await page.reload();
      await page.getByLabel("API key").fill("the-key");
      await page.getByLabel("Keep it until this tab is closed").check();
      await page.getByRole("button", { name: "Open" }).click();
      await page.getByRole("button", { name: "Load the demo" }).waitFor();
      await page.reload();
      await page.getByRole("button", { name: "Load the demo" }).click();
      // The map's worker sends the key as well.
      await page.locator(".terms").waitFor();
      await page.getByRole("button", { name: "forget" }).click();
      await page.getByLabel("API key").waitFor();
      expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
      await close();
      expect(server.log).not.toContain("the-key");
    } finally {
      await closeChromium(browser);
      await server.stop();
    }
  });
});
