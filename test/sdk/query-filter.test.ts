/**
 * The filter grammar through the published SDK: every operator, over scalars, lists, links, json and
 * metadata; and the messages for wrong filters.
 */
import {
  contains,
  endsWith,
  exists,
  ge,
  gt,
  iContains,
  includes,
  includesAll,
  includesAny,
  includesNone,
  iPattern,
  is,
  isNot,
  le,
  lt,
  notExists,
  pattern,
  startsWith,
} from "@xata.io/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("filtering");
  const { db } = world.client;
  await db.users.create([
    { id: "ada", name: "Ada Lovelace", email: "ada@example.com", age: 36, settings: { plan: "free", dark: true, labels: ["x", "y"] } },
    { id: "bob", name: "Bob", email: "bob@example.org", age: 41, settings: { plan: "paid", dark: false, labels: ["y"] } },
    { id: "cyd", name: "Cyd", age: 20 },
  ]);
  await db.teams.create([
    { id: "fruits", name: "Team fruits", labels: ["apple", "banana", "orange"], index: 1, rating: 1.5, owner: "ada", plan: "free" },
    {
      id: "animals",
      name: "Team animals",
      labels: ["monkey", "lion", "eagle", "dolphin"],
      index: 2,
      rating: 2.5,
      owner: "bob",
      plan: "paid",
      dark: true,
      founded: "2022-01-01T00:00:00.000Z",
      config: { color: "blue", size: 10, bg: { path: "a/b/c", alpha: 0.8 }, themes: ["dark"] },
    },
    {
      id: "mixed",
      name: "Mixed team fruits & animals",
      labels: ["monkey", "banana", "apple", "dolphin"],
      index: 30,
      dark: false,
      founded: "2022-06-01T12:00:00.000+02:00",
      config: { color: "red", size: 9, bg: { path: "a/b/c", alpha: 0.2 }, themes: ["light", "high"] },
    },
    { id: "odd", name: "100% *real*? \\o/ _under_", description: "ÄÖÜ straße ΣΊΣΥΦΟΣ" },
  ] as never);
  await db.users.update("cyd", { team: "fruits" });
});
afterAll(() => world?.stop());

/**
 * Every case is tried both as a `filter(…)` chain and as the whole filter of getAll, because the SDK sends
 * these differently.
 */
const teamIds = async (filter: Record<string, unknown>): Promise<string[]> => {
  const chained = await world.client.db.teams.filter(filter as never).getAll({ sort: "id" as never });
  const whole = await world.client.db.teams.getAll({ filter: filter as never, sort: "id" as never });
  expect(whole.map((team) => team.id)).toEqual(chained.map((team) => team.id));
  return chained.map((team) => team.id);
};

const ALL = ["animals", "fruits", "mixed", "odd"];

