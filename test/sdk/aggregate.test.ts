/** aggregate and summarize with every function of the SDK's types, through the published SDK. */
import { ge, gt } from "@xata.io/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("counting");
  const { db } = world.client;
  await db.users.create([
    { id: "dog1", name: "Otis", age: 4, email: "dog@example.com" },
    { id: "cat", name: "Toffee", age: 4, email: "cat@example.com" },
    { id: "dog2", name: "Lyra", age: 3, email: "dog@example.com" },
  ]);
  await db.teams.create([
    {
      id: "a",
      name: "r1",
      index: 6,
      rating: 1,
      founded: "2022-01-01T09:00:00Z",
      plan: "free",
      dark: true,
      owner: "dog1",
      config: { k: 1 },
    },
    { id: "b", name: "r1", index: 8, rating: 2.2, founded: "2022-01-01T18:00:00Z", plan: "free", dark: false, owner: "dog1" },
    { id: "c", name: "r2", index: 3, rating: 3.1, founded: "2022-01-05T09:00:00Z", plan: "paid", dark: true, owner: "cat", labels: ["x"] },
    { id: "d", name: "r2", index: 2, rating: 4, founded: "2022-01-05T18:00:00Z", plan: "paid", owner: "dog2", labels: ["y"] },
    { id: "e", name: "r3", index: 12, rating: 5.3, founded: "2022-01-10T09:00:00Z", plan: "free", dark: true },
    { id: "f", name: "r4" },
  ] as never);
});
afterAll(() => world?.stop());

// biome-ignore lint/suspicious/noExplicitAny: aggregations nest without end, and the tests read them as JSON
const aggregate = async (aggs?: object, filter?: object): Promise<any> =>
  (await world.client.db.teams.aggregate(aggs as never, filter as never)).aggs;
const summarize = async (params: object): Promise<unknown> =>
  JSON.parse(JSON.stringify((await world.client.db.teams.summarize(params as never)).summaries));

