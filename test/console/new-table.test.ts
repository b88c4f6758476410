/** From a file to a table and its map, as a person does it, on the real server. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { serveConsole } from "./serve-console.ts";

type Content = string | readonly number[];

/** As when it is dragged from a folder. */
const drop = (page: Page, name: string, content: Content): Promise<void> =>
  page.evaluate(
    ({ name, content }) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([typeof content === "string" ? content : Uint8Array.from(content)], name));
      const target = document.querySelector("main") as HTMLElement;
      target.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    },
    { name, content },
  );

const form = (page: Page) => page.getByRole("form", { name: "New table" });
const typeOf = (page: Page, column: string) => form(page).getByLabel(`Type of ${column}`).inputValue();

describeWith("chromium", "a file that is dropped on an empty console", (executablePath) => {
  const at = serveConsole(executablePath);

  it("becomes a table by one click, and lands on its map; the empty Home invites to it", async () => {
    const { page, expectAccessible, close } = await at.open("#/home");
    await page.getByRole("heading", { name: "Drop a file here" }).waitFor();
    await page.getByRole("button", { name: "Load the demo" }).waitFor();
    await expectAccessible();
    const rows = Array.from({ length: 1_200 }, (_, i) => {
      const place = [Math.sin(i), Math.cos(i), i / 1_200].map((value) => value.toFixed(4)).join(", ");
      return `b${i};"Grüße, Band ${i}";${i};${i / 4};${i % 2 === 0};2026-0${1 + (i % 9)}-11;[${place}]`;
    });
    const text = `id;Title (de);pages;price;sold;printed;place\r\n${rows.join("\r\n")}\r\n`;
    // As a spreadsheet saves it: in windows-1252, whose letters have the code points of latin1.
    await drop(page, "My books.csv", [...Buffer.from(text, "latin1")]);
    await form(page).getByText("CSV, 92 kB, windows-1252.").waitFor();
    await expect.poll(() => form(page).getByLabel("Name of the table").inputValue()).toBe("My_books");
    await expect.poll(() => form(page).getByLabel("Name of Title (de)").inputValue()).toBe("Title_de");
    const columns = ["id", "Title (de)", "pages", "price", "sold", "printed", "place"];
    expect(await Promise.all(columns.map((column) => typeOf(page, column)))).toEqual([
      "id",
      "string",
      "int",
      "float",
      "bool",
      "datetime",
      "vector",
    ]);
    await expect.poll(() => form(page).getByLabel("Dimension of place").inputValue()).toBe("3");
    await expectAccessible();
    await form(page).getByRole("button", { name: "Create and import" }).click();
    await page.getByRole("application", { name: "Map of 1200 records." }).waitFor();
    await page.locator(".results li").first().waitFor();
    expect(new URL(page.url()).hash).toContain("#/search/data:main/My_books");
    const { body } = await at.server.get("/db/data:main/tables/My_books/data/b3");
    expect(body).toMatchObject({ Title_de: "Grüße, Band 3", pages: 3, price: 0.75, sold: false, printed: "2026-04-11T00:00:00.000Z" });
    await close();
  });
});

