import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { searchTable } from "../../../../src/records/data/text-search/match-table.ts";
import { highlight, searchBranchRecords, searchTableRecords } from "../../../../src/records/data/text-search/search-text.ts";
import { readScope } from "../../../../src/records/data/text-search/text-search-request.ts";
import {
  levenshtein,
  matchQuality,
  piecesOf,
  plain,
  type Term,
  TermMatcher,
  termsOf,
  wordsOf,
} from "../../../../src/records/data/text-search/words.ts";
import { insertRecords } from "../../../../src/records/data/write/bulk-insert.ts";
import type { Connection } from "../../../../src/records/engine/engine.ts";
import type { BranchSearchRequest, TextSearchRequest } from "../../../../src/records/requests.ts";
import { Slices } from "../../../../src/threads/event-loop.ts";
import { turnsDuring } from "../../../support/event-loop.ts";
import { runs } from "../../../support/random-runs.ts";
import { describeOnBothEngines } from "../../../support/record-engines.ts";

describe("words", () => {
  test("are runs of letters, digits and marks, compared without case and accents", () => {
    expect(wordsOf("Crème brûlée, x2—ÄÖÜ ﬁn").map((word) => word.plain)).toEqual(["creme", "brulee", "x2", "aou", "fin"]);
    expect(wordsOf("a👀b").map(({ start, end }) => [start, end])).toEqual([
      [0, 1],
      [3, 4],
    ]);
    expect(plain("İSTANBUL")).toBe(plain("i̇stanbul"));
  });

  test("have as distance the number of letters that must change", () => {
    const word = fc.stringMatching(/^[ab]{0,7}$/);
    fc.assert(
      fc.property(word, word, fc.integer({ min: 0, max: 7 }), (a, b, limit) => {
        const exact = (i: number, j: number): number =>
          i === 0
            ? j
            : j === 0
              ? i
              : Math.min(exact(i - 1, j) + 1, exact(i, j - 1) + 1, exact(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1));
        const distance = exact(a.length, b.length);
        const got = levenshtein(a, b, limit);
        if (distance <= limit) expect(got).toBe(distance);
        else expect(got).toBeGreaterThan(limit);
      }),
      { numRuns: runs(200) },
    );
  });

  test("that match share a piece with what they match", () => {
    const word = fc.stringMatching(/^[abc]{1,9}$/);
    fc.assert(
      fc.property(word, word, fc.integer({ min: 0, max: 2 }), fc.boolean(), (query, other, fuzziness, prefix) => {
        const [term] = termsOf(query, fuzziness, prefix);
        if (matchQuality(term!, other) > 0) expect(piecesOf(term!).some((piece) => other.includes(piece))).toBe(true);
      }),
      { numRuns: runs(2_000) },
    );
  });

  test("give the same matches all together as one by one", () => {
    const word = fc.stringMatching(/^[a-dA-D\u00e4\u0430-\u0433]{1,9}$/);
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 6 }),
        word,
        fc.integer({ min: 0, max: 2 }),
        fc.boolean(),
        (query, text, fuzziness, prefix) => {
          const terms = termsOf(query.join(" "), fuzziness, prefix);
          const [other] = wordsOf(text);
          const expected = terms
            .map((term, index) => ({ index, quality: matchQuality(term, other!.plain) }))
            .filter(({ quality }) => quality > 0);
          const matcher = new TermMatcher(terms);
          for (const _ of ["computed", "remembered"]) expect(matcher.match(other!)).toEqual(expected);
        },
      ),
      { numRuns: runs(2_000) },
    );
  });

  test("are found across the windows in which a long text is read", () => {
    for (const gap of [65_530, 65_533, 65_536, 131_070]) {
      const text = `${" ".repeat(gap)}crème👀${"x".repeat(200_000)} end`;
      expect(wordsOf(text).map(({ start, end, plain }) => [text.slice(start, end).length, plain.slice(0, 6)])).toEqual([
        [5, "creme"],
        [200_000, "xxxxxx"],
        [3, "end"],
      ]);
    }
  });

  test("that are too short to be recognised with a changed letter must match exactly", () => {
    expect(termsOf("a ab abc abcde", 2, false).map((term) => term.distance)).toEqual([0, 0, 1, 2]);
  });
});