const CASES: [string, Record<string, unknown>, string[]][] = [
  ["a value equals", { name: "Team fruits" }, ["fruits"]],
  ["equality is exact about case", { name: "team fruits" }, []],
  ["a list is any of", { name: ["Team fruits", "Team animals"] }, ["animals", "fruits"]],
  ["$is", { name: is("Team fruits") }, ["fruits"]],
  ["$is with a list", { index: { $is: [1, 2] } }, ["animals", "fruits"]],
  ["$isNot leaves nulls out", { index: isNot(1) }, ["animals", "mixed"]],
  ["$isNot with a list is none of", { index: { $isNot: [1, 2] } }, ["mixed"]],
  ["$any with values", { name: { $any: ["Team fruits", "Team animals"] } }, ["animals", "fruits"]],
  ["$none with values", { index: { $none: [1, 2] } }, ["mixed"]],
  ["$not within a column", { index: { $not: { $gt: 1 } } }, ["fruits"]],
  ["$all within a column", { index: { $all: [{ $gt: 1 }, { $lt: 30 }] } }, ["animals"]],
  ["numbers compare as numbers", { index: gt(9) }, ["mixed"]],
  ["$lt", { index: lt(2) }, ["fruits"]],
  ["$le", { index: le(2) }, ["animals", "fruits"]],
  ["$ge", { index: ge(2) }, ["animals", "mixed"]],
  ["a range", { index: { $lt: 30, $ge: 2 } }, ["animals"]],
  ["an empty range", { index: { $lt: 2, $gt: 1 } }, []],
  ["a float", { rating: 2.5 }, ["animals"]],
  ["a float against an int", { index: { $gt: 1.5 } }, ["animals", "mixed"]],
  ["true", { dark: true }, ["animals"]],
  ["false", { dark: false }, ["mixed"]],
  ["text ranges go by code point", { name: { $ge: "T" } }, ["animals", "fruits"]],
  ["a date as ISO text", { founded: { $gt: "2022-01-01T00:00:00Z" } }, ["mixed"]],
  ["a date as a Date", { founded: { $is: new Date("2022-06-01T10:00:00Z") } }, ["mixed"]],
  ["a date in another zone is the same instant", { founded: "2022-01-01T01:00:00+01:00" }, ["animals"]],
  ["$contains", { name: contains("fruits") }, ["fruits", "mixed"]],
  ["$iContains", { name: iContains("TEAM") }, ["animals", "fruits", "mixed"]],
  ["$iContains beyond ASCII", { description: iContains("äöü STRASSE".slice(0, 3)) }, ["odd"]],
  ["$startsWith", { name: startsWith("Team") }, ["animals", "fruits"]],
  ["$endsWith", { name: endsWith("& animals") }, ["mixed"]],
  ["two operators in one object are both asked", { name: { $startsWith: "Team", $endsWith: "fruits" } }, ["fruits"]],
  ["$pattern with * and ?", { name: pattern("Mixed team fruits & *nimal?") }, ["mixed"]],
  ["$pattern is exact about case", { name: pattern("mixed*") }, []],
  ["$iPattern", { name: iPattern("mixed TEAM*") }, ["mixed"]],
  ["$pattern escapes", { name: pattern("100% \\*real\\*\\? *") }, ["odd"]],
  ["% and _ mean themselves", { name: contains("_under_") }, ["odd"]],
  ["% in $startsWith", { name: startsWith("1%") }, []],
  ["a backslash means itself in $contains", { name: contains("\\o/") }, ["odd"]],
  ["$exists", exists("index") as Record<string, unknown>, ["animals", "fruits", "mixed"]],
  ["$notExists", notExists("index") as Record<string, unknown>, ["odd"]],
  ["$existsNot, its other spelling", { $existsNot: "index" }, ["odd"]],
  ["$exists on a link", { $exists: "owner" }, ["animals", "fruits"]],
  ["$includes a value", { labels: includes("eagle") }, ["animals"]],
  ["$includes any of a list", { labels: { $includes: ["eagle", "orange"] } }, ["animals", "fruits"]],
  ["$includesAny", { labels: includesAny("banana") }, ["fruits", "mixed"]],
  ["$includesAll of a list", { labels: includesAll(["monkey", "dolphin"]) }, ["animals", "mixed"]],
  ["$includesAll with more than there is", { labels: includesAll(["monkey", "banana", "lion"]) }, []],
  ["$includes with a condition", { labels: { $includes: { $contains: "ana" } } }, ["fruits", "mixed"]],
  ["$includes with conditions and values mixed", { labels: { $includes: [{ $contains: "eag" }, "orange"] } }, ["animals", "fruits"]],
  [
    "$includes with $all and $not",
    { labels: { $includes: { $all: [{ $contains: "mon" }, { $not: { $endsWith: "keyo" } }] } } },
    ["animals", "mixed"],
  ],
  ["an id", { id: "odd" }, ["odd"]],
  ["ids", { id: { $any: ["odd", "nobody", "fruits"] } }, ["fruits", "odd"]],
  ["the version", { "xata.version": 0 }, ALL],
  ["the creation date", { "xata.createdAt": { $gt: "2020-01-01T00:00:00Z" } }, ALL],
  ["$any of an object's members", { $any: { name: "Team fruits", index: 30 } }, ["fruits", "mixed"]],
  ["$any of a list", { $any: [{ name: "Team fruits" }, { name: "Team animals" }] }, ["animals", "fruits"]],
  ["$all of a list", { $all: [{ name: contains("Team") }, { index: 1 }] }, ["fruits"]],
  ["$all of an object", { $all: { name: contains("Team"), index: 1 } }, ["fruits"]],
  ["$not of an object: not all of it", { $not: { name: "Mixed team fruits & animals", index: 30 } }, ["animals", "fruits", "odd"]],
  ["$none of an object: none of it", { $none: { index: 1, rating: 2.5 } }, []],
  ["$none of a list", { $none: [{ name: "Team fruits" }, { name: "Team animals" }] }, ["mixed", "odd"]],
  ["$not of $any", { $not: { $any: [{ name: "Team fruits" }, { name: "r2" }] } }, ["animals", "mixed", "odd"]],
  ["members are ANDed", { plan: "free", index: ge(2) }, ["mixed"]],
  [
    "deep nesting",
    { $any: [{ $all: [{ index: gt(0) }, { $not: { dark: true } }, { $exists: "dark" }] }, { $all: [{ id: "odd" }] }] },
    ["mixed", "odd"],
  ],
  ["a link's id", { owner: "ada" }, ["fruits"]],
  ["a link's id, dotted", { "owner.id": "bob" }, ["animals"]],
  ["a link's column", { "owner.name": "Bob" }, ["animals"]],
  ["a link's column with an operator", { "owner.age": gt(40) }, ["animals"]],
  ["a link's column, nested form", { owner: { name: "Bob" } }, ["animals"]],
  ["a link's json", { "owner.settings->plan": "free" }, ["fruits"]],
  ["a json path", { "config->color": "red" }, ["mixed"]],
  ["a deep json path", { "config->bg->path": "a/b/c" }, ["animals", "mixed"]],
  ["a json number", { "config->bg->alpha": 0.8 }, ["animals"]],
  ["json numbers compare as numbers", { "config->size": gt(9) }, ["animals"]],
  ["$isNot on a json path leaves out where it is missing", { "config->color": isNot("yellow") }, ["animals", "mixed"]],
  ["$not on a json path", { $not: { "config->color": "red" } }, ["animals", "fruits", "odd"].filter((id) => id === "animals")],
  ["$contains on a json path", { "config->bg->path": contains("a/b") }, ["animals", "mixed"]],
  ["an index into a json list", { "config->themes->0": "light" }, ["mixed"]],
  ["nothing matches", { name: "Not even possible" }, []],
];