describeWith("chromium", "a server that is away for a moment", (executablePath) => {
  const at = serveConsole(executablePath);
  const isAway = (page: Page) => page.getByText("The server is not responding");

  it("ends the import into its first table, and what has been written can be kept; titles are read when it is back", async () => {
    const { page, close } = await at.open("#/home");
    await page.getByRole("heading", { name: "Drop a file here" }).waitFor();
    const rows = Array.from({ length: 2_500 }, (_, i) => `b${i},Band ${i},"[${Math.sin(i)}, ${Math.cos(i)}]"`);
    await drop(page, "books.csv", `id,title,place\n${rows.join("\n")}\n`);
    let transactions = 0;
    await page.route("**/transaction", (route) => (++transactions === 2 ? route.abort() : route.continue()));
    await form(page).getByRole("button", { name: "Create and import" }).click();
    await form(page).getByText("The table books has 1,000 records of the file.").waitFor();
    await isAway(page).waitFor({ state: "detached" });
    // The console has read anew what is there.
    await page.waitForFunction(() => performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/dbs/data")).length > 1);
    let titles = 0;
    await page.route("**/tables/books/query", (route) =>
      route.request().postData()?.includes('"title"') === true && ++titles <= 2 ? route.abort() : route.continue(),
    );
    await form(page).getByRole("button", { name: "Keep it" }).click();
    await page.getByRole("application", { name: "Map of 1000 records." }).waitFor();
    await page.getByRole("heading", { name: /^Nearest to Band \d+$/ }).waitFor();
    expect(titles).toBeGreaterThan(2);
    await close();
  });
});

describeWith("chromium", "new tables in the console", (executablePath) => {
  const at = serveConsole(executablePath, async (server) => {
    await server.put("/db/shop:main");
    await server.put("/db/shop:main/tables/makers", { columns: [{ name: "name", type: "string" }] });
    for (const id of ["ada", "bob"]) await server.put(`/db/shop:main/tables/makers/data/${id}`, { name: id });
  });
  const columnsOf = async (table: string): Promise<unknown> => (await at.server.get(`/db/shop:main/tables/${table}/columns`)).body.columns;

  it("JSON Lines: links are found by their name, columns are renamed, changed and left out", async () => {
    const { page, close } = await at.open("#/search/shop:main/makers");
    await page.getByLabel("Words", { exact: true }).waitFor();
    const records = Array.from({ length: 4 }, (_, i) => ({
      _id: i,
      maker_id: i % 2 === 0 ? "ada" : "bob",
      tags: ["x", "y"],
      size: { w: i },
      at: `2026-11-25T10:00:0${i}Z`,
      secret: "no",
    }));
    await drop(page, "items.jsonl", records.map((record) => JSON.stringify(record)).join("\n"));
    await form(page).getByLabel("Name of the table").waitFor();
    expect(await typeOf(page, "maker_id")).toBe("link");
    await expect.poll(() => form(page).getByLabel("Table of maker_id").inputValue()).toBe("makers");
    await form(page).getByLabel("Name of maker_id").fill("maker");
    await form(page).getByLabel("Type of at").selectOption("string");
    await form(page).getByLabel("secret", { exact: true }).uncheck();
    // What was changed is there when one comes back.
    await page.getByRole("link", { name: "SQL" }).click();
    await page.getByRole("textbox", { name: "SQL statement" }).waitFor();
    await page.goBack();
    await expect.poll(() => form(page).getByLabel("Name of maker_id").inputValue()).toBe("maker");
    await form(page).getByRole("button", { name: "Create and import" }).click();
    await page.getByText("4 of 4 records read").waitFor();
    expect(await columnsOf("items")).toEqual([
      { name: "maker", type: "link", link: { table: "makers" } },
      { name: "tags", type: "multiple" },
      { name: "size", type: "json" },
      { name: "at", type: "string" },
    ]);
    expect((await at.server.get("/db/shop:main/tables/items/data/3")).body).toMatchObject({ maker: { id: "bob" }, size: { w: 3 } });
    await close();
  });

  it("Parquet: numbers, texts, times, lists and vectors", async () => {
    const { page, close } = await at.open("#/home");
    await page.getByRole("main").getByRole("link", { name: "makers" }).waitFor();
    // Written by pyarrow: zstd, three row groups.
    await drop(page, "sample.parquet", [...readFileSync(new URL("sample.parquet", import.meta.url))]);
    await form(page).getByText("Parquet, ").waitFor();
    await form(page).getByRole("button", { name: "Create and import" }).click();
    await page.getByRole("application", { name: "Map of 300 records." }).waitFor();
    const { body } = await at.server.get("/db/shop:main/tables/sample/data/p7");
    expect(body).toMatchObject({ title: "Title 7", price: 1.75, many: 7, at: "2026-11-25T10:07:00.000Z", tags: ["a", "b7"] });
    expect(body.look).toEqual([7, 1, 2, 3]);
    await close();
  });

  it("npy: a vector column of the file's dimension, and the rows' numbers as ids", async () => {
    const { page, close } = await at.open("#/home");
    await page.getByRole("main").getByRole("link", { name: "makers" }).waitFor();
    const rows = Array.from({ length: 40 }, (_, i) => [i, i / 2, 1 - i, 1]);
    const header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows.length}, 4), }`.padEnd(117);
    const head = Buffer.concat([Buffer.from([0x93]), Buffer.from("NUMPY"), Buffer.from([1, 0, 118, 0]), Buffer.from(`${header}\n`)]);
    await drop(page, "embeddings.npy", [...head, ...Buffer.from(Float32Array.from(rows.flat()).buffer)]);
    await form(page).getByText("npy, ").waitFor();
    expect(await typeOf(page, "vector")).toBe("vector");
    await expect.poll(() => form(page).getByLabel("Dimension of vector").inputValue()).toBe("4");
    await form(page).getByRole("button", { name: "Create and import" }).click();
    await page.getByRole("application", { name: "Map of 40 records." }).waitFor();
    const { body } = await at.server.post("/db/shop:main/tables/embeddings/query", { columns: ["embedding"], page: { size: 100 } });
    const found = body.records.map(({ embedding }: { embedding: number[] }) => embedding);
    expect(found.toSorted((a: number[], b: number[]) => a[0]! - b[0]!)).toEqual(rows);
    await close();
  });

  it.each([
    ["utf-16le", (text: string) => Buffer.from(`\ufeff${text}`, "utf16le")],
    ["utf-16be", (text: string) => Buffer.from(`\ufeff${text}`, "utf16le").swap16()],
  ])("a CSV in %s, with tabs, as spreadsheets save Unicode", async (encoding, bytesOf) => {
    const { page, close } = await at.open("#/home");
    await page.getByRole("main").getByRole("link", { name: "makers" }).waitFor();
    await drop(page, `${encoding}.csv`, [...bytesOf("id\tname\tcount\na\tŽluťoučký 🐎\t1\nb\tשלום\t2\n")]);
    await form(page).getByText(new RegExp(encoding, "i")).first().waitFor();
    expect(await Promise.all(["id", "name", "count"].map((column) => typeOf(page, column)))).toEqual(["id", "string", "int"]);
    await form(page).getByRole("button", { name: "Create and import" }).click();
    await page.getByText("2 of 2 records read").waitFor();
    const { body } = await at.server.get(`/db/shop:main/tables/${encoding}/data/a`);
    expect(body).toMatchObject({ name: "Žluťoučký 🐎", count: 1 });
    await close();
  });

  it("waits for what the key may do, if it is dropped before the server has said it", async () => {
    const { page, close } = await at.open("#/schema/shop:main");
    let answer: () => void = () => {};
    const isAnswered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route("**/access", async (route) => {
      await isAnswered;
      await route.continue();
    });
    await page.reload();
    await page.getByText("Connecting …").waitFor();
    await drop(page, "early.csv", "number\n1");
    answer();
    await form(page).getByText("New table from").waitFor();
    await close();
  });

  it("can be stopped: what has been written is said, and can be kept", async () => {
    const { page, expectAccessible, close } = await at.open("#/schema/shop:main");
    await page.getByRole("link", { name: "Table", exact: true }).last().waitFor();
    let written = 0;
    let release: () => void = () => {};
    const isStopped = new Promise<void>((resolve) => {
      release = resolve;
    });
    // The second transaction is on its way until Stop was pressed.
    await page.route("**/db/shop:main/transaction", async (route) => {
      written++;
      if (written === 2) await isStopped;
      await route.continue();
    });
    await drop(page, "many.csv", `number\n${Array.from({ length: 5_000 }, (_, i) => i).join("\n")}`);
    await form(page).getByRole("button", { name: "Create and import" }).click();
    await form(page).getByText("1,000 records").first().waitFor();
    await form(page).getByRole("button", { name: "Stop" }).click();
    release();
    await form(page).getByRole("alert").filter({ hasText: "Stopped." }).waitFor();
    await form(page).getByText("The table many has 2,000 records of the file.").waitFor();
    await expectAccessible();
    await form(page).getByRole("button", { name: "Keep" }).click();
    await page.getByText("of 2,000 records read").waitFor();
    expect(written).toBe(2);
    await close();
  });

  it("a row that does not fit stops it and says where; the table is deleted, and made again with another type", async () => {
    const { page, expectAccessible, close } = await at.open("#/schema/shop:main");
    await page.getByRole("link", { name: "Table", exact: true }).last().waitFor();
    const lines = Array.from({ length: 3_000 }, (_, i) => `${i},${i === 2_500 ? "many" : i}`);
    await drop(page, "counts.csv", `number,amount\n${lines.join("\n")}`);
    await form(page).getByRole("button", { name: "Create and import" }).click();
    await form(page).getByRole("alert").filter({ hasText: 'line 2502: amount: expected a number, got "many"' }).waitFor();
    await form(page).getByText("The table counts has 2,000 records of the file.").waitFor();
    await expectAccessible();
    await form(page).getByRole("button", { name: "Delete it and start again" }).click();
    await form(page).getByLabel("Type of amount").selectOption("string");
    await form(page).getByRole("button", { name: "Create and import" }).click();
    await page.getByText("of 3,000 records read").waitFor();
    await close();
  });

  it("without a file: all columns at once, refused in the server's words", async () => {
    const { page, expectAccessible, close } = await at.open("#/schema/shop:main/makers");
    await page.getByRole("main").getByRole("link", { name: "Table", exact: true }).click();
    await form(page).getByLabel("Name of the table").fill("a b");
    await form(page).getByLabel("Name of column 1").fill("title");
    await form(page).getByRole("button", { name: "Column", exact: true }).click();
    await form(page).getByLabel("Name of column 2").fill("look");
    await form(page).getByLabel("Type of column 2").selectOption("vector");
    await form(page).getByLabel("Dimension of column 2").fill("4");
    await form(page).getByRole("button", { name: "Column", exact: true }).click();
    await form(page).getByLabel("Name of column 3").fill("maker");
    await form(page).getByLabel("Type of column 3").selectOption("link");
    await form(page).getByLabel("Table of column 3").selectOption("makers");
    await expectAccessible();
    await form(page).getByRole("button", { name: "Create the table" }).click();
    await form(page).locator(".fault").filter({ hasText: "a b" }).waitFor();
    await form(page).getByLabel("Name of the table").fill("notes");
    await form(page).getByRole("button", { name: "Create the table" }).click();
    await page.getByText("The table has no records yet.").waitFor();
    expect(await columnsOf("notes")).toEqual([
      { name: "title", type: "string" },
      { name: "look", type: "vector", vector: { dimension: 4 } },
      { name: "maker", type: "link", link: { table: "makers" } },
    ]);
    await close();
  });
});
