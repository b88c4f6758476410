/** Files into tables and tables into files, as a person does it, on the real server. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { closeChromium, launchChromium } from "../browser/launch.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer } from "../support/server.ts";
import { openConsole } from "./console-page.ts";
import { serveConsole } from "./serve-console.ts";

const TABLE = "/db/files:main/tables/items";
const DIMENSION = 3;

describeWith("chromium", "files in the console", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/files:main");
    await server.put(TABLE, {
      columns: [
        { name: "title", type: "string" },
        { name: "price", type: "int" },
        { name: "tags", type: "multiple" },
        { name: "look", type: "vector", vector: { dimension: DIMENSION } },
      ],
    });
  });

  const count = async (): Promise<number> => (await at.server.post(`${TABLE}/aggregate`, { aggs: { n: { count: "*" } } })).body.aggs.n;
  /** As when it is dragged from a folder. */
  const drop = (page: Page, name: string, content: string | readonly number[]): Promise<void> =>
    page.locator(".spreadsheet").evaluate(
      (target, { name, content }) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([typeof content === "string" ? content : Uint8Array.from(content)], name));
        target.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
      },
      { name, content },
    );

  it("imports a dropped CSV: a preview, a choice of columns, errors with their line, and undo", async () => {
    const { page, expectAccessible, close } = await at.open("#/table/files:main/items");
    await page.getByText("0 of 0 records read").waitFor();
    const lines = Array.from({ length: 1_500 }, (_, i) => `c${i},"T ""${i}"", ü",${i === 1_200 ? "many" : i},"[""a"",""b""]","${i} 1 2",x`);
    await drop(page, "items.csv", `id,title,cost,tags,look,more\r\n${lines.join("\r\n")}\r\n`);
    const panel = page.getByRole("region", { name: "Import", exact: true });
    await panel.getByText('T "0", ü').waitFor();
    await panel.getByLabel("Column for cost").selectOption("price");
    await expect.poll(() => panel.getByLabel("Column for title").inputValue()).toBe("title");
    await expect.poll(() => panel.getByLabel("Column for more").inputValue()).toBe("");
    await expectAccessible();
    await panel.getByRole("button", { name: "Import" }).click();
    // The first transaction is written, the second refused as a whole.
    await panel.getByText('line 1202: price: expected a number, got "many"').waitFor();
    await panel.getByText("1,000 records were imported before that.").waitFor();
    expect(await count()).toBe(1_000);
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(count).toBe(0);
    await panel.getByRole("button", { name: "Close" }).click();
    await drop(
      page,
      "items.csv",
      `id,title,price,tags,look\n${lines.map((line) => line.replace("many", "7").replace(/,x$/, "")).join("\n")}`,
    );
    await panel.getByRole("button", { name: "Import" }).click();
    await panel.getByText("1,500 records were imported.").waitFor();
    await page.getByText("of 1,500 records read").waitFor();
    expect((await at.server.get(`${TABLE}/data/c1200`)).body).toMatchObject({
      title: 'T "1200", ü',
      price: 7,
      tags: ["a", "b"],
      look: [1200, 1, 2],
    });
    await close();
  });

  it("an import can be stopped: what was written before is said, and stays", async () => {
    await at.server.put("/db/files:main/tables/numbers", { columns: [{ name: "number", type: "int" }] });
    const { page, close } = await at.open("#/table/files:main/numbers");
    await page.getByText("0 of 0 records read").waitFor();
    let release = (): void => {};
    const isStopped = new Promise<void>((resolve) => {
      release = resolve;
    });
    let written = 0;
    // The second transaction is on its way until Stop was pressed.
    await page.route("**/db/files:main/transaction", async (route) => {
      written++;
      if (written === 2) await isStopped;
      await route.continue();
    });
    await drop(page, "numbers.csv", `number\n${Array.from({ length: 5_000 }, (_, i) => i).join("\n")}`);
    const panel = page.getByRole("region", { name: "Import", exact: true });
    await panel.getByRole("button", { name: "Import" }).click();
    await panel.getByText("1,000 records").first().waitFor();
    await panel.getByRole("button", { name: "Stop" }).click();
    release();
    await panel.getByText("Stopped. 2,000 records were imported before that.").waitFor();
    await page.getByText("of 2,000 records read").waitFor();
    expect(written).toBe(2);
    await close();
  });

  it("imports JSON Lines and npy, refuses existing ids unless told to replace them, and reports files of other kinds", async () => {
    const { page, close } = await at.open("#/table/files:main/items");
    const panel = page.getByRole("region", { name: "Import", exact: true });
    await page.locator(".grid").waitFor();
    await drop(page, "more.jsonl", '{"id": "j1", "title": "one", "look": [1, 2, 3]}\n\n{"id": "c3", "title": "changed"}\n');
    await panel.getByRole("button", { name: "Import" }).click();
    await panel
      .getByRole("alert")
      .filter({ hasText: /line 3: .*c3/ })
      .waitFor();
    expect((await at.server.get(`${TABLE}/data/j1`)).status).toBe(404);
    await panel.getByLabel(/Replace records/).check();
    await panel.getByRole("button", { name: "Import" }).click();
    await panel.getByText("2 records were imported.").waitFor();
    expect((await at.server.get(`${TABLE}/data/c3`)).body.title).toBe("changed");
    await drop(page, "bad.jsonl", '{"id": "k1"}\nnot json\n');
    await panel.getByText("line 2: not valid JSON").waitFor();
    await drop(
      page,
      "vectors.npy",
      npy([
        [5, 6, 7],
        [8, 9, 10],
      ]),
    );
    await expect.poll(() => panel.getByLabel("Column for vector").inputValue()).toBe("look");
    await panel.getByRole("button", { name: "Import" }).click();
    await panel.getByText("2 records were imported.").waitFor();
    expect((await at.server.get(`${TABLE}/data/1`)).body.look).toEqual([8, 9, 10]);
    await drop(page, "photo.png", "x");
    await panel.getByText("photo.png is none of .csv, .jsonl, .npy and .parquet.").waitFor();
    await close();
  });

  it("exports what the filter selects, in files that can be imported again", async () => {
    const { page, close } = await at.open("#/table/files:main/items");
    await page.locator(".grid").waitFor();
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByLabel("Filter", { exact: true }).fill('{"price": {"$ge": 300}}');
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("of 1,199 records read").waitFor();
    const { body } = await at.server.post(`${TABLE}/query`, { filter: { id: "c1234" } });
    await page.getByText("Export", { exact: true }).click();
    const save = async (button: string): Promise<Buffer> => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: button, exact: true }).click(),
      ]);
      return readFile(await download.path());
    };
    const records = (await save("JSON Lines"))
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records).toHaveLength(1_199);
    const { xata: _metadata, ...fields } = body.records[0];
    expect(records.find(({ id }) => id === "c1234")).toEqual(fields);
    const csv = (await save("CSV")).toString().split("\r\n");
    expect(csv[0]).toBe("id,title,price,tags,look");
    expect(csv).toContain('c1234,"T ""1234"", ü",1234,"[""a"",""b""]","[1234,1,2]"');
    // For spreadsheets, texts are no formulas; numbers, lists and vectors are as they are.
    await at.server.put(`${TABLE}/data/-formula`, { title: '=HYPERLINK("http://x")', price: 301, tags: ["=1"], look: [-1, 0, 0] });
    const guarded = (await save("CSV for spreadsheets")).toString().split("\r\n");
    expect(guarded).toContain(`'-formula,"'=HYPERLINK(""http://x"")",301,"[""=1""]","[-1,0,0]"`);
    expect(guarded.filter((line) => !line.startsWith("'")).toSorted()).toEqual(csv.toSorted());
    expect((await save("CSV")).toString().split("\r\n")).toContain('-formula,"=HYPERLINK(""http://x"")",301,"[""=1""]","[-1,0,0]"');
    await at.server.delete(`${TABLE}/data/-formula`);
    const array = await save("look as npy");
    const length = array.readUInt16LE(8) + 10;
    expect(array.toString("latin1", 10, length)).toContain(`'shape': (1199, ${DIMENSION})`);
    expect(array.length).toBe(length + 1_199 * DIMENSION * 4);
    const ids = records.map(({ id }) => id).toSorted();
    expect(array.readFloatLE(length + 12 * ids.indexOf("c1234"))).toBe(1234);
    await close();
  });
});

