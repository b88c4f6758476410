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
  { name: "words", hash: "#/search/bookshop:main/books", ready: ".terms", prepare: searchWords, height: 1_240 },
  { name: "table", hash: "#/table/bookshop:main/books/the-sea-wolf", ready: ".neighbours li" },
  { name: "new-table", hash: "#/new/bookshop:main", ready: ".new-table", prepare: dropBooks, height: 780 },
  { name: "sql", hash: "#/sql/demo:main/colors", ready: ".cm-content", prepare: countFamilies },
  { name: "explain", hash: "#/sql/bookshop:main/books", ready: ".cm-content", prepare: explainOrders },
  { name: "schema", hash: "#/schema/bookshop:main/books", ready: ".schema-panel .column-line" },
  { name: "server", hash: "#/server/demo:main/colors", ready: ".plot canvas", prepare: searchForAWhile },
  { name: "reference", hash: "#/reference/demo:main/colors", ready: ".operation", prepare: openVectorSearch },
];

/** In docs/images. */
const KEPT = ["home", "search", "words", "table", "new-table", "sql", "schema", "server", "reference"];

/** A shop for old books: tables with links. */
const TABLES = {
  authors: [
    { name: "name", type: "string", notNull: true, defaultValue: "unknown" },
    { name: "country", type: "string" },
  ],
  shelves: [
    { name: "name", type: "string" },
    { name: "within", type: "link", link: { table: "shelves" } },
  ],
  books: [
    { name: "title", type: "string" },
    { name: "author", type: "link", link: { table: "authors" } },
    { name: "printed", type: "datetime" },
    { name: "pages", type: "int" },
    { name: "price", type: "float" },
    { name: "signed", type: "bool" },
    { name: "genres", type: "multiple" },
    { name: "story", type: "text" },
    { name: "shelf", type: "link", link: { table: "shelves" } },
    { name: "embedding", type: "vector", vector: { dimension: 384 } },
  ],
  orders: [
    { name: "book", type: "link", link: { table: "books" } },
    { name: "at", type: "datetime", defaultValue: "now" },
    { name: "copies", type: "int" },
  ],
};