describe("aggregate", () => {
  test("without anything: the count", async () => {
    expect(await aggregate()).toEqual({ count: 6 });
  });

  test("count: all, with a filter of its own, under a global filter", async () => {
    expect(
      await aggregate({ all: { count: "*" }, free: { count: { filter: { plan: "free" } } }, dark: { count: { filter: { dark: true } } } }),
    ).toEqual({
      all: 6,
      free: 4,
      dark: 3,
    });
    expect(await aggregate({ all: { count: "*" }, dark: { count: { filter: { dark: true } } } }, { plan: "paid" })).toEqual({
      all: 2,
      dark: 1,
    });
  });

  test("sum, min, max, average over int and float", async () => {
    const aggs = await aggregate({
      sumIndex: { sum: { column: "index" } },
      sumRating: { sum: { column: "rating" } },
      maxIndex: { max: { column: "index" } },
      maxRating: { max: { column: "rating" } },
      minIndex: { min: { column: "index" } },
      minRating: { min: { column: "rating" } },
      averageIndex: { average: { column: "index" } },
      averageRating: { average: { column: "rating" } },
    });
    expect(aggs).toEqual({
      sumIndex: 31,
      sumRating: expect.closeTo(15.6, 9),
      maxIndex: 12,
      maxRating: 5.3,
      minIndex: 2,
      minRating: 1,
      averageIndex: expect.closeTo(6.2, 9),
      averageRating: expect.closeTo(3.12, 9),
    });
  });

  test("over nothing they are null, and counts are 0", async () => {
    expect(
      await aggregate(
        {
          sum: { sum: { column: "index" } },
          max: { max: { column: "index" } },
          average: { average: { column: "rating" } },
          unique: { uniqueCount: { column: "name" } },
          count: { count: "*" },
          top: { topValues: { column: "name" } },
        },
        { id: "nobody" },
      ),
    ).toEqual({ sum: null, max: null, average: null, unique: 0, count: 0, top: { values: [] } });
  });

  test("uniqueCount is exact and leaves null out", async () => {
    expect(await aggregate({ names: { uniqueCount: { column: "name" } }, owners: { uniqueCount: { column: "owner" } } })).toEqual({
      names: 4,
      owners: 3,
    });
    expect(await aggregate({ names: { uniqueCount: { column: "name", precisionThreshold: 100 } } }, { plan: "free" })).toEqual({
      names: 3,
    });
  });

  test("percentiles are those of the SDK's own test, and keyed by the requested numbers with a decimal", async () => {
    const percentiles = [10, 20, 30, 40, 50, 60, 70, 80, 90, 99.5];
    expect(await aggregate({ p: { percentiles: { column: "index", percentiles } } })).toEqual({
      p: {
        values: {
          "10.0": 2,
          "20.0": 2.5,
          "30.0": 3,
          "40.0": 4.5,
          "50.0": 6,
          "60.0": 7,
          "70.0": 8,
          "80.0": 10,
          "90.0": 12,
          "99.5": 12,
        },
      },
    });
  });

  test("dateHistogram by calendar week, starting on Monday, with sub-aggregations", async () => {
    expect(
      await aggregate({
        byDate: {
          dateHistogram: {
            column: "founded",
            calendarInterval: "week",
            aggs: { total: { count: "*" }, top: { topValues: { column: "name", aggs: { best: { max: { column: "rating" } } } } } },
          },
        },
      }),
    ).toEqual({
      byDate: {
        values: [
          { $key: "2021-12-27T00:00:00.000Z", $count: 2, total: 2, top: { values: [{ $key: "r1", $count: 2, best: 2.2 }] } },
          { $key: "2022-01-03T00:00:00.000Z", $count: 2, total: 2, top: { values: [{ $key: "r2", $count: 2, best: 4 }] } },
          { $key: "2022-01-10T00:00:00.000Z", $count: 1, total: 1, top: { values: [{ $key: "r3", $count: 1, best: 5.3 }] } },
        ],
      },
    });
  });

  test.each([
    ["minute", 5],
    ["hour", 5],
    ["day", 3],
    ["month", 1],
    ["quarter", 1],
    ["year", 1],
  ])("dateHistogram by calendar %s", async (calendarInterval, buckets) => {
    const { h } = await aggregate({ h: { dateHistogram: { column: "founded", calendarInterval } } });
    expect(h.values).toHaveLength(buckets);
    expect(h.values.reduce((sum: number, { $count }: { $count: number }) => sum + $count, 0)).toBe(5);
    expect(h.values.map(({ $key }: { $key: string }) => $key)).toEqual([...h.values.map(({ $key }: { $key: string }) => $key)].sort());
  });

  test("dateHistogram by a fixed interval, and in a time zone", async () => {
    const { half } = await aggregate({ half: { dateHistogram: { column: "founded", interval: "12h" } } });
    expect(half.values.map(({ $key, $count }: { $key: string; $count: number }) => [$key, $count])).toEqual([
      ["2022-01-01T00:00:00.000Z", 1],
      ["2022-01-01T12:00:00.000Z", 1],
      ["2022-01-05T00:00:00.000Z", 1],
      ["2022-01-05T12:00:00.000Z", 1],
      ["2022-01-10T00:00:00.000Z", 1],
    ]);
    const { day } = await aggregate({ day: { dateHistogram: { column: "founded", calendarInterval: "day", timezone: "+08:00" } } });
    expect(day.values.map(({ $count }: { $count: number }) => $count)).toEqual([1, 1, 1, 1, 1]);
    expect(new Date(day.values[1].$key)).toEqual(new Date("2022-01-02T00:00:00+08:00"));
  });

  test("topValues: by count, ties by key, cut to size, over strings, ints, bools", async () => {
    expect(await aggregate({ names: { topValues: { column: "name" } } })).toEqual({
      names: {
        values: [
          { $key: "r1", $count: 2 },
          { $key: "r2", $count: 2 },
          { $key: "r3", $count: 1 },
          { $key: "r4", $count: 1 },
        ],
      },
    });
    expect(await aggregate({ plans: { topValues: { column: "plan", size: 1 } }, dark: { topValues: { column: "dark" } } })).toMatchObject({
      plans: { values: [{ $key: "free", $count: 4 }] },
      dark: { values: [{ $count: 3 }, { $count: 1 }] },
    });
  });

  test("numericHistogram with interval, offset and sub-aggregations", async () => {
    expect(
      await aggregate({
        byIndex: { numericHistogram: { column: "index", interval: 5, aggs: { average: { average: { column: "rating" } } } } },
        shifted: { numericHistogram: { column: "index", interval: 5, offset: 2 } },
      }),
    ).toEqual({
      byIndex: {
        values: [
          { $key: 0, $count: 2, average: expect.closeTo(3.55, 9) },
          { $key: 5, $count: 2, average: expect.closeTo(1.6, 9) },
          { $key: 10, $count: 1, average: expect.closeTo(5.3, 9) },
        ],
      },
      shifted: {
        values: [
          { $key: 2, $count: 3 },
          { $key: 7, $count: 1 },
          { $key: 12, $count: 1 },
        ],
      },
    });
  });

  test("a filter over a link", async () => {
    expect(await aggregate({ n: { count: "*" } }, { "owner.name": "Otis" })).toEqual({ n: 2 });
  });

  test.each([
    ["an unknown column", { x: { sum: { column: "colour" } } }, "colour"],
    ["a sum of text", { x: { sum: { column: "name" } } }, "name"],
    ["an unknown aggregation", { x: { median: { column: "index" } } }, "median"],
    ["two aggregations under one name", { x: { sum: { column: "index" }, max: { column: "index" } } }, "x"],
    ["a histogram of text", { x: { dateHistogram: { column: "name", calendarInterval: "day" } } }, "name"],
    ["an interval that is none", { x: { dateHistogram: { column: "founded", interval: "5 fortnights" } } }, "interval"],
    ["a percentile above 100", { x: { percentiles: { column: "index", percentiles: [101] } } }, "percentile"],
    ["an interval of 0", { x: { numericHistogram: { column: "index", interval: 0 } } }, "interval"],
    ["topValues of 1,001", { x: { topValues: { column: "name", size: 1001 } } }, "size"],
  ])("%s is a 400 that names it", async (_name, aggs, fragment) => {
    await expect(aggregate(aggs)).rejects.toMatchObject({ status: 400, message: expect.stringContaining(fragment) });
  });
});