describe("filters", () => {
  test.each(CASES)("%s", async (_name, filter, expected) => {
    expect(await teamIds(filter)).toEqual(expected);
  });

  test("$includesNone excludes lists that contain the value; a null list contains nothing", async () => {
    expect(await teamIds({ labels: includesNone("eagle") })).toEqual(expect.arrayContaining(["fruits", "mixed"]));
    expect(await teamIds({ labels: includesNone("eagle") })).not.toContain("animals");
    expect(await teamIds({ $exists: "labels", labels: { $includesNone: [{ $contains: "eagle" }, "orange"] } })).toEqual(["mixed"]);
  });

  test("the whole json value is compared with JSON text", async () => {
    const config = { themes: ["dark"], bg: { alpha: 0.8, path: "a/b/c" }, size: 10, color: "blue" };
    expect(await teamIds({ config: JSON.stringify(config) })).toEqual(["animals"]);
    expect(await teamIds({ config: JSON.stringify({ ...config, size: 11 }) })).toEqual([]);
    expect(await teamIds({ "config->themes": { $is: '["dark"]' } })).toEqual(["animals"]);
    expect(await teamIds({ "config->bg": { $isNot: '{"alpha": 0.80, "path": "a/b/c"}' } })).toEqual(["mixed"]);
  });

  test("chains: filter twice, any, all, not, none of queries", async () => {
    const { teams } = world.client.db;
    const ids = async (query: { getAll(): Promise<readonly { id: string }[]> }) => (await query.getAll()).map(({ id }) => id).sort();
    expect(await ids(teams.filter("name", contains("fruits")).filter("name", contains("Mixed")))).toEqual(["mixed"]);
    expect(await ids(teams.filter("labels", "banana").filter("labels", "monkey"))).toEqual(["mixed"]);
    expect(await ids(teams.filter("labels", ["eagle", "orange"]))).toEqual(["animals", "fruits"]);
    expect(await ids(teams.any(teams.filter("index", 1), teams.filter("index", 2)))).toEqual(["animals", "fruits"]);
    expect(await ids(teams.all(teams.filter("index", ge(2)), teams.filter("dark", true)))).toEqual(["animals"]);
    expect(await ids(teams.not(teams.filter("name", "Team fruits")))).toEqual(["animals", "mixed", "odd"]);
    expect(await ids(teams.none(teams.filter("id", "odd"), teams.filter("id", "mixed")))).toEqual(["animals", "fruits"]);
    expect(await ids(teams.filter("owner", { id: "ada" } as never))).toEqual(["fruits"]);
    expect(await ids(teams.filter())).toEqual(ALL);
    expect(await ids(teams.filter({}))).toEqual(ALL);
    expect(await ids(teams.filter({ id: undefined, name: "Team fruits" } as never))).toEqual(["fruits"]);
  });

  test("over a link of a link", async () => {
    const users = await world.client.db.users.getAll({ filter: { "team.owner.name": "Ada Lovelace" } as never });
    expect(users.map(({ id }) => id)).toEqual(["cyd"]);
  });

  test("one filter selects the same records in query, vectorSearch, search, aggregate and summarize", async () => {
    const { colours } = world.client.db;
    await colours.create([
      { id: "navy", name: "navy blue", family: "blue", lab: [13, 47, -64] },
      { id: "sky", name: "sky blue", family: "blue", lab: [79, -15, -21] },
      { id: "rose", name: "misty rose", family: "red", lab: [92, 8, 5] },
      { id: "none", name: "no family", lab: [1, 1, 1] },
    ]);
    const filters: Record<string, unknown>[] = [
      { family: "blue" },
      { family: isNot("blue") },
      { $not: { family: "blue" } },
      { $any: [{ name: endsWith("rose") }, { name: startsWith("sky") }] },
      { name: iPattern("*B?UE"), id: { $gt: "p" } },
      { $notExists: "family" },
      { $none: { family: "red", id: "sky" } },
    ];
    for (const filter of filters) {
      const query = (await colours.getAll({ filter: filter as never, sort: "id" as never })).map(({ id }) => id);
      const plain = await world.plain("POST", "/tables/colours/vectorSearch", {
        column: "lab",
        queryVector: [1, 2, 3],
        filter,
        size: 100,
        consistency: "strong",
      });
      const summary = await colours.summarize({ columns: ["id"] as never, filter: filter as never, sort: ["id"] as never });
      expect({ filter, ids: plain.body.results.map(({ id }: { id: string }) => id).sort() }).toEqual({ filter, ids: query });
      expect({ filter, count: plain.body.totalCount }).toEqual({ filter, count: query.length });
      expect({ filter, ids: summary.summaries.map(({ id }) => id) }).toEqual({ filter, ids: query });
      expect({ filter, count: (await colours.aggregate({ n: { count: "*" } }, filter as never)).aggs.n }).toEqual({
        filter,
        count: query.length,
      });
    }
    const found = await colours.search("blue", { filter: { id: isNot("navy") } as never });
    expect(found.records.map(({ id }) => id)).toEqual(["sky"]);
  });
});

