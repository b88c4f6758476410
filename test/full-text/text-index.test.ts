import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseQuery, queryTerms } from "../../src/full-text/query.ts";
import type { Stemmer, Term } from "../../src/full-text/terms.ts";
import { type IndexedText, TextIndex } from "../../src/full-text/text-index.ts";
import { naturalLog, scoreTexts, type TextContribution, type TextScores, type TextTarget } from "../../src/full-text/text-scores.ts";
import { runs } from "../support/random-runs.ts";
import { someQuery, someTexts } from "../support/random-texts.ts";
import { type Texts, textScores } from "../support/text-oracle.ts";

function finish<Result>(work: Generator<unknown, Result>): Result {
  let step = work.next();
  while (step.done !== true) step = work.next();
  return step.value;
}

function searched(index: TextIndex, records: number, targets: readonly TextTarget[], terms: readonly Term[], stemmer?: Stemmer) {
  const view = index.view();
  const { documents, scores } = finish(scoreTexts(view, targets, terms, { records, stemmer }));
  return new Map([...documents].map((document, i) => [view.rowOf(document), scores[i]!]));
}

const change = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("set" as const), row: fc.nat(20), texts: someTexts }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("remove" as const), row: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("compact" as const) }) },
);
describe("a text index", () => {
  test("scores as an oracle over all records does, to the last bit, after any changes", () => {
    fc.assert(
      fc.property(
        fc.array(change, { minLength: 1, maxLength: 40 }),
        someQuery,
        (changes, { query, fuzziness, prefix, stemmers, weights }) => {
          const index = new TextIndex();
          for (const column of ["title", "tags"]) index.addColumn(column);
          const records = new Map<number, Texts>();
          for (const step of changes) {
            if (step.kind === "compact") finish(index.compact());
            else if (step.kind === "remove") {
              index.remove(step.row);
              records.delete(step.row);
            } else {
              finish(index.set(step.row, new Map<string, IndexedText>(Object.entries(step.texts))));
              records.set(step.row, step.texts);
            }
          }
          const terms = queryTerms(parseQuery(query, "words"), { fuzziness, prefix });
          const [stemmer, own] = stemmers;
          const targets = [
            { column: "title", weight: weights[0], stemmer: own },
            { column: "tags", weight: weights[1] },
          ];
          const found = searched(index, records.size, targets, terms, stemmer);
          const expected = textScores(records, targets, terms, stemmer);
          expect(new Set(found.keys())).toEqual(new Set(expected.keys()));
          for (const [row, score] of expected) expect(found.get(row)).toBe(score);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test("counts a word for more that the query repeats, in columns whose language is known, if few records have it", () => {
    const index = new TextIndex();
    for (const column of ["title", "body"]) index.addColumn(column);
    for (let row = 0; row < 100; row++) {
      const text = `${row % 3 === 0 ? "which" : "other"} ${row < 10 ? "bees" : "wasps"}`;
      finish(
        index.set(
          row,
          new Map([
            ["title", text],
            ["body", text],
          ]),
        ),
      );
    }
    const targets = [
      { column: "title", weight: 1 },
      { column: "body", weight: 1, stemmer: (word: string) => word.replace(/s$/, "") },
    ];
    const repetitions = (query: string) => {
      const terms = queryTerms(parseQuery(query, "words"), { fuzziness: 0, prefix: false });
      const explained = new Map<number, TextContribution[]>([[0, []]]);
      finish(scoreTexts(index.view(), targets, terms, { records: 100, explained }));
      return explained.get(0)!.map(({ word, column, repetition }) => [word, column, repetition]);
    };
    expect(repetitions("bees")).toEqual([
      ["bees", "title", 1],
      ["bees", "body", 1],
    ]);
    // (3 · 9) / (3 + 8) times, but for the tenth of the records that have it.
    expect(repetitions("bees bees which bees which")).toEqual([
      ["bees", "title", 1],
      ["bees", "body", 1 + ((3 * 9) / 11 - 1) * (1 - (4 * 10) / 100)],
      ["which", "title", 1],
      ["which", "body", 1],
    ]);
  });

  test("explains a score by parts that add up to it", () => {
    const index = new TextIndex();
    for (const column of ["title", "body"]) index.addColumn(column);
    finish(
      index.set(
        0,
        new Map([
          ["title", "a garden"],
          ["body", "garden of gardens"],
        ]),
      ),
    );
    finish(index.set(1, new Map([["title", "time"]])));
    const view = index.view();
    const targets = [
      { column: "title", weight: 3 },
      { column: "body", weight: 1 },
    ];
    const terms = queryTerms(parseQuery("garden time", "words"), { fuzziness: 1, prefix: false });
    const explained = new Map<number, TextContribution[]>([[0, []]]);
    const { scores } = finish(scoreTexts(view, targets, terms, { records: 2, explained }));
    const parts = explained.get(0)!;
    expect(parts.map(({ word: found, column, frequency, documentFrequency }) => [found, column, frequency, documentFrequency])).toEqual([
      ["garden", "title", 1, 1],
      ["garden", "body", 1.6, 1],
    ]);
    expect(parts.reduce((sum, { score }) => sum + score, 0)).toBe(scores[0]);
  });

  test("scores queries that go on at the same time, or were given up, as each alone", () => {
    const index = new TextIndex();
    for (const column of ["title", "text"]) index.addColumn(column);
    const texts = (row: number) => new Map(["title", "text"].map((column) => [column, `bee wasp${row % 5} bees${row % 3}`]));
    for (let row = 0; row < 500; row++) finish(index.set(row, texts(row)));
    const targets = ["title", "text"].map((column) => ({ column, weight: 1 }));
    const work = (query: string) =>
      scoreTexts(index.view(), targets, queryTerms(parseQuery(query, "words"), { fuzziness: 1, prefix: true }), { records: 500 });
    const queries = ["bee", "wasp1 bees", "bees2 wasp3 bee"];
    const alone = queries.map((query) => finish(work(query)));
    const givenUp = work("bee wasp");
    for (let step = 0; step < 3; step++) givenUp.next();
    const together = queries.map(work);
    const results = together.map(() => undefined as TextScores | undefined);
    while (results.includes(undefined))
      together.forEach((steps, i) => {
        const step = steps.next();
        if (step.done === true) results[i] ??= step.value;
      });
    expect(results).toEqual(alone);
    expect(queries.map((query) => finish(work(query)))).toEqual(alone);
  });

  test("leaves a search alone while records are written, removed and compacted", () => {
    const index = new TextIndex();
    index.addColumn("text");
    for (let row = 0; row < 3_000; row++) finish(index.set(row, new Map([["text", `bee ${row % 7 === 0 ? "wasp" : ""} number${row}`]])));
    const targets = [{ column: "text", weight: 1 }];
    const terms = queryTerms(parseQuery("bee wasp number", "words"), { fuzziness: 1, prefix: true });
    const view = index.view();
    const before = finish(scoreTexts(view, targets, terms, { records: 3_000 }));
    const work = scoreTexts(view, targets, terms, { records: 3_000 });
    let row = 0;
    let step = work.next();
    for (; step.done !== true; step = work.next()) {
      for (let i = 0; i < 200; i++, row++) {
        index.remove(row);
        finish(index.set(row, new Map([["text", "wasp"]])));
      }
      if (index.wantsCompaction) finish(index.compact());
    }
    expect(step.value).toEqual(before);
  });

  test("keeps up with rows that are removed while they are written, and while it is compacted", () => {
    const index = new TextIndex();
    index.addColumn("text");
    const count = (query: string): number =>
      searched(index, 10, [{ column: "text", weight: 1 }], queryTerms(parseQuery(query, "words"), { fuzziness: 0, prefix: false })).size;
    const writing = index.set(1, new Map([["text", `bee ${"x ".repeat(100_000)}`]]));
    writing.next();
    index.remove(1);
    finish(writing);
    expect(count("bee")).toBe(0);
    finish(index.set(1, new Map([["text", "bee"]])));
    finish(index.set(2, new Map([["text", "bee wasp"]])));
    const compacting = index.compact();
    compacting.next();
    index.remove(2);
    finish(compacting);
    expect([count("bee"), count("wasp")]).toEqual([1, 0]);
    const abandoned = index.compact();
    abandoned.next();
    index.addColumn("more");
    finish(abandoned);
    finish(
      index.set(
        3,
        new Map([
          ["more", "ant"],
          ["text", "bee"],
        ]),
      ),
    );
    expect(count("bee")).toBe(2);
    index.keepColumns(new Map([["more", "text"]]));
    expect([count("bee"), count("ant")]).toEqual([0, 1]);
  });

  test("takes a few bytes for each word of a record", () => {
    const index = new TextIndex();
    index.addColumn("text");
    for (let row = 0; row < 20_000; row++) {
      finish(index.set(row, new Map([["text", Array.from({ length: 10 }, (_, i) => `w${(row * (i + 7)) % 1_000}`).join(" ")]])));
    }
    // 10 words of a record, 3 bytes each.
    expect(index.memoryBytes / 20_000).toBeLessThan(60);
  });

  test("computes logarithms from additions and multiplications", () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 1e12, noNaN: true }), (x) => {
        expect(Math.abs(naturalLog(x) - Math.log(x))).toBeLessThanOrEqual(4 * Number.EPSILON * Math.max(1, Math.log(x)));
      }),
      { numRuns: runs(1_000) },
    );
    expect(naturalLog(1)).toBe(0);
  });

  test("reads texts, scores and compacts in short steps, so that others are served in between", () => {
    const index = new TextIndex();
    index.addColumn("text");
    const long = Array.from({ length: 200_000 }, (_, i) => `w${i}`).join(" ");
    const most = (work: Generator<number, unknown>): [steps: number, most: number] => {
      let [steps, greatest] = [0, 0];
      for (const units of work) {
        steps++;
        greatest = Math.max(greatest, units);
      }
      return [steps, greatest];
    };
    const [reads, read] = most(index.set(0, new Map([["text", long]])));
    expect(reads).toBeGreaterThan(15);
    expect(read).toBeLessThanOrEqual(65_536);
    const terms = queryTerms(parseQuery("w1 w22 w333 w4444", "words"), { fuzziness: 2, prefix: true });
    const [looks, looked] = most(scoreTexts(index.view(), [{ column: "text", weight: 1 }], terms, { records: 1 }));
    expect(looks).toBeGreaterThan(4 * 12);
    expect(looked).toBeLessThanOrEqual(65_536);
    expect(most(index.compact())[0]).toBe(200_000);
  });
});
