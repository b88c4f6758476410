import { beforeAll, describe, expect, test } from "vitest";
import { aggregateRecords } from "../../../../src/records/data/aggregate/aggregate-records.ts";
import { summarizeRecords } from "../../../../src/records/data/aggregate/summarize-records.ts";
import { insertRecords } from "../../../../src/records/data/write/bulk-insert.ts";
import type { JsonObject, JsonValue, SummarizeRequest } from "../../../../src/records/requests.ts";
import { describeOnBothEngines } from "../../../support/record-engines.ts";

describeOnBothEngines("groups of records", (fixture) => {
  const aggregate = async (aggs?: JsonObject, filter?: JsonValue): Promise<JsonObject> => {
    const request = { ...(aggs === undefined ? {} : { aggs }), ...(filter === undefined ? {} : { filter }) };
    return (await aggregateRecords(fixture.engine, fixture.branch, fixture.table("sales"), request)).aggs;
  };
  const summarize = async (request: SummarizeRequest) =>
    (await summarizeRecords(fixture.engine, fixture.branch, fixture.table("sales"), request)).summaries;

  beforeAll(async () => {
    await fixture.createTable("shops", [
      { name: "name", type: "string" },
      { name: "place.city", type: "string" },
    ]);
    await fixture.createTable("sales", [
      { name: "product", type: "string" },
      { name: "amount", type: "int" },
      { name: "price", type: "float" },
      { name: "at", type: "datetime" },
      { name: "paid", type: "bool" },
      { name: "tags", type: "multiple" },
      { name: "config", type: "json" },
      { name: "shop", type: "link", link: { table: "shops" } },
      { name: "buyer.name", type: "string" },
      { name: "buyer.age", type: "int" },
    ]);
    await insertRecords(fixture.engine, fixture.branch, fixture.table("shops"), [
      { id: "s1", name: "North", "place.city": "Oslo" },
      { id: "s2", name: "South", "place.city": "Rome" },
    ]);
    const rows: [string | null, number | null, number | null, string | null, boolean | null, string | null][] = [
      ["pear", 1, 0.1, "2026-01-01T00:30:00Z", true, "s1"],
      ["pear", 2, 0.3, "2026-01-01T23:30:00Z", false, "s2"],
      ["apple", 7, 0.7, "2026-01-31T12:00:00Z", true, "s1"],
      ["apple", 12, null, "2026-02-01T00:00:00Z", null, null],
      ["fig", -3, -1.5, "2026-12-31T23:59:59Z", true, "s1"],
      [null, null, 2.5, null, false, "s2"],
    ];
    await insertRecords(
      fixture.engine,
      fixture.branch,
      fixture.table("sales"),
      rows.map(([product, amount, price, at, paid, shop], i) => ({
        id: `r${i}`,
        product,
        amount,
        price,
        at,
        paid,
        shop,
        tags: product === null ? null : [product, "all"],
        config: { level: i % 2 },
        "buyer.name": i < 3 ? "Ann" : null,
        "buyer.age": i,
      })),
    );
  });

  describe("aggregate", () => {
    test("without a request counts the records", async () => {
      expect(await aggregate()).toEqual({ count: 6 });
    });

    test("returns values over all records, and over those of a filter", async () => {
      const aggs = {
        all: { count: "*" },
        paid: { count: { filter: { paid: true } } },
        oslo: { count: { filter: { "shop.place.city": "Oslo" } } },
        sum: { sum: { column: "amount" } },
        min: { min: { column: "price" } },
        first: { min: { column: "at" } },
        max: { max: { column: "amount" } },
        average: { average: { column: "amount" } },
        products: { uniqueCount: { column: "product" } },
        shops: { uniqueCount: { column: "shop.name", precisionThreshold: 10 } },
        percentiles: { percentiles: { column: "amount", percentiles: [0, 50, 99.5] } },
      } satisfies JsonObject;
      expect(await aggregate(aggs)).toEqual({
        all: 6,
        paid: 3,
        oslo: 3,
        sum: 19,
        min: -1.5,
        first: "2026-01-01T00:30:00.000Z",
        max: 12,
        average: 3.8,
        products: 3,
        shops: 2,
        percentiles: { values: { "0.0": -3, "50.0": 2, "99.5": 12 } },
      });
      expect(await aggregate(aggs, { product: "nothing" })).toEqual({
        all: 0,
        paid: 0,
        oslo: 0,
        sum: null,
        min: null,
        first: null,
        max: null,
        average: null,
        products: 0,
        shops: 0,
        percentiles: { values: { "0.0": null, "50.0": null, "99.5": null } },
      });
    });

    test("percentiles are those of the rule, in groups and whatever the number of values", async () => {
      const values = Array.from({ length: 60 }, (_, n) => ((n * 37) % 61) - 20.5);
      await fixture.createTable("readings", [
        { name: "sensor", type: "string" },
        { name: "value", type: "float" },
      ]);
      // The n-th sensor has n values, and one record without.
      const records = Array.from({ length: 10 }, (_, n) =>
        [...values.slice(0, n), null].map((value) => ({ sensor: `s${n}`, value })),
      ).flat();
      await insertRecords(fixture.engine, fixture.branch, fixture.table("readings"), records);
      const percentiles = [0, 0.1, 10, 25, 33.3, 50, 75, 99.9, 100];
      const aggs = { p: { percentiles: { column: "value", percentiles } } };
      const { aggs: found } = await aggregateRecords(fixture.engine, fixture.branch, fixture.table("readings"), {
        aggs: { ...aggs, bySensor: { topValues: { column: "sensor", size: 10, aggs } } },
      });
      const expected = (given: number[]) => {
        const sorted = given.toSorted((a, b) => a - b);
        return percentiles.map((percentile) => {
          if (sorted.length === 0) return null;
          const position = Math.min(Math.max((percentile / 100) * sorted.length - 0.5, 0), sorted.length - 1);
          const [below, above] = [sorted[Math.floor(position)]!, sorted[Math.ceil(position)]!];
          return expect.closeTo(below + (above - below) * (position % 1), 9);
        });
      };
      type Found = { readonly values: Record<string, number | null> };
      const of = (p: unknown): (number | null)[] =>
        percentiles.map((n) => (p as Found).values[Number.isInteger(n) ? `${n}.0` : String(n)]!);
      const numbers = records.map(({ value }) => value).filter((value) => value !== null);
      expect(of(found.p)).toEqual(expected(numbers));
      const groups = (found.bySensor as unknown as { values: { $key: string; $count: number; p: unknown }[] }).values;
      expect(groups).toHaveLength(10);
      for (const { $key, $count, p } of groups) {
        expect($count).toBe(Number($key.slice(1)) + 1);
        expect(of(p)).toEqual(expected(values.slice(0, $count - 1)));
      }
    });

    test("returns the most frequent values, ties ordered by value, with nested aggregations", async () => {
      expect(
        await aggregate({
          top: {
            topValues: {
              column: "product",
              size: 2,
              aggs: { sum: { sum: { column: "amount" } }, shops: { topValues: { column: "shop.name", aggs: { n: { count: "*" } } } } },
            },
          },
          paid: { topValues: { column: "paid" } },
          amounts: { topValues: { column: "amount", size: 1 } },
        }),
      ).toEqual({
        top: {
          values: [
            { $key: "apple", $count: 2, sum: 19, shops: { values: [{ $key: "North", $count: 1, n: 1 }] } },
            {
              $key: "pear",
              $count: 2,
              sum: 3,
              shops: {
                values: [
                  { $key: "North", $count: 1, n: 1 },
                  { $key: "South", $count: 1, n: 1 },
                ],
              },
            },
          ],
        },
        paid: {
          values: [
            { $key: true, $count: 3 },
            { $key: false, $count: 2 },
          ],
        },
        amounts: { values: [{ $key: -3, $count: 1 }] },
      });
    });

    test.each<[JsonObject, [string, number][]]>([
      [
        { calendarInterval: "month" },
        [
          ["2026-01-01T00:00:00.000Z", 3],
          ["2026-02-01T00:00:00.000Z", 1],
          ["2026-12-01T00:00:00.000Z", 1],
        ],
      ],
      [
        { calendarInterval: "year", timezone: "+01:00" },
        [
          ["2025-12-31T23:00:00.000Z", 4],
          ["2026-12-31T23:00:00.000Z", 1],
        ],
      ],
      [
        { calendarInterval: "day", timezone: "-01:00" },
        [
          ["2025-12-31T01:00:00.000Z", 1],
          ["2026-01-01T01:00:00.000Z", 1],
          ["2026-01-31T01:00:00.000Z", 2],
          ["2026-12-31T01:00:00.000Z", 1],
        ],
      ],
      [
        { interval: "1h" },
        [
          ["2026-01-01T00:00:00.000Z", 1],
          ["2026-01-01T23:00:00.000Z", 1],
          ["2026-01-31T12:00:00.000Z", 1],
          ["2026-02-01T00:00:00.000Z", 1],
          ["2026-12-31T23:00:00.000Z", 1],
        ],
      ],
      [
        { interval: "400d", timezone: "+01:00" },
        [
          ["2025-11-07T23:00:00.000Z", 4],
          ["2026-12-12T23:00:00.000Z", 1],
        ],
      ],
    ])("makes buckets of time %j", async (interval, expected) => {
      const { h } = (await aggregate({ h: { dateHistogram: { column: "at", ...interval } } })) as {
        h: { values: { $key: string; $count: number }[] };
      };
      expect(h.values.map((bucket) => [bucket.$key, bucket.$count])).toEqual(expected);
    });

    test("makes buckets of numbers, exact in decimals", async () => {
      expect(
        await aggregate({
          price: { numericHistogram: { column: "price", interval: 0.1, aggs: { n: { count: "*" } } } },
          amount: { numericHistogram: { column: "amount", interval: 5, offset: -3 } },
        }),
      ).toEqual({
        price: {
          values: [
            { $key: -1.5, $count: 1, n: 1 },
            { $key: 0.1, $count: 1, n: 1 },
            { $key: 0.3, $count: 1, n: 1 },
            { $key: 0.7, $count: 1, n: 1 },
            { $key: 2.5, $count: 1, n: 1 },
          ],
        },
        amount: {
          values: [
            { $key: -3, $count: 2 },
            { $key: 2, $count: 1 },
            { $key: 7, $count: 1 },
            { $key: 12, $count: 1 },
          ],
        },
      });
    });

    test("refuses to make more than 10,000 buckets", async () => {
      await fixture.createTable("many", [{ name: "x", type: "int" }]);
      await fixture.engine.query(`INSERT INTO "test:main".many (x) SELECT generate_series(1, 10001)`);
      const run = (interval: number) =>
        aggregateRecords(fixture.engine, fixture.branch, fixture.table("many"), {
          aggs: { h: { numericHistogram: { column: "x", interval } } },
        });
      await expect(run(1)).rejects.toMatchObject({
        code: "INVALID",
        message: "aggs.h.numericHistogram makes more than 10000 buckets; choose a larger interval, or filter the records.",
      });
      expect(((await run(2)).aggs.h as { values: unknown[] }).values).toHaveLength(5001);
    });

    test("nests buckets four deep", async () => {
      const nested = (levels: string[]): JsonObject =>
        levels.length === 0 ? { n: { count: "*" } } : { by: { topValues: { column: levels[0]!, aggs: nested(levels.slice(1)) } } };
      const answer = (await aggregate(nested(["shop.name", "product", "paid", "amount"]))) as { by: { values: JsonObject[] } };
      const north = answer.by.values[0] as unknown as { $key: string; by: { values: { $key: string; by: { values: JsonObject[] } }[] } };
      expect(north.$key).toBe("North");
      expect(north.by.values.map((bucket) => bucket.$key)).toEqual(["apple", "fig", "pear"]);
      expect(north.by.values[0]!.by.values).toEqual([{ $key: true, $count: 1, by: { values: [{ $key: 7, $count: 1, n: 1 }] } }]);
    });

    test("keeps infinite times and numbers out of the buckets", async () => {
      await fixture.createTable("odd", [
        { name: "at", type: "datetime" },
        { name: "x", type: "float" },
      ]);
      await fixture.engine.query(
        `INSERT INTO "test:main".odd (at, x) VALUES ('infinity', 'Infinity'), ('-infinity', 'NaN'), ('2026-01-01T00:00:00Z', '-Infinity'), (NULL, 1)`,
      );
      const { aggs } = await aggregateRecords(fixture.engine, fixture.branch, fixture.table("odd"), {
        aggs: {
          days: { dateHistogram: { column: "at", calendarInterval: "day" } },
          hours: { dateHistogram: { column: "at", interval: "1h" } },
          x: { numericHistogram: { column: "x", interval: 1 } },
          average: { average: { column: "x" } },
        },
      });
      const day = { values: [{ $key: "2026-01-01T00:00:00.000Z", $count: 1 }] };
      expect(aggs).toEqual({ days: day, hours: day, x: { values: [{ $key: 1, $count: 1 }] }, average: null });
    });

    test.each<[JsonValue, string]>([
      [{ x: { sum: { column: "nope" } } }, 'aggs.x.sum.column: table "sales" has no column "nope"'],
      [{ x: { sum: { column: "product" } } }, 'aggs.x.sum.column: "product" is of type string; expected a column of type int, float.'],
      [
        { x: { median: { column: "amount" } } },
        'aggs.x is an object with "median"; expected an object with one of the keys "count", "sum"',
      ],
      [{ x: { sum: { column: "amount" }, max: { column: "amount" } } }, "expected an object with one of the keys"],
      [{ x: { count: { filter: { nope: 1 } } } }, "aggs.x.count.filter.nope"],
      [{ x: { sum: { column: "amount", of: 1 } } }, 'aggs.x.sum has an unknown member "of"; it takes "column".'],
      [
        { x: { percentiles: { column: "amount", percentiles: [101] } } },
        "aggs.x.percentiles.percentiles[0] is 101; expected a percentile from 0 to 100.",
      ],
      [{ x: { dateHistogram: { column: "at" } } }, "needs either an interval"],
      [{ x: { dateHistogram: { column: "at", interval: "5 fortnights" } } }, 'aggs.x.dateHistogram.interval is "5 fortnights"; expected'],
      [{ x: { dateHistogram: { column: "at", interval: "0d" } } }, "expected a number above 0"],
      [{ x: { dateHistogram: { column: "at", calendarInterval: "moon" } } }, "expected one of minute, hour"],
      [
        { x: { dateHistogram: { column: "at", calendarInterval: "day", timezone: "CET" } } },
        'expected an offset from UTC such as "+01:00".',
      ],
      [{ x: { numericHistogram: { column: "amount", interval: 0 } } }, "aggs.x.numericHistogram.interval is 0; expected a number above 0."],
      [{ x: { topValues: { column: "product", size: 1001 } } }, "aggs.x.topValues.size is 1001; expected a whole number from 1 to 1000."],
      [{ x: { topValues: { column: "config" } } }, '"config" is of type json'],
      [{ $x: { count: "*" } }, 'a name must not begin with "$"'],
      [{ x: { topValues: { column: "product", aggs: { y: { sum: { column: "product" } } } } } }, "aggs.x.topValues.aggs.y.sum.column"],
      [5, "aggs is 5"],
    ])("refuses %j", async (aggs, message) => {
      await expect(aggregate(aggs as JsonObject)).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining(message) });
    });
  });

  describe("summarize", () => {
    test("groups by columns, links, objects and json paths, and leaves null out", async () => {
      expect(await summarize({ columns: ["product"] })).toEqual([{ product: "apple" }, { product: "fig" }, { product: "pear" }, {}]);
      expect(
        await summarize({ columns: ["shop", "shop.place.city"], filter: { $exists: "shop" }, summaries: { n: { count: "*" } } }),
      ).toEqual([
        { shop: { id: "s1", place: { city: "Oslo" } }, n: 3 },
        { shop: { id: "s2", place: { city: "Rome" } }, n: 2 },
      ]);
      expect(await summarize({ columns: ["buyer.*"], filter: { "buyer.age": { $lt: 2 } } })).toEqual([
        { buyer: { name: "Ann", age: 0 } },
        { buyer: { name: "Ann", age: 1 } },
      ]);
      expect(await summarize({ columns: ["config->level"], summaries: { n: { count: "product" } } })).toEqual([
        { "config->level": 0, n: 3 },
        { "config->level": 1, n: 2 },
      ]);
      expect(await summarize({ columns: ["config", "paid"], filter: { id: "r0" } })).toEqual([{ config: { level: 0 }, paid: true }]);
    });

    test("without columns and summaries returns the combinations of all columns, a page of them", async () => {
      expect(await summarize({ page: { size: 4 } })).toEqual(await summarize({ columns: ["*"], page: { size: 4 } }));
      expect(await summarize({ page: { size: 4 } })).toHaveLength(4);
      expect(await summarize({})).toHaveLength(6);
      expect(await summarize({ summaries: {}, filter: { product: "fig" } })).toMatchObject([{ product: "fig", shop: { id: "s1" } }]);
    });

    test("without columns returns one row, even over nothing", async () => {
      const summaries = {
        all: { count: "*" },
        tags: { max: "tags" },
        first: { min: "at" },
        sum: { sum: "amount" },
        price: { sum: "price" },
        average: { average: "amount" },
        city: { max: "shop.place.city" },
      };
      expect(await summarize({ summaries })).toEqual([
        {
          all: 6,
          tags: ["pear", "all"],
          first: "2026-01-01T00:30:00.000Z",
          sum: 19,
          price: expect.closeTo(2.1, 9),
          average: 3.8,
          city: "Rome",
        },
      ]);
      const nothing = { tags: null, first: null, sum: null, price: null, average: null, city: null };
      expect(await summarize({ summaries, filter: { id: "nobody" } })).toEqual([{ all: 0, ...nothing }]);
      expect(await summarize({ columns: ["product"], summaries, filter: { id: "nobody" } })).toEqual([]);
    });

    test("sorts and filters by columns and summaries alike, and limits the result", async () => {
      const request = { columns: ["product", "shop.name"], summaries: { n: { count: "*" }, best: { max: "amount" } } };
      expect(
        await summarize({ ...request, sort: [{ best: "desc" }], summariesFilter: { product: { $startsWith: "p" }, n: { $ge: 1 } } }),
      ).toEqual([
        { product: "pear", shop: { name: "South" }, n: 1, best: 2 },
        { product: "pear", shop: { name: "North" }, n: 1, best: 1 },
      ]);
      expect(
        await summarize({ ...request, summariesFilter: { "shop.name": "North", best: { $gt: 0 } }, sort: "product", page: { size: 1 } }),
      ).toEqual([{ product: "apple", shop: { name: "North" }, n: 1, best: 7 }]);
      expect(
        await summarize({ columns: ["shop"], summaries: { n: { count: "*" } }, summariesFilter: { "shop.place.city": "Rome" } }),
      ).toEqual([{ shop: { id: "s2" }, n: 2 }]);
    });

    test.each<[SummarizeRequest, string]>([
      [{ columns: [] }, "summarize needs columns to group by, or summaries"],
      [{ columns: ["nope"] }, 'columns[0]: table "sales" has no column "nope"'],
      [
        { summaries: { x: { median: "amount" } } },
        'summaries.x is an object with "median"; expected an object with one of the keys "count", "min", "max", "sum", "average".',
      ],
      [{ summaries: { x: { sum: "product" } } }, 'summaries.x.sum: column "product" is of type string; expected int, float.'],
      [{ columns: ["product"], summaries: { product: { count: "*" } } }, "summaries.product has the name of a selected column"],
      [{ columns: ["buyer.*"], summaries: { buyer: { count: "*" } } }, "summaries.buyer has the name of a selected column"],
      [{ columns: ["product"], sort: { amount: "asc" } }, 'sort: "amount" is not among the selected names: "product".'],
      [{ columns: ["product"], sort: { "*": "random" } }, "summaries cannot be sorted randomly"],
      [{ columns: ["product"], summariesFilter: { amount: 1 } }, 'has no column "amount"'],
      [{ columns: ["product"], summariesFilter: { id: "r1" } }, 'summariesFilter: "id" is not among the selected names: "product".'],
      [{ columns: ["product.*"] }, 'columns[0]: "product" is not a link, so there is no "product.*".'],
      [{ summaries: { x: { sum: 5 as unknown as string } } }, "summaries.x.sum is 5; expected the name of a column."],
      [
        { summaries: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`n${n}`, { count: "*" }])) },
        "summaries has 101 entries; at most 100 are allowed",
      ],
    ])("refuses %j", async (request, message) => {
      await expect(summarize(request)).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining(message) });
    });
  });
});