describe("highlights", () => {
  const marked = (text: string, terms: readonly Term[]) => highlight(text, new TermMatcher(terms), true, new Slices());

  test("mark the words in the original text, and encode the text around them", async () => {
    const terms = termsOf("creme", 0, false);
    expect(await marked("<Crème> & crèmes", terms)).toEqual(["&lt;<em>Crème</em>&gt; &amp; crèmes"]);
    expect(await marked("nothing", terms)).toEqual([]);
  });

  test("of a long text are excerpts around the matches", async () => {
    const text = `${"lorem ipsum ".repeat(50)}NEEDLE ${"dolor sit ".repeat(50)}needle end`;
    const fragments = await marked(text, termsOf("needle", 0, false));
    expect(fragments).toHaveLength(2);
    expect(fragments[0]).toContain("<em>NEEDLE</em>");
    expect(fragments[1]).toMatch(/<em>needle<\/em> end$/);
    for (const fragment of fragments) expect(fragment.length).toBeLessThan(220);
  });
});

describeOnBothEngines("free text search", (fixture) => {
  const inTable = (request: TextSearchRequest) => searchTableRecords(fixture.engine, fixture.branch, fixture.table("books"), request);
  const find = async (query: string, options: Omit<TextSearchRequest, "query"> = {}) =>
    (await inTable({ query, ...options })).records.map((record) => record.id);

  beforeAll(async () => {
    await fixture.createTable("books", [
      { name: "title", type: "string" },
      { name: "about.text", type: "text" },
      { name: "tags", type: "multiple" },
      { name: "pages", type: "int" },
      { name: "printed", type: "datetime" },
    ]);
    await fixture.createTable("authors", [{ name: "name", type: "string" }]);
    await fixture.createTable("numbers", [{ name: "n", type: "int" }]);
    await insertRecords(fixture.engine, fixture.branch, fixture.table("books"), [
      {
        id: "b1",
        title: "The Planetary Garden",
        "about.text": "Où poussent les forêts",
        tags: ["trees", "Gärten"],
        pages: 100,
        printed: "2020-01-01T00:00:00Z",
      },
      {
        id: "b2",
        title: "Garden of forking paths",
        "about.text": "A labyrinth of time, a garden, another garden",
        pages: 10,
        printed: "1941-01-01T00:00:00Z",
      },
      { id: "b3", title: "Time", tags: ["garden"], pages: 1 },
      { id: "b4", title: null },
      { id: "b5", title: "100% \\ of_it 👀 東京" },
    ]);
    await insertRecords(fixture.engine, fixture.branch, fixture.table("authors"), [{ id: "a1", name: "Garden, John" }]);
  });

  test("finds words in texts, objects and lists, whatever their case and accents, and returns whole records", async () => {
    const answer = await inTable({ query: "FORETS", fuzziness: 0 });
    expect(answer).toEqual({
      totalCount: 1,
      records: [
        {
          id: "b1",
          title: "The Planetary Garden",
          about: { text: "Où poussent les forêts" },
          tags: ["trees", "Gärten"],
          pages: 100,
          printed: "2020-01-01T00:00:00.000Z",
          xata: {
            version: 0,
            createdAt: expect.any(String),
            updatedAt: expect.any(String),
            table: "books",
            score: expect.any(Number),
            highlight: { "about.text": ["Où poussent les <em>forêts</em>"] },
          },
        },
      ],
    });
    expect(await find("garten", { fuzziness: 0 })).toEqual(["b1"]);
    expect((await find("garden", { fuzziness: 0 })).sort()).toEqual(["b1", "b2", "b3"]);
    expect(await find("東京", { fuzziness: 0 })).toEqual(["b5"]);
  });

  test("tolerates as many changed letters as it is told to", async () => {
    expect(await find("planetery", { fuzziness: 0 })).toEqual([]);
    expect(await find("planetery")).toEqual(["b1"]);
    expect(await find("plenetery", { fuzziness: 2 })).toEqual(["b1"]);
    expect(await find("planet", { fuzziness: 0, prefix: "phrase" })).toEqual(["b1"]);
    expect(await find("planet garden", { fuzziness: 0, prefix: "phrase", target: ["tags"] })).toEqual(["b3"]);
  });

  test("ranks higher what matches more, and in columns with more weight", async () => {
    expect((await find("garden time", { fuzziness: 0 }))[0]).toBe("b3");
    const target = (title: number, text: number) => [
      { column: "title", weight: title },
      { column: "about.text", weight: text },
    ];
    expect(await find("garden", { fuzziness: 0, target: target(1, 10) })).toEqual(["b2", "b1"]);
  });

  test("boosts by a value, a number and a time, where a filter matches", async () => {
    const first = async (booster: object) => (await find("garden", { boosters: [booster] as never }))[0];
    expect(await first({ valueBooster: { column: "pages", value: 1, factor: 100 } })).toBe("b3");
    expect(await first({ numericBooster: { column: "pages", factor: 1 } })).toBe("b1");
    expect(await first({ numericBooster: { column: "pages", factor: 100, modifier: "reciprocal" } })).toBe("b3");
    expect(await first({ numericBooster: { column: "pages", factor: 100, ifMatchesFilter: { id: "b2" } } })).toBe("b2");
    expect(
      await first({ dateBooster: { column: "printed", origin: "1941-01-01T00:00:00Z", scale: "365d", decay: 0.5, factor: 100 } }),
    ).toBe("b2");
  });

  test("filters first, pages, and counts all", async () => {
    expect(await find("garden", { filter: { pages: { $lt: 50 } } })).toEqual(expect.arrayContaining(["b2", "b3"]));
    const all = await find("garden");
    const page = await inTable({ query: "garden", page: { size: 1, offset: 1 } });
    expect([page.records.map((record) => record.id), page.totalCount]).toEqual([[all[1]], 3]);
    expect(await inTable({ query: "garden", page: { size: 0 } })).toEqual({ records: [], totalCount: 3 });
    // As LangChain's store counts what can be found.
    const { totalCount } = await inTable({});
    expect(totalCount).toBeGreaterThan(3);
    expect(await inTable({ query: "", page: { size: 0 } })).toEqual({ records: [], totalCount });
  });

  test("treats every text as words and nothing else", async () => {
    for (const query of ["%", "_", "\\", "'; DROP TABLE books; --", "!!!", "👀"])
      expect(await inTable({ query })).toEqual({ records: [], totalCount: 0 });
    expect(await find("100% of_it\\", { fuzziness: 0 })).toContain("b5");
  });

  test("over a branch returns every record with its table, best first", async () => {
    const run = (request: BranchSearchRequest) => searchBranchRecords(fixture.engine, fixture.branch, request);
    const { records, totalCount } = await run({ query: "garden", fuzziness: 0 });
    expect(totalCount).toBe(4);
    expect(records.map((record) => (record.xata as { table: string }).table).sort()).toEqual(["authors", "books", "books", "books"]);
    const scores = records.map((record) => (record.xata as { score: number }).score);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    const chosen = await run({
      query: "garden",
      fuzziness: 0,
      tables: ["authors", { table: "books", filter: { id: "b2" }, target: ["title"] }],
    });
    expect(chosen.records.map((record) => record.id).sort()).toEqual(["a1", "b2"]);
    await expect(run({ query: "x", tables: ["books", "books"] })).rejects.toMatchObject({
      code: "INVALID",
      message: 'tables[1]: table "books" is given twice; give it once.',
    });
    await expect(run({ query: "x", tables: ["nope"] })).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: 'tables[0]: there is no table "nope"; the branch has "books", "authors", "numbers".',
    });
  });

  test("reads more records than one batch holds", async () => {
    await fixture.createTable("crowd", [{ name: "name", type: "string" }]);
    await fixture.engine.query(`INSERT INTO "test:main".crowd (name) SELECT 'person ' || n FROM generate_series(1, 2500) AS n`);
    const answer = await searchTableRecords(fixture.engine, fixture.branch, fixture.table("crowd"), { query: "person 2500", fuzziness: 0 });
    expect([answer.totalCount, answer.records[0]!.name]).toEqual([2500, "person 2500"]);
  });

  /** Replays the database's results at once, so that only the work on them takes turns. */
  const replayed = async (work: (connection: Connection) => Promise<unknown>): Promise<number> => {
    const answers: unknown[] = [];
    const first = await work({
      query: async (...statement) => {
        const answer = await fixture.engine.query(...(statement as Parameters<Connection["query"]>));
        answers.push(answer);
        return answer as never;
      },
    });
    let second: unknown;
    const turns = await turnsDuring(async () => {
      second = await work({ query: async () => answers.shift() as never });
    });
    expect(second).toEqual(first);
    return turns;
  };

  test("serves others while it looks for many words in much text, and while it marks them", async () => {
    const table = await fixture.createTable("volumes", [{ name: "text", type: "text" }]);
    const text = Array.from({ length: 60_000 }, (_, i) => `w${((i * 7919) % 60_000).toString(36).padStart(7, "q")}`).join(" ");
    const gaps = " ".repeat(8_000_000);
    const records = [{ text: `${text} thirty` }, { text: `${gaps}thirty` }, { text: `${"x".repeat(8_000_000)} thirty` }];
    for (const record of records) await insertRecords(fixture.engine, fixture.branch, table, [record]);
    const query = `${Array.from({ length: 63 }, (_, i) => `wq${(i * 999).toString(36).padStart(6, "q")}`).join(" ")} thirty`;
    const search = (connection: Connection) =>
      searchTableRecords(connection, fixture.branch, table, { query, fuzziness: 2, highlight: { enabled: false } });
    // Some 10 slices for the words, 15 for each of the others.
    expect(await replayed(search)).toBeGreaterThan(30);
    expect(await replayed((connection) => searchTableRecords(connection, fixture.branch, table, { query: "thirty" }))).toBeGreaterThan(60);
  });

  test("searches again for matches that are too many to be kept", async () => {
    const table = await fixture.createTable("swarm", [{ name: "name", type: "string" }]);
    await fixture.engine.query(
      `INSERT INTO "test:main".swarm (id, name) SELECT 'r' || n, repeat('bee ', 1 + n % 7) || n FROM generate_series(1, 700) AS n`,
    );
    const plan = readScope(fixture.branch, table, {}, "");
    const found = (maxKeptBytes?: number) =>
      searchTable(fixture.engine, fixture.branch, plan, termsOf("bee 77", 1, false), 20, new Slices(), maxKeptBytes);
    const kept = await found();
    expect([kept.total, kept.best.length, kept.best[0]!.id]).toEqual([700, 20, "r77"]);
    expect(await found(10_000)).toEqual(kept);
  });

  test.each<[object, string]>([
    [{ query: "x".repeat(2001) }, "query has 2001 characters; at most 2000 are allowed."],
    [{ query: Array.from({ length: 65 }, (_, i) => `w${i}`).join(" ") }, "query has 65 different words; at most 64 are allowed."],
    [{ query: "x", target: ["nope"] }, 'target[0]: table "books" has no column "nope"'],
    [
      { query: "x", target: ["pages"] },
      'target[0]: column "pages" is of type int; words are in columns of type string, text, email, multiple.',
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
      "boosters[0].ifMatchesFilter.nope",
    ],
  ])("refuses %j", async (request, message) => {
    await expect(inTable(request as TextSearchRequest)).rejects.toMatchObject({
      code: "INVALID",
      message: expect.stringContaining(message),
    });
  });
});
