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
  { name: "words", hash: "#/search/shop:main/items", ready: ".terms", prepare: searchWords, height: 1_240 },
  { name: "table", hash: "#/table/demo:main/colors", ready: ".grid-body .grid-row" },
  { name: "sql", hash: "#/sql/demo:main/colors", ready: ".cm-content", prepare: countFamilies },
  { name: "schema", hash: "#/schema/shop:main/items", ready: ".schema-panel .column-line" },
  { name: "server", hash: "#/server/demo:main/colors", ready: ".plot canvas", prepare: searchForAWhile },
  { name: "reference", hash: "#/reference/demo:main/colors", ready: ".operation", prepare: openVectorSearch },
];

/** In docs/images. */
const KEPT = ["home", "search", "words", "table", "sql", "schema", "server", "reference"];

/** Tables with links, for the picture of a schema. */
const SHOP = {
  makers: [{ name: "name", type: "string", notNull: true, defaultValue: "unknown" }],
  categories: [
    { name: "name", type: "string" },
    { name: "parent", type: "link", link: { table: "categories" } },
  ],
  items: [
    { name: "title", type: "string" },
    { name: "story", type: "text" },
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

/** Books, for a search by words and a vector. */
const BOOKS = [
  ["moby-dick", "Moby-Dick", "A captain hunts the white whale that took his leg, across every sea, and takes his crew down with him."],
  ["treasure-island", "Treasure Island", "A boy finds the map of a buried treasure and sails for it with a crew of pirates."],
  ["twenty-thousand-leagues", "Twenty Thousand Leagues", "A hunt for a sea monster ends aboard a ship that travels below the sea."],
  ["robinson-crusoe", "Robinson Crusoe", "A sailor lives for years on an island alone, after a storm has broken his ship."],
  ["the-time-machine", "The Time Machine", "A traveller builds a machine and sees what becomes of people in the far future."],
  ["frankenstein", "Frankenstein", "A student makes a creature of dead parts, and is hunted by it to the ice of the north."],
  ["dracula", "Dracula", "Letters and diaries tell of a count who comes to England by ship in search of new blood."],
  ["the-sea-wolf", "The Sea-Wolf", "A man of letters is picked up at sea by a ship that hunts seals, and by its cruel captain."],
  ["walden", "Walden", "Two years alone in a cabin by a pond, with beans, loons and a borrowed axe."],
  ["gullivers-travels", "Gulliver’s Travels", "A ship’s surgeon is cast ashore among people who are small, large, learned, and horses."],
  ["the-odyssey", "The Odyssey", "A captain needs ten years and all of his crew to come home across the sea from a war."],
  ["around-the-world", "Around the World in Eighty Days", "By train, ship and elephant, for a bet, with a detective behind."],
];

/** A vector of a text without a model: words have directions by their letters, and texts are the sums of their words. */
function vectorOf(text) {
  const sum = new Array(384).fill(0);
  for (const word of text.toLowerCase().match(/[a-z]{4,}/g)) {
    const seed = [...word.slice(0, 5)].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) >>> 0, 7);
    for (let j = 0; j < sum.length; j++) sum[j] += Math.sin((j + 1) * (seed % 9973));
  }
  return sum;
}

/** The first result says what each word and the vector gave; one word is misspelt. */
async function searchWords(page) {
  await page.getByLabel("Record", { exact: true }).fill("moby-dick");
  await page.getByLabel("Words", { exact: true }).fill("captan ship sea");
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.locator(".why").waitFor();
}

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
  for (const [id, title, story] of BOOKS)
    await server.put(`/db/shop:main/tables/items/data/${id}`, { title, story, price: 9 + (id.length % 7), look: vectorOf(story) });
  for (const colorScheme of ["light", "dark"]) {
    for (const [suffix, viewport] of isForReview
      ? [
          ["", WIDE],
          ["-phone", PHONE],
        ]
      : [["", WIDE]]) {
      const page = await browser.newPage({ viewport, colorScheme, deviceScaleFactor: isForReview ? 1 : 1.5 });
      for (const { name, hash, ready, prepare, height = viewport.height } of VIEWS.filter(
        (view) => isForReview || KEPT.includes(view.name),
      )) {
        await page.setViewportSize({ width: viewport.width, height });
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