describe("an invalid filter is a 400 whose message names the path to the fault", () => {
  test.each([
    ["an unknown column", { colour: "red" }, "colour"],
    ["an unknown operator", { name: { $like: "x" } }, "$like"],
    ["an unknown top-level operator", { $nope: [{ name: "x" }] }, "$nope"],
    ["a wrong type for the column", { index: "many" }, "index"],
    ["a range over a bool", { dark: { $gt: true } }, "dark"],
    ["a text operator on a number", { index: { $contains: "1" } }, "index"],
    ["$includes on a column that is not a list", { name: { $includes: "x" } }, "name"],
    ["an unknown column behind a link", { "owner.shoe": 44 }, "shoe"],
    ["a path through a column that is not a link", { "name.first": "x" }, "name"],
    ["a fault deep inside", { $all: [{ $any: [{ index: 1 }, { $not: { index: { $gt: "x" } } }] }] }, "$all[0].$any[1]"],
    ["$exists with a column that is not there", { $exists: "colour" }, "colour"],
    ["a date that is none", { founded: { $gt: "soon" } }, "founded"],
  ])("%s", async (_name, filter, fragment) => {
    for (const [path, body] of [
      ["/tables/teams/query", { filter }],
      ["/tables/teams/aggregate", { filter, aggs: { n: { count: "*" } } }],
      ["/tables/teams/summarize", { filter, summaries: { n: { count: "*" } } }],
      ["/tables/teams/search", { filter, query: "x" }],
    ] as const) {
      const answer = await world.plain("POST", path, body);
      expect({ path, status: answer.status, message: answer.body.message }).toEqual({
        path,
        status: 400,
        message: expect.stringContaining(fragment),
      });
    }
    await expect(world.client.db.teams.getAll({ filter: filter as never })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(fragment),
    });
  });
});