/** Title, author, country, year, pages, genres, story. */
const BOOKS = [
  [
    "Moby-Dick",
    "Herman Melville",
    "USA",
    1851,
    635,
    "sea novel",
    "A captain hunts the white whale that took his leg, across every sea, and takes his crew down with him.",
  ],
  [
    "Treasure Island",
    "Robert Louis Stevenson",
    "Scotland",
    1883,
    292,
    "sea adventure",
    "A boy finds the map of a buried treasure and sails for it with a crew of pirates.",
  ],
  [
    "Twenty Thousand Leagues",
    "Jules Verne",
    "France",
    1870,
    426,
    "sea science",
    "A hunt for a sea monster ends aboard a ship that travels below the sea.",
  ],
  [
    "Robinson Crusoe",
    "Daniel Defoe",
    "England",
    1719,
    364,
    "sea adventure",
    "A sailor lives for years on an island alone, after a storm has broken his ship.",
  ],
  [
    "The Time Machine",
    "H. G. Wells",
    "England",
    1895,
    118,
    "science",
    "A traveller builds a machine and sees what becomes of people in the far future.",
  ],
  [
    "Frankenstein",
    "Mary Shelley",
    "England",
    1818,
    280,
    "science horror",
    "A student makes a creature of dead parts, and is hunted by it to the ice of the north.",
  ],
  [
    "Dracula",
    "Bram Stoker",
    "Ireland",
    1897,
    418,
    "horror",
    "Letters and diaries tell of a count who comes to England by ship in search of new blood.",
  ],
  [
    "The Sea-Wolf",
    "Jack London",
    "USA",
    1904,
    366,
    "sea novel",
    "A man of letters is picked up at sea by a ship that hunts seals, and by its cruel captain.\n\nHe learns to cook, to sail and to hate; then a woman comes aboard.",
  ],
  [
    "Walden",
    "Henry David Thoreau",
    "USA",
    1854,
    357,
    "nature",
    "Two years alone in a cabin by a pond, with beans, loons and a borrowed axe.",
  ],
  [
    "Gulliver’s Travels",
    "Jonathan Swift",
    "Ireland",
    1726,
    309,
    "sea satire",
    "A ship’s surgeon is cast ashore among people who are small, large, learned, and horses.",
  ],
  [
    "The Odyssey",
    "Homer",
    "Greece",
    1614,
    541,
    "sea verse",
    "A captain needs ten years and all of his crew to come home across the sea from a war.",
  ],
  [
    "Around the World in Eighty Days",
    "Jules Verne",
    "France",
    1872,
    288,
    "adventure",
    "By train, ship and elephant, for a bet, with a detective behind.",
  ],
  [
    "The War of the Worlds",
    "H. G. Wells",
    "England",
    1898,
    287,
    "science",
    "Machines on three legs walk from Mars through Surrey, and nothing that people have can stop them.",
  ],
  [
    "Wuthering Heights",
    "Emily Brontë",
    "England",
    1847,
    416,
    "novel",
    "Two houses on a moor, a foundling, and a love that outlasts the grave.",
  ],
  ["Jane Eyre", "Charlotte Brontë", "England", 1847, 532, "novel", "A governess finds that the house she loves has somebody in its attic."],
  [
    "Middlemarch",
    "George Eliot",
    "England",
    1871,
    880,
    "novel",
    "A town, its marriages and its railway, and a young woman who wanted to do good.",
  ],
  ["Bleak House", "Charles Dickens", "England", 1853, 928, "novel crime", "A case in court outlives everybody who had hoped to win it."],
  [
    "Great Expectations",
    "Charles Dickens",
    "England",
    1861,
    544,
    "novel",
    "A boy helps a convict on the marshes and comes into money without knowing why.",
  ],
  [
    "The Moonstone",
    "Wilkie Collins",
    "England",
    1868,
    464,
    "crime",
    "A diamond is stolen in a country house, and everybody in turn tells how.",
  ],
  [
    "The Woman in White",
    "Wilkie Collins",
    "England",
    1860,
    672,
    "crime",
    "A drawing master meets a woman on the road at night who has fled from an asylum.",
  ],
  [
    "A Study in Scarlet",
    "Arthur Conan Doyle",
    "Scotland",
    1887,
    132,
    "crime",
    "A doctor takes rooms with a man who reads a murder from the dust of a floor.",
  ],
  [
    "Crime and Punishment",
    "Fyodor Dostoevsky",
    "Russia",
    1866,
    671,
    "novel crime",
    "A student thinks that he may kill, and learns from a detective what it is to have done so.",
  ],
  [
    "War and Peace",
    "Leo Tolstoy",
    "Russia",
    1869,
    1225,
    "novel war",
    "Five families, Moscow in flames, and a general who waits for the winter.",
  ],
  ["Anna Karenina", "Leo Tolstoy", "Russia", 1877, 864, "novel", "A woman leaves her house for an officer, and a landowner learns to mow."],
  [
    "Fathers and Sons",
    "Ivan Turgenev",
    "Russia",
    1862,
    226,
    "novel",
    "A student who believes in nothing comes to the country and falls in love.",
  ],
  [
    "Dead Souls",
    "Nikolai Gogol",
    "Russia",
    1842,
    402,
    "satire",
    "A traveller buys peasants who have died, because on paper they are still alive.",
  ],
  [
    "Madame Bovary",
    "Gustave Flaubert",
    "France",
    1857,
    361,
    "novel",
    "A doctor’s wife in the country wants life to be as it is in novels.",
  ],
  [
    "Les Misérables",
    "Victor Hugo",
    "France",
    1862,
    1462,
    "novel war",
    "A convict who stole bread is hunted by a detective through the barricades and sewers of Paris.",
  ],
  [
    "The Count of Monte Cristo",
    "Alexandre Dumas",
    "France",
    1846,
    1276,
    "adventure",
    "A sailor escapes from an island prison, finds a treasure, and pays everybody back.",
  ],
  [
    "The Three Musketeers",
    "Alexandre Dumas",
    "France",
    1844,
    625,
    "adventure",
    "A young man with a yellow horse comes to Paris and fights three duels on one day.",
  ],
  [
    "Germinal",
    "Émile Zola",
    "France",
    1885,
    591,
    "novel",
    "In the mines of the north a strike begins with bread and ends below the ground.",
  ],
  [
    "Effi Briest",
    "Theodor Fontane",
    "Germany",
    1896,
    520,
    "novel",
    "A girl is married to a man with principles, in a house by the sea with a ghost.",
  ],
  [
    "Faust",
    "Johann Wolfgang von Goethe",
    "Germany",
    1808,
    309,
    "verse",
    "A scholar who has read everything makes a bet with the devil for one good moment.",
  ],
  [
    "Don Quixote",
    "Miguel de Cervantes",
    "Spain",
    1605,
    863,
    "satire adventure",
    "A gentleman has read too many novels and rides out to set the world right.",
  ],
  [
    "The Divine Comedy",
    "Dante Alighieri",
    "Italy",
    1472,
    798,
    "verse",
    "A poet who is lost in a wood is led through hell, up a mountain, and to the stars.",
  ],
  [
    "Little Women",
    "Louisa May Alcott",
    "USA",
    1868,
    449,
    "novel",
    "Four sisters, one winter after the other, while their father is in the war.",
  ],
  [
    "The Scarlet Letter",
    "Nathaniel Hawthorne",
    "USA",
    1850,
    238,
    "novel",
    "A woman wears the sign of what she did, and does not say with whom.",
  ],
  ["Huckleberry Finn", "Mark Twain", "USA", 1884, 366, "adventure", "A boy and a man who has fled go down a river on a raft, by night."],
  [
    "The Call of the Wild",
    "Jack London",
    "USA",
    1903,
    172,
    "nature adventure",
    "A dog is stolen from a garden for the gold of the north, and answers the wolves.",
  ],
  [
    "Kim",
    "Rudyard Kipling",
    "England",
    1901,
    384,
    "adventure",
    "A boy of the bazaar walks the Grand Trunk Road with a lama, and carries messages.",
  ],
];

