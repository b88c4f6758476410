import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRecordStore } from "../../src/records/open.ts";
import type { RecordStore } from "../../src/records/record-store.ts";
import type { JsonObject } from "../../src/records/requests.ts";
import { openSearchStore, type SearchStoreOptions } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { searchBranch, searchTable } from "../../src/search/text/text-answer.ts";
import type { BranchSearchRequest, TextSearchRequest } from "../../src/search/text/text-request.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { describeOnce } from "../support/requirements.ts";
import { copyTemplate } from "../support/server-template.ts";

const REF = { database: "library", branch: "main" };
const STORES: readonly (readonly [string, SearchStoreOptions])[] = [
  ["in the store that has the vectors", {}],
  ["beside a part of the vectors", { part: { index: 0, of: 2 } }],
];

for (const [name, options] of STORES) {
  describeOnce(`free text search ${name}`, () => {
    let records: RecordStore;
    let search: SearchStore;
    const dataDir = mkdtempSync(join(tmpdir(), "lodestone-text-search-"));

    const inTable = (request: TextSearchRequest, table = "books") => searchTable({ records, search, ref: REF }, table, request);
    const inBranch = (request: BranchSearchRequest) => searchBranch({ records, search, ref: REF }, request);
    const find = async (query: string, more: Omit<TextSearchRequest, "query"> = {}, table = "books") =>
      (await inTable({ query, ...more }, table)).records.map((record) => record.id);

    beforeAll(async () => {
      copyTemplate(dataDir);
      records = await openRecordStore({ dataDir, statementTimeoutMs: LIMIT_MS });
      search = await openSearchStore(records, { pollMs: 50, waitMs: LIMIT_MS, ...options });
      await records.createBranch(REF);
      await records.createTable(REF, "authors", [
        { name: "name", type: "string" },
        { name: "rank", type: "int" },
      ]);
      await records.createTable(REF, "books", [
        { name: "title", type: "string" },
        { name: "about.text", type: "text" },
        { name: "tags", type: "multiple" },
        { name: "pages", type: "int" },
        { name: "printed", type: "datetime" },
        { name: "notes", type: "json" },
        { name: "author", type: "link", link: { table: "authors" } },
        { name: "embedding", type: "vector", vector: { dimension: 2 } },
      ]);
      await records.createTable(REF, "numbers", [{ name: "n", type: "int" }]);
      await records.insertRecords(REF, "authors", [{ id: "a1", name: "Garden, John", rank: 7 }]);
      await records.insertRecords(REF, "books", [
        {
          id: "b1",
          title: "The Planetary Garden",
          about: { text: "Où poussent les forêts" },
          tags: ["trees", "Gärten"],
          pages: 100,
          printed: "2020-01-01T00:00:00Z",
          notes: '{"shelf": "north\\nwall"}',
        },
        {
          id: "b2",
          title: "Garden of forking paths",
          about: { text: "A labyrinth of time, a garden, another garden" },
          pages: 10,
          printed: "1941-01-01T00:00:00Z",
        },
        { id: "b3", title: "Time", tags: ["garden"], pages: 1, author: "a1" },
        { id: "b4", title: null },
        { id: "b5", title: "100% \\ of_it 👀 東京" },
      ]);
    });
    afterAll(async () => {
      await search.close();
      await records.close();
      rmSync(dataDir, { recursive: true, force: true });
    });

    test("finds words in texts, objects and lists, whatever their case and accents, and returns whole records", async () => {
      expect(await inTable({ query: "FORETS", fuzziness: 0 })).toEqual({
        totalCount: 1,
        records: [
          expect.objectContaining({
            id: "b1",
            title: "The Planetary Garden",
            about: { text: "Où poussent les forêts" },
            tags: ["trees", "Gärten"],
            pages: 100,
            xata: {
              version: 0,
              createdAt: expect.any(String),
              updatedAt: expect.any(String),
              table: "books",
              score: expect.any(Number),
              highlight: { "about.text": ["Où poussent les <em>forêts</em>"] },
            },
          }),
        ],
      });
      expect(await find("garten", { fuzziness: 0 })).toEqual(["b1"]);
      expect((await find("garden", { fuzziness: 0 })).sort()).toEqual(["b1", "b2", "b3"]);
      expect(await find("東京", { fuzziness: 0 })).toEqual(["b5"]);
      expect(await find("京", { fuzziness: 0 })).toEqual(["b5"]);
      expect((await inTable({ query: "wall", fuzziness: 0 })).records).toEqual([
        expect.objectContaining({ id: "b1", xata: expect.objectContaining({ highlight: { notes: [expect.stringContaining("<em>")] } }) }),
      ]);
    });

    test("sees every write that was acknowledged before", async () => {
      await records.insertRecord(REF, "authors", { id: "a2", name: "Ursula" });
      expect(await find("ursula", {}, "authors")).toEqual(["a2"]);
      await records.updateRecord(REF, "authors", "a2", { name: "Le Guin" });
      expect([await find("ursula", {}, "authors"), await find("guin", {}, "authors")]).toEqual([[], ["a2"]]);
      await records.addColumn(REF, "authors", { name: "born", type: "text" });
      await records.updateRecord(REF, "authors", "a2", { born: "Berkeley" });
      expect(await find("berkeley", {}, "authors")).toEqual(["a2"]);
      await records.renameColumn(REF, "authors", "born", "place");
      expect(await find("berkeley", { target: ["place"] }, "authors")).toEqual(["a2"]);
      await records.dropColumn(REF, "authors", "place");
      expect(await find("berkeley", {}, "authors")).toEqual([]);
      await records.deleteRecord(REF, "authors", "a2");
      expect(await find("guin", {}, "authors")).toEqual([]);
    });

    test("tolerates as many edits as it is told to", async () => {
      expect(await find("planetery", { fuzziness: 0 })).toEqual([]);
      expect(await find("planetery")).toEqual(["b1"]);
      expect(await find("plantery", { fuzziness: 1 })).toEqual([]);
      expect(await find("plenetery", { fuzziness: 2 })).toEqual(["b1"]);
      expect(await find("planeatry")).toEqual(["b1"]);
      expect(await find("planet", { fuzziness: 0, prefix: "phrase" })).toEqual(["b1"]);
      expect(await find("planet garden", { fuzziness: 0, prefix: "phrase", target: ["tags"] })).toEqual(["b3"]);
    });

    test("knows stems, phrases and words that must not be there, where it is asked to", async () => {
      expect(await find("gardening", { fuzziness: 0 })).toEqual([]);
      expect((await find("gardening", { fuzziness: 0, language: "english" })).sort()).toEqual(["b1", "b2", "b3"]);
      const web = (query: string) => find(query, { fuzziness: 0, syntax: "websearch" });
      expect(await web('"planetary garden"')).toEqual(["b1"]);
      expect(await web('"garden planetary"')).toEqual([]);
      expect((await web("garden -forking")).sort()).toEqual(["b1", "b3"]);
      expect((await web('garden -"another garden"')).sort()).toEqual(["b1", "b3"]);
    });

    test("knows the language of each column, unless the search names one", async () => {
      await records.createTable(REF, "notes", [
        { name: "english", type: "text", language: "english" },
        { name: "german", type: "multiple", language: "german" },
        { name: "plain", type: "text" },
      ]);
      const text = "connections, Häusern";
      await records.insertRecords(REF, "notes", [{ id: "n1", english: text, german: [text], plain: text }]);
      const marked = async (query: string, more: Omit<TextSearchRequest, "query"> = {}) => {
        const { records: found } = await inTable({ query, fuzziness: 0, ...more }, "notes");
        return found.flatMap(({ xata }) => Object.entries((xata as { highlight: object }).highlight));
      };
      const connections = ["<em>connections</em>, Häusern"];
      expect(await marked("connected")).toEqual([["english", connections]]);
      expect(await marked("haus")).toEqual([["german", ["connections, <em>Häusern</em>"]]]);
      expect(await marked("connected", { language: "none" })).toEqual([]);
      expect(await marked("connected", { language: "english", target: ["plain", "german"] })).toEqual([
        ["plain", connections],
        ["german", connections],
      ]);
      await records.setColumnLanguage(REF, "notes", "plain", "english");
      await records.setColumnLanguage(REF, "notes", "english", "none");
      expect(await marked("connected")).toEqual([["plain", connections]]);
      await records.dropTable(REF, "notes");
    });

    test("ranks higher what matches more, and in columns with more weight", async () => {
      expect((await find("planetary garden", { fuzziness: 0 }))[0]).toBe("b1");
      const target = (title: number, text: number) => [
        { column: "title", weight: title },
        { column: "about.text", weight: text },
      ];
      expect(await find("garden", { fuzziness: 0, target: target(1, 10) })).toEqual(["b2", "b1"]);
      expect((await find("garden", { fuzziness: 0, target: [{ column: "tags", weight: 9 }, "*"] }))[0]).toBe("b3");
    });

    test("gives a record the same score under any filter and on any page, and explains it", async () => {
      const scores = async (request: TextSearchRequest) =>
        Object.fromEntries(
          (await inTable({ query: "garden time", ...request })).records.map(({ id, xata }) => [id, (xata as { score: number }).score]),
        );
      const all = await scores({});
      expect(await scores({ filter: { id: "b2" } })).toEqual({ b2: all.b2 });
      expect(await scores({ page: { size: 1, offset: 2 } })).toEqual(Object.fromEntries(Object.entries(all).slice(2, 3)));
      const boosters = [{ numericBooster: { column: "pages", factor: 0.25 } }];
      for (const { xata } of (await inTable({ query: "garden time", explain: true, boosters })).records) {
        const { score, explain } = xata as {
          score: number;
          explain: { text: { score: number; words: { score: number }[] }; boost: number };
        };
        expect(explain.text.words.reduce((sum, part) => sum + part.score, 0)).toBe(explain.text.score);
        expect(explain.text.score + explain.boost).toBe(score);
      }
    });

    test("boosts by a value, a number and a time, where a filter matches, also behind links", async () => {
      const first = async (booster: object) => (await find("garden", { boosters: [booster] as never }))[0];
      expect(await first({ valueBooster: { column: "pages", value: 1, factor: 100 } })).toBe("b3");
      expect(await first({ numericBooster: { column: "pages", factor: 1 } })).toBe("b1");
      expect(await first({ numericBooster: { column: "author.rank", factor: 100 } })).toBe("b3");
      expect(await first({ numericBooster: { column: "pages", factor: 100, modifier: "reciprocal" } })).toBe("b3");
      expect(await first({ numericBooster: { column: "pages", factor: 100, ifMatchesFilter: { id: "b2" } } })).toBe("b2");
      expect(
        await first({ dateBooster: { column: "printed", origin: "1941-01-01T00:00:00Z", scale: "365d", decay: 0.5, factor: 100 } }),
      ).toBe("b2");
    });

    test("filters first, pages, and counts all", async () => {
      expect((await find("garden", { filter: { pages: { $lt: 50 } } })).sort()).toEqual(["b2", "b3"]);
      const all = await find("garden");
      const page = await inTable({ query: "garden", page: { size: 1, offset: 1 } });
      expect([page.records.map((record) => record.id), page.totalCount]).toEqual([[all[1]], 3]);
      expect(await inTable({ query: "garden", page: { size: 0 } })).toEqual({ records: [], totalCount: 3 });
      // As LangChain's store counts what can be found.
      expect((await inTable({})).totalCount).toBe(5);
      expect(await inTable({ query: "", page: { size: 0 } })).toEqual({ records: [], totalCount: 5 });
    });

    test("treats every text as words and nothing else", async () => {
      for (const query of ["%", "_", "\\", "'; DROP TABLE books; --", "!!!", "👀"])
        expect(await inTable({ query })).toEqual({ records: [], totalCount: 0 });
      expect(await find("100% of_it\\", { fuzziness: 0 })).toContain("b5");
    });

    test("looks for the rarest words of a page of text", async () => {
      const many = Array.from({ length: 2_000 }, (_, i) => `w${i}`).join(" ");
      expect(await find(`${many} labyrinth`, { fuzziness: 0 })).toEqual(["b2"]);
    });

    test("over a branch returns every record with its table, best first", async () => {
      const { records: found, totalCount } = await inBranch({ query: "garden", fuzziness: 0 });
      expect(totalCount).toBe(4);
      expect(found.map((record) => (record.xata as { table: string }).table).sort()).toEqual(["authors", "books", "books", "books"]);
      const scores = found.map((record) => (record.xata as { score: number }).score);
      expect(scores).toEqual([...scores].sort((a, b) => b - a));
      const chosen = await inBranch({
        query: "garden",
        fuzziness: 0,
        tables: ["authors", { table: "books", filter: { id: "b2" }, target: ["title"] }],
      });
      expect(chosen.records.map((record) => record.id).sort()).toEqual(["a1", "b2"]);
      await expect(inBranch({ query: "x", tables: ["books", "books"] })).rejects.toMatchObject({
        code: "INVALID",
        message: 'tables[1]: table "books" is given twice; give it once.',
      });
      await expect(inBranch({ query: "x", tables: ["nope"] })).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: 'tables[0]: there is no table "nope"; the branch has "authors", "books", "numbers".',
      });
    });

    test("follows many records, and goes on while their words are read", async () => {
      await records.createTable(REF, "crowd", [{ name: "name", type: "string" }]);
      const statement = `INSERT INTO "crowd" (name) SELECT 'person ' || n FROM generate_series(1, 5000) AS n`;
      await records.sql(REF, { statement });
      const answer = await inTable({ query: "person 2500", fuzziness: 0 }, "crowd");
      expect([answer.totalCount, (answer.records[0] as JsonObject).name]).toEqual([5000, "person 2500"]);
      await records.sql(REF, { statement: `DELETE FROM "crowd" WHERE name > 'person 2'` });
      const left = await inTable({ query: "person", fuzziness: 0 }, "crowd");
      expect(left.totalCount).toBe(1112);
    });

    test.each<[object, string]>([
      [{ query: "x".repeat(20_001) }, "query has 20001 characters; at most 20000 are allowed."],
      [{ query: "x", target: ["title", "title"] }, 'target[1]: column "title" is given twice; give it once.'],
      [{ query: "x", target: ["nope"] }, 'target[0]: table "books" has no column "nope"'],
      [
        { query: "x", target: ["pages"] },
        'target[0]: column "pages" is of type int; words are in columns of type string, text, email, multiple, json.',
      ],
      [{ query: "x", target: [{ column: "title", weight: 11 }] }, "target[0].weight is 11; expected a weight from 1 to 10."],
      [{ query: "x", filter: { nope: 1 } }, 'has no column "nope"'],
      [{ query: "!", filter: { nope: 1 } }, 'has no column "nope"'],
      [
        { query: "x", boosters: [{ numericBooster: { column: "title", factor: 1 } }] },
        'boosters[0].numericBooster.column: "title" is of type string; expected int, float.',
      ],
      [
        { query: "x", boosters: [{ numericBooster: { column: "pages" } }] },
        "boosters[0].numericBooster.factor is nothing; expected a number.",
      ],
      [{ query: "x", boosters: [{ valueBooster: { column: "pages", value: "many", factor: 1 } }] }, "boosters[0].valueBooster.value"],
      [
        { query: "x", boosters: [{ dateBooster: { column: "printed", scale: "soon", decay: 0.5 } }] },
        'boosters[0].dateBooster.scale is "soon"',
      ],
      [
        { query: "x", boosters: [{ dateBooster: { column: "printed", scale: "1d", decay: 2 } }] },
        "boosters[0].dateBooster.decay is 2; expected a number above 0, at most 1.",
      ],
      [{ query: "x", target: [5] }, "target[0] is 5; expected an object."],
      [{ query: "x", target: [{ weight: 2 }] }, "target[0].column is nothing; expected the name of a column."],
      [{ query: "x", boosters: [{}] }, 'boosters[0] is an object with no members; expected an object with one of the keys "valueBooster"'],
      [{ query: "x", boosters: [{ valueBooster: { column: 5 } }] }, "boosters[0].valueBooster.column is 5; expected the name of a column."],
      [{ query: "x", boosters: [{ valueBooster: { column: "pages", factor: 1 } }] }, "boosters[0].valueBooster.value is nothing"],
      [
        { query: "x", boosters: [{ numericBooster: { column: "pages", factor: 1, modifier: "cube" } }] },
        'modifier is "cube"; expected one of none',
      ],
      [
        { query: "x", boosters: [{ dateBooster: { column: "printed", origin: 5, scale: "1d", decay: 0.5 } }] },
        "origin is 5; expected an RFC 3339 time",
      ],
      [
        { query: "x", boosters: [{ dateBooster: { column: "printed", scale: "0d", decay: 0.5 } }] },
        'scale is "0d"; expected a number above 0',
      ],
      [
        { query: "x", boosters: [{ numericBooster: { column: "pages", factor: 1, ifMatchesFilter: { nope: 1 } } }] },
        "boosters[0].numericBooster.ifMatchesFilter.nope",
      ],
    ])("refuses %j", async (request, message) => {
      await expect(inTable(request as TextSearchRequest)).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringContaining(message),
      });
    });
  });
}
