/**
 * Pictures of the console for the documentation (docs/images), of the real server with the demo, in Chromium.
 * Run by `npm run docs:screenshots`, and looked at before they are committed. With an argument: into that
 * folder, and of every view on a phone, too.
 */
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { launchChromium } from "../test/browser/launch.ts";
import { FINDERS } from "../test/support/finders.ts";
import { startServer } from "../test/support/server.ts";

const [folder = fileURLToPath(new URL("../docs/images/", import.meta.url))] = process.argv.slice(2);
const isForReview = process.argv.length > 2;

const WIDE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

/** Each view, how one sees that it is there, and what is done before it is worth a picture. */
const VIEWS = [
  { name: "home", hash: "#/home", ready: ".snippets" },
  { name: "search", hash: "#/search/demo:main/colors", ready: ".terms" },
  { name: "table", hash: "#/table/demo:main/colors", ready: ".grid-body .grid-row" },
  { name: "sql", hash: "#/sql/demo:main/colors", ready: ".cm-content", prepare: countFamilies },
  { name: "schema", hash: "#/schema/shop:main/items", ready: ".schema-panel .column-line" },
  { name: "server", hash: "#/server/demo:main/colors", ready: ".plot canvas", prepare: searchForAWhile },
  { name: "reference", hash: "#/reference/demo:main/colors", ready: ".operation", prepare: openVectorSearch },
];

/** In docs/images. */
const KEPT = ["home", "search", "table", "sql", "schema", "server", "reference"];

/** Tables with links, for the picture of a schema. */
const SHOP = {
  makers: [{ name: "name", type: "string", notNull: true, defaultValue: "unknown" }],
  categories: [
    { name: "name", type: "string" },
    { name: "parent", type: "link", link: { table: "categories" } },
  ],
  items: [
    { name: "title", type: "string" },
    { name: "price", type: "int" },
    { name: "maker", type: "link", link: { table: "makers" } },
    { name: "category", type: "link", link: { table: "categories" } },
    { name: "look", type: "vector", vector: { dimension: 384 } },
  ],
  orders: [
    { name: "item", type: "link", link: { table: "items" } },
    { name: "at", type: "datetime", defaultValue: "now" },
    { name: "count", type: "int" },
  ],
};

/** The plots have lines only where something was asked for. */
async function searchForAWhile(page) {
  const query = { column: "lab", queryVector: [32.902, 42.883, -47.149], similarityFunction: "l2" };
  for (let turn = 0; turn < 24; turn++) {
    const searches = Array.from({ length: 3 + (turn % 7) }, () => server.post("/db/demo:main/tables/colors/vectorSearch", query));
    await Promise.all([...searches, server.get("/dbs"), page.waitForTimeout(500)]);
  }
}

/** An answer as a table, and its numbers as a plot. */
async function countFamilies(page) {
  await page
    .getByRole("textbox", { name: "SQL statement" })
    .fill(
      'SELECT "family", count(*) AS "colors", count(*) FILTER (WHERE "dark") AS "dark"\nFROM "colors"\nWHERE "family" <> $1\nGROUP BY "family"\nORDER BY "colors" DESC',
    );
  await page.keyboard.press("Escape");
  await page.getByLabel("Parameters").fill('["gray"]');
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("button", { name: "colors", exact: true }).click();
  await page.locator(".cm-tooltip-autocomplete").waitFor({ state: "detached" });
}

async function openVectorSearch(page) {
  await page.getByLabel("Find").fill("vectorSearch");
  await page.locator(".operation summary").first().click();
}

mkdirSync(folder, { recursive: true });
const server = await startServer({ args: ["--demo"] });
const browser = await launchChromium(FINDERS.chromium());
try {
  await server.put("/db/shop:main");
  for (const [table, columns] of Object.entries(SHOP)) await server.put(`/db/shop:main/tables/${table}`, { columns });
  for (const colorScheme of ["light", "dark"]) {
    for (const [suffix, viewport] of isForReview
      ? [
          ["", WIDE],
          ["-phone", PHONE],
        ]
      : [["", WIDE]]) {
      const page = await browser.newPage({ viewport, colorScheme, deviceScaleFactor: isForReview ? 1 : 1.5 });
      for (const { name, hash, ready, prepare } of VIEWS.filter((view) => isForReview || KEPT.includes(view.name))) {
        await page.goto(`${server.url}/console${hash}`);
        await page.waitForSelector(ready);
        await prepare?.(page);
        await page.waitForTimeout(400);
        await page.screenshot({ path: `${folder}/console-${name}-${colorScheme}${suffix}.png`, fullPage: suffix !== "" });
      }
      await page.close();
    }
  }
} finally {
  await browser.close();
  await server.stop();
}