const idOf = (name) =>
  name
    .normalize("NFD")
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");

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

/** A file as people have it: the columns that it is recognised to have. */
async function dropBooks(page) {
  const lines = BOOKS.map(
    ([title, author, , year, pages, , story], i) =>
      `${idOf(title)};${title};${idOf(author)};${year}-0${1 + (i % 9)}-14;${pages};"${story}";"[${vectorOf(story).slice(0, 64)}]"`,
  );
  await page.evaluate(
    (text) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], "Classics.csv"));
      document.querySelector("main").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    },
    `id;Title;author;printed;pages;story;embedding\n${lines.join("\n")}\n`,
  );
  await page.locator(".examples").first().waitFor();
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
      'SELECT "family", count(*) AS "colors", count(*) FILTER (WHERE "dark") AS "dark"\nFROM "colors"\nWHERE "family" <> $1\nGROUP BY "family"\nORDER BY "colors" DESC, "family"',
    );
  await page.keyboard.press("Escape");
  await page.getByLabel("Parameters").fill('["gray"]');
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByLabel("Plot").selectOption("colors");
  await page.getByLabel("Against", { exact: true }).selectOption("family");
  await page.locator(".cm-tooltip-autocomplete").waitFor({ state: "detached" });
}

async function explainOrders(page) {
  await page
    .getByRole("textbox", { name: "SQL statement" })
    .fill(
      'SELECT a."name", sum(o."copies") AS "sold"\nFROM "orders" o JOIN "books" b ON b."id" = o."book" JOIN "authors" a ON a."id" = b."author"\nWHERE b."pages" > 300\nGROUP BY a."name"',
    );
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.locator(".plan").waitFor();
}

/** The shop with its books; each author once. */
async function fillBookshop() {
  const to = "/db/bookshop:main";
  await server.put(to);
  for (const [table, columns] of Object.entries(TABLES)) await server.put(`${to}/tables/${table}`, { columns });
  const insert = (table, record) => ({ insert: { table, record } });
  const authors = new Map(BOOKS.map(([, name, country]) => [idOf(name), { name, country }]));
  const genres = new Set(BOOKS.map(([, , , , , all]) => all.split(" ")[0]));
  const operations = [
    ...[...authors].map(([id, author]) => insert("authors", { id, ...author })),
    ...[...genres].map((name) => insert("shelves", { id: name, name })),
    ...BOOKS.map(([title, author, , year, pages, all, story], i) =>
      insert("books", {
        id: idOf(title),
        title,
        author: idOf(author),
        printed: `${year}-0${1 + (i % 9)}-14T00:00:00Z`,
        pages,
        price: 9.5 + ((pages * 7) % 60),
        signed: i % 6 === 0,
        genres: all.split(" "),
        story,
        shelf: all.split(" ")[0],
        embedding: vectorOf(story),
      }),
    ),
    ...BOOKS.map(([title], i) => insert("orders", { book: idOf(title), copies: 1 + (i % 3), at: `2026-11-${10 + (i % 15)}T09:30:00Z` })),
  ];
  const { status } = await server.post(`${to}/transaction`, { operations });
  if (status !== 200) throw new Error(`The books were not written: ${status}`);
}

async function openVectorSearch(page) {
  await page.getByLabel("Find").fill("vectorSearch");
  await page.locator(".operation summary").first().click();
  await page.getByLabel("Body", { exact: true }).fill('{"column": "lab", "queryVector": [32.9, 42.9, -47.1], "size": 2}');
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText('"totalCount"').waitFor();
}

mkdirSync(folder, { recursive: true });
const server = await startServer({ args: ["--demo"] });
const browser = await launchChromium(FINDERS.chromium());
try {
  await fillBookshop();
  for (const colorScheme of ["light", "dark"]) {
    for (const [suffix, viewport] of isForReview
      ? [
          ["", WIDE],
          ["-phone", PHONE],
        ]
      : [["", WIDE]]) {
      const page = await browser.newPage({ viewport, colorScheme, deviceScaleFactor: isForReview ? 1 : 1.25 });
      for (const { name, hash, ready, prepare, height = viewport.height } of VIEWS.filter(
        (view) => isForReview || KEPT.includes(view.name),
      )) {
        await page.setViewportSize({ width: viewport.width, height });
        await page.goto(`${server.url}/console${hash}`);
        await page.waitForSelector(ready);
        await prepare?.(page);
        await page.mouse.move(0, 0);
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
