import fc from "fast-check";
import { expect, test } from "vitest";
import { answerText, MAX_ANSWER_CHARACTERS } from "../../src/mcp/answer-text.ts";
import { ExactJson } from "../../src/records/exact-json.ts";
import { DOCUMENTED } from "../http/limits/limit.ts";
import { runs } from "../support/random-runs.ts";

const repeat = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));

test("a short answer is its JSON, and nothing else", () => {
  const answer = { records: [{ id: "a", lab: [1, 2.5, -3], tags: ["x"], no: null, on: true }], totalCount: 1 };
  expect(answerText(answer)).toBe(JSON.stringify(answer));
});

test("vectors are left out, with their dimension, and it says so", () => {
  const text = answerText({ records: [{ id: "a", embedding: repeat(384, (n) => n / 7), years: repeat(16, (n) => n) }] });
  expect(text).toBe(
    `{"records":[{"id":"a","embedding":"(384 numbers)","years":${JSON.stringify(repeat(16, (n) => n))}}]}\nVectors are left out.`,
  );
});

test("numbers that JavaScript does not hold keep their digits", () => {
  expect(answerText({ records: [{ n: new ExactJson("12345678901234567890") }] })).toBe('{"records":[{"n":"12345678901234567890"}]}');
});

test("a long text is cut only as far as it must be, never inside a surrogate pair, and it says how to read the rest", () => {
  const one = answerText({ id: "a", text: `${"x".repeat(9_999)}😀${"y".repeat(99)}` });
  expect(one).toContain(`${"x".repeat(9_999)}�… (10100 characters)`);
  expect(one).toContain("run_sql");
  const many = answerText({ records: repeat(10, (n) => ({ id: String(n), text: "x".repeat(5_000) })) });
  expect(many).toContain(`"9","text":"${"x".repeat(1_000)}… (5000 characters)"`);
});

test("records that do not fit are left out from the end, with their number, and without the cursor behind them", () => {
  const records = repeat(1_000, (n) => ({ id: String(n), text: "x".repeat(150) }));
  const text = answerText({ records, meta: { page: { cursor: "CURSOR", more: true, size: 1_000 } } });
  const [json = "", note = ""] = text.split("\n");
  const shown = JSON.parse(json).records as typeof records;
  expect(shown).toEqual(records.slice(0, shown.length));
  expect(note).toContain(`Only the first ${shown.length} of 1000 records fit here.`);
  expect(text).not.toContain("CURSOR");
  // One more would not have fitted.
  expect(text.length).toBeGreaterThan(MAX_ANSWER_CHARACTERS - 1_000);
});

test("what JSON writes with a backslash counts as what it takes", () => {
  const text = answerText({ records: repeat(2, (n) => ({ id: String(n), text: '"'.repeat(9_000) })) });
  expect(text.length).toBeLessThanOrEqual(MAX_ANSWER_CHARACTERS);
  expect(text).toContain("… (9000 characters)");
});

test("values nested to any depth are cut", () => {
  let deep: unknown = 1;
  for (let depth = 0; depth < 100_000; depth++) deep = [deep];
  expect(answerText({ id: "a", deep })).toContain("…");
});

test("no answer is longer than the limit of docs/limits.md", () => {
  const value = MAX_ANSWER_CHARACTERS.toLocaleString("en-US");
  expect(DOCUMENTED).toContainEqual({ name: "characters of a tool's answer", value, beyond: "cut, and says so" });
  const leaf = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 30 }).map((text) => text.repeat(2_000)),
    fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 300, size: "max" }),
    fc.dictionary(
      fc.string({ maxLength: 5 }).map((key) => key.repeat(500)),
      fc.boolean(),
    ),
    fc.constant(new ExactJson("1".repeat(50_000))),
  );
  const record = fc.dictionary(fc.string(), fc.oneof(leaf, fc.array(leaf)), { maxKeys: 20 });
  const answers = fc.oneof(record, fc.record({ records: fc.array(record, { maxLength: 30 }), totalCount: fc.nat() }));
  fc.assert(
    fc.property(answers, (answer) => {
      expect(answerText(answer).length).toBeLessThanOrEqual(MAX_ANSWER_CHARACTERS);
    }),
    { numRuns: runs(100) },
  );
});