describe("summarize", () => {
  test("columns alone: the groups", async () => {
    expect(
      await summarize({
        columns: ["name", "plan"],
        sort: [
          { column: "name", direction: "asc" },
          { column: "plan", direction: "asc" },
        ],
      }),
    ).toEqual([
      { name: "r1", plan: "free" },
      { name: "r2", plan: "paid" },
      { name: "r3", plan: "free" },
      { name: "r4", plan: "free" },
    ]);
  });

  test("summaries alone: one row over all", async () => {
    expect(
      await summarize({
        summaries: {
          all: { count: "*" },
          dark: { count: "dark" },
          owners: { count: "owner.name" },
          min: { min: "index" },
          max: { max: "rating" },
          sum: { sum: "index" },
          average: { average: "index" },
          first: { min: "name" },
          last: { max: "founded" },
        },
      }),
    ).toEqual([
      {
        all: 6,
        dark: 4,
        owners: 4,
        min: 2,
        max: 5.3,
        sum: 31,
        average: expect.closeTo(6.2, 9),
        first: "r1",
        last: expect.stringMatching(/^2022-01-10T09:00:00(\.0+)?Z$/),
      },
    ]);
  });

  test("groups with summaries, sorted by a summary", async () => {
    expect(
      await summarize({
        columns: ["plan"],
        summaries: { total: { count: "*" }, best: { max: "rating" } },
        sort: [{ column: "total", direction: "desc" }],
      }),
    ).toEqual([
      { plan: "free", total: 4, best: 5.3 },
      { plan: "paid", total: 2, best: 4 },
    ]);
  });

  test("select, filter and sort of the query carry over", async () => {
    const { summaries } = await world.client.db.teams
      .select(["name"])
      .filter("index", gt(2))
      .sort("name", "desc")
      .summarize({ summaries: { n: { count: "*" } } });
    expect(JSON.parse(JSON.stringify(summaries))).toEqual([
      { name: "r3", n: 1 },
      { name: "r2", n: 1 },
      { name: "r1", n: 2 },
    ]);
  });

  test("groups over a link come nested", async () => {
    expect(
      await summarize({
        columns: ["owner.email"],
        summaries: { n: { count: "*" }, oldest: { max: "owner.age" } },
        filter: { $exists: "owner" },
        sort: [{ column: "owner.email", direction: "asc" }],
      }),
    ).toEqual([
      { owner: { email: "cat@example.com" }, n: 1, oldest: 4 },
      { owner: { email: "dog@example.com" }, n: 3, oldest: 4 },
    ]);
  });

  test("a null group is a group", async () => {
    const result = (await summarize({
      columns: ["dark"],
      summaries: { n: { count: "*" } },
      sort: [{ column: "dark", direction: "asc" }],
    })) as object[];
    expect(result).toEqual([
      { dark: false, n: 1 },
      { dark: true, n: 3 },
      { dark: null, n: 2 },
    ]);
    const dates = (await world.client.db.teams.summarize({ columns: ["founded"], filter: { id: "f" } as never })).summaries;
    expect(dates[0]?.founded).toBeNull();
  });

  test.each(["asc", "desc"] as const)("a sum over nothing is null, and last when sorted %s", async (direction) => {
    const by = (await summarize({
      columns: ["id"],
      summaries: { total: { sum: "index" }, latest: { max: "founded" } },
      filter: { id: { $any: ["a", "c", "f"] } },
      sort: [{ column: "total", direction }],
    })) as { id: string; total: number | null }[];
    expect(by.at(-1)).toEqual({ id: "f", total: null, latest: null });
    expect(by.slice(0, 2).map(({ total }) => total)).not.toContain(null);
    const groups = (await summarize({ columns: ["dark"], sort: [{ column: "dark", direction }] })) as { dark: unknown }[];
    expect(groups.at(-1)?.dark).toBeNull();
  });

  test("a json column and a json path as groups", async () => {
    expect(await summarize({ columns: ["config"], filter: { id: "a" } })).toEqual([{ config: { k: 1 } }]);
  });

  test("summariesFilter filters the summaries, filter the records", async () => {
    expect(
      await summarize({
        columns: ["name"],
        summaries: { n: { count: "*" }, worst: { min: "rating" } },
        summariesFilter: { n: ge(2), worst: { $gt: 1 } },
      }),
    ).toEqual([{ name: "r2", n: 2, worst: 3.1 }]);
    expect(
      await summarize({ columns: ["name"], summaries: { n: { count: "*" } }, filter: { plan: "paid" }, summariesFilter: { name: "r2" } }),
    ).toEqual([{ name: "r2", n: 2 }]);
  });

  test("pagination.size limits the groups; 20 by default; nothing found is an empty list", async () => {
    expect(await summarize({ columns: ["id"], sort: [{ column: "id", direction: "asc" }], pagination: { size: 2 } })).toEqual([
      { id: "a" },
      { id: "b" },
    ]);
    expect(await summarize({ columns: ["name"], filter: { id: "nobody" } })).toEqual([]);
    // As in the service's own documentation: nothing but a page.
    expect(await summarize({ pagination: { size: 2 } })).toHaveLength(2);
    await world.client.db.users.create(Array.from({ length: 30 }, (_, i) => ({ id: `s${i}`, name: `many ${String(i).padStart(2, "0")}` })));
    const { summaries } = await world.client.db.users.summarize({ columns: ["name"], filter: { name: { $startsWith: "many" } } as never });
    expect(summaries.map(({ name }) => name)).toEqual(Array.from({ length: 20 }, (_, i) => `many ${String(i).padStart(2, "0")}`));
  });

  test.each([
    ["an unknown column", { columns: ["colour"] }, "colour"],
    ["an unknown function", { summaries: { x: { median: "index" } } }, "median"],
    ["a sum of text", { summaries: { x: { sum: "name" } } }, "name"],
    ["a summary that is named like a column asked for", { columns: ["name"], summaries: { name: { count: "*" } } }, "name"],
    ["a sort by what is not there", { columns: ["name"], sort: [{ column: "rating", direction: "asc" }] }, "rating"],
    ["a filter over what is not there", { columns: ["name"], summariesFilter: { shoe: 1 } }, "shoe"],
    ["a size of 1,001", { columns: ["name"], pagination: { size: 1001 } }, "size"],
  ])("%s is a 400 that names it", async (_name, params, fragment) => {
    await expect(summarize(params)).rejects.toMatchObject({ status: 400, message: expect.stringContaining(fragment) });
  });
});
