/** Long texts are encoded and decoded in slices, on both engines, and arrive as they were sent. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { decodeRecords } from "../../../src/records/data/sql-parts/projection.ts";
import { decodeTexts, LONG_TEXT, UndecodedText, withEncodedTexts } from "../../../src/records/engine/long-texts.ts";
import { LongRowSplit } from "../../../src/records/engine/protocol-connection.ts";
import type { JsonObject } from "../../../src/records/requests.ts";
import { SLICE_UNITS, yieldToEventLoop } from "../../../src/threads/event-loop.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";

/** One, two, three and four bytes in UTF-8, what array literals escape, and a prime length, so that cuts fall everywhere. */
const PART = 'ab"\\{},NULL ж€😀é\n';
const LONG = PART.repeat(40_009);
const texts = [LONG, `😀${LONG}`, "short", `"${LONG}`, "", null];

describeOnBothEngines("Long texts", (fixture) => {
  test("a text, alone and among others, in columns of several types", async () => {
    const { engine } = fixture;
    expect(LONG.length).toBeGreaterThan(2 * LONG_TEXT);
    const json = JSON.stringify({ text: LONG });
    const { rows } = await engine.query(
      "SELECT $1::text AS text, $2::int4 AS n, $3::json::text AS json, $4::text[] AS items, $5::text AS nothing, $6::bytea AS bytes",
      [LONG, 7, json, texts, null, Buffer.from([1, 0, 2])],
    );
    expect(rows).toEqual([{ text: LONG, n: 7, json, items: texts, nothing: null, bytes: Buffer.from([1, 0, 2]) }]);
  });

  test("the values of a long row are those of a short one", async () => {
    const { engine } = fixture;
    const values =
      "true AS bool, 9007199254740993::int8 AS int8, ARRAY[1.5,NULL]::float4[] AS floats, NULL AS nothing, '{\"a\":[1]}'::jsonb AS json";
    const short = await engine.query<Record<string, unknown>>(`SELECT ${values}, $1::text AS text`, ["short"]);
    const long = await engine.query<Record<string, unknown>>(`SELECT ${values}, $1::text AS text`, [LONG]);
    expect(long.rows).toEqual([{ ...short.rows[0], text: LONG }]);
    const raw = await engine.query(`SELECT ${values}, $1::text AS text`, [LONG], { raw: true, rowMode: "array" });
    expect(raw.rows).toEqual([["t", "9007199254740993", "{1.5,NULL}", null, '{"a": [1]}', LONG]]);
  });

  test("long rows stay in order among short ones", async () => {
    const { rows } = await fixture.engine.query<{ n: number; length: number; text: string }>(
      "SELECT n, CASE WHEN n % 3 = 0 THEN $1::text || n ELSE 'x' || n END AS text FROM generate_series(1, 12) AS n ORDER BY n",
      [LONG],
    );
    expect(rows.map(({ n }) => n)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
    for (const { n, text } of rows) expect(text === (n % 3 === 0 ? `${LONG}${n}` : `x${n}`)).toBe(true);
  });

  test("bounded queries take and give them too", async () => {
    const result = await fixture.engine.transaction((connection) =>
      connection.queryBounded({
        text: "SELECT $1::text AS text, $2::text AS other",
        values: () => [LONG, null],
        maxRows: 10,
        maxBytes: 2 ** 24,
        countsAll: false,
      }),
    );
    expect(result.rows).toEqual([[LONG, null]]);
  });

  test("no more of a text than a slice is encoded or decoded at once", async () => {
    let longest = 0;
    const { toString: decode, write } = Buffer.prototype;
    const { byteLength, from } = Buffer;
    vi.spyOn(Buffer.prototype, "toString").mockImplementation(function (this: Buffer, ...given: unknown[]) {
      const [encoding, start = 0, end = this.length] = given as [BufferEncoding?, number?, number?];
      longest = Math.max(longest, end - start);
      return decode.call(this, encoding, start, end);
    });
    const ofText =
      <Given extends unknown[], Result>(work: (...given: Given) => Result) =>
      (...given: Given): Result => {
        if (typeof given[0] === "string") longest = Math.max(longest, given[0].length);
        return work(...given);
      };
    vi.spyOn(Buffer, "byteLength").mockImplementation(ofText(byteLength));
    vi.spyOn(Buffer, "from").mockImplementation(ofText(from as (...given: unknown[]) => Buffer) as never);
    vi.spyOn(Buffer.prototype, "write").mockImplementation(function (this: Buffer, ...given: unknown[]) {
      return ofText((...rest) => (write as (...values: unknown[]) => number).apply(this, rest))(...given);
    } as never);
    onTestFinished(() => void vi.restoreAllMocks());
    const { rows } = await fixture.engine.query("SELECT $1::text AS text, $2::text[] AS items", [LONG, texts]);
    vi.restoreAllMocks();
    expect(rows).toEqual([{ text: LONG, items: texts }]);
    expect(longest).toBeGreaterThan(LONG_TEXT / 2);
    expect(longest).toBeLessThan(LONG_TEXT + 10);
  });

  test("while a statement's texts are encoded and decoded, others use the database", async () => {
    const { engine } = fixture;
    const { setImmediate: run } = globalThis;
    let held: (() => void)[] = [];
    let isHolding = true;
    vi.spyOn(globalThis, "setImmediate").mockImplementation(((work: () => void) => {
      // Of event-loop.ts: whose turn it is to work on its texts.
      if (work.name !== "turn" || !isHolding) return run(work);
      held.push(work);
      return undefined;
    }) as never);
    onTestFinished(() => void vi.restoreAllMocks());
    const next = async (): Promise<void> => {
      await vi.waitUntil(() => held.length > 0);
      expect((await engine.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
      const works = held;
      held = [];
      for (const work of works) work();
    };
    const encoded = engine.query("SELECT length($1::text) AS length", [LONG]);
    await next();
    isHolding = false;
    for (const work of held) run(work);
    expect((await encoded).rows).toEqual([{ length: [...LONG].length }]);
    held = [];
    const { value } = UndecodedText.prototype;
    vi.spyOn(UndecodedText.prototype, "value").mockImplementation(function (this: UndecodedText, options) {
      isHolding = true;
      return value.call(this, options);
    });
    const decoded = engine.query("SELECT repeat('z', 2000000) AS text");
    await next();
    isHolding = false;
    for (const work of held) run(work);
    expect((await decoded).rows).toEqual([{ text: "z".repeat(2_000_000) }]);
  });

  test("what a transaction makes of its rows goes before everybody's slices, if everybody waits for it", async () => {
    const { engine } = fixture;
    const order: string[] = [];
    const texts = Array.from({ length: 4 }, () => JSON.stringify({ text: "x".repeat(SLICE_UNITS) }));
    await engine.transaction(async (connection) => {
      const others = ["a", "b", "c"].map(async (caller) => {
        await yieldToEventLoop(caller);
        order.push("other");
      });
      const projection = { sql: "", decode: (text: string) => JSON.parse(text) as JsonObject };
      await decodeRecords(connection, projection, texts).then(() => order.push("read"));
      await Promise.all(others);
    });
    expect(order).toEqual(engine.isExclusive ? ["read", "other", "other", "other"] : ["other", "other", "other", "read"]);
  });

  test("a statement that fails leaves the session usable", async () => {
    const { engine } = fixture;
    await expect(engine.query("SELECT $1::text, 1 / $2::int4", [LONG, 0])).rejects.toMatchObject({ code: "22012" });
    await expect(engine.query("SELECT $1::int4", [LONG])).rejects.toMatchObject({ code: "22P02" });
    expect((await engine.query("SELECT $1::text AS text", [LONG])).rows).toEqual([{ text: LONG }]);
  });
});

test("who is interrupted encodes and decodes no further", async () => {
  const reason = new Error("others wait");
  const [interrupted, quiet] = [{ signal: AbortSignal.abort(reason) }, { signal: new AbortController().signal }];
  const bytes = Buffer.from(LONG);
  const rows = () => [{ text: new UndecodedText(bytes) }];
  await expect(withEncodedTexts([LONG], interrupted)).rejects.toBe(reason);
  await expect(decodeTexts(rows(), interrupted)).rejects.toBe(reason);
  const decoded = rows();
  await decodeTexts(decoded, quiet);
  expect(decoded).toEqual([{ text: LONG }]);
});

describe("the split of a stream of messages", () => {
  const message = (kind: string, content: Buffer): Buffer => {
    const header = Buffer.alloc(5, kind);
    header.writeUInt32BE(content.length + 4, 1);
    return Buffer.concat([header, content]);
  };
  const row = (length: number, fill: number): Buffer => Buffer.alloc(length, fill);
  const long = [row(300_000, 1), row(262_145, 2)];
  const short = [
    message("T", Buffer.from("abc")),
    message("D", row(262_140, 3)),
    message("C", Buffer.alloc(0)),
    message("d", row(400_000, 4)),
  ];
  const stream = Buffer.concat([short[0]!, message("D", long[0]!), short[1]!, short[2]!, message("D", long[1]!), short[3]!]);

  test.each([1, 2, 3, 4, 5, 7, 4_099, 65_536, 1_000_000])("whatever its chunks: of %d bytes", (chunk) => {
    const rest: Buffer[] = [];
    const rows: Buffer[] = [];
    /** How many bytes were passed on before each row. */
    const before: number[] = [];
    let passed = 0;
    const split = new LongRowSplit(
      (bytes) => {
        rest.push(bytes);
        passed += bytes.length;
      },
      (bytes) => {
        rows.push(bytes);
        before.push(passed);
      },
    );
    for (let at = 0; at < stream.length; at += chunk) split.push(stream.subarray(at, at + chunk));
    expect(Buffer.concat(rest).equals(Buffer.concat(short))).toBe(true);
    expect(rows.map((bytes, i) => bytes.equals(long[i]!))).toEqual([true, true]);
    expect(before).toEqual([short[0]!.length, short.slice(0, 3).reduce((sum, { length }) => sum + length, 0)]);
  });
});