describeWith("chromium", "large files from the console", (executablePath) => {
  it("asks before the browser holds more than allowed, and continues or stops", async () => {
    const browser = await launchChromium(executablePath);
    const server = await startServer();
    try {
      await server.put("/db/large:main");
      await server.put("/db/large:main/tables/t", { columns: [{ name: "text", type: "text" }] });
      const statement = `INSERT INTO "t" ("id", "text") SELECT 'r' || n, repeat('x', 1000000) FROM generate_series($1::int, $1::int + 9) n`;
      for (let from = 1; from <= 70; from += 10) {
        expect((await server.post("/db/large:main/sql", { statement, params: [from] })).body.rowCount).toBe(10);
      }
      const { page, expectAccessible, close } = await openConsole(browser, server.url, "#/table/large:main/t");
      await page.getByText("of 70 records read").waitFor();
      await page.getByText("Export", { exact: true }).click();
      const start = page.getByRole("button", { name: "JSON Lines" });
      const question = page.getByText(/^The file is held in memory until it is saved: \d+ MB so far\.$/);
      const downloads: string[] = [];
      page.on("download", (download) => downloads.push(download.suggestedFilename()));
      await start.click();
      await question.waitFor();
      await expectAccessible();
      await page.getByRole("button", { name: "Stop" }).click();
      await start.click();
      await question.waitFor();
      expect(downloads).toEqual([]);
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Continue" }).click()]);
      const text = await readFile(await download.path(), "latin1");
      expect(text.split("\n")).toHaveLength(71);
      expect(text.length).toBeGreaterThan(70_000_000);
      await close();
    } finally {
      await closeChromium(browser);
      await server.stop();
    }
  });
});

/** As numpy.save writes float64. */
function npy(rows: readonly (readonly number[])[]): number[] {
  const header = `{'descr': '<f8', 'fortran_order': False, 'shape': (${rows.length}, ${rows[0]?.length}), }`.padEnd(117);
  const bytes = Buffer.concat([Buffer.from([0x93]), Buffer.from("NUMPY"), Buffer.from([1, 0, 118, 0]), Buffer.from(`${header}\n`)]);
  return [...bytes, ...Buffer.from(Float64Array.from(rows.flat()).buffer)];
}
