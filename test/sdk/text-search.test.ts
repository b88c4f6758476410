/**
 * Free text search through the published SDK: a table's search, search.all and search.byTable, with all their
 * options.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("finding");
  const { db } = world.client;
  await db.users.create([
    { id: "of-animals", name: "Owner of team animals", email: "animals@example.com", age: 30 },
    { id: "of-fruits", name: "Owner of team fruits", email: "fruits@example.com", age: 60 },
    { id: "ada", name: "Ada Lovelace", age: 36 },
  ]);
  await db.teams.create([
    { id: "fruits", name: "Team fruits", labels: ["apple", "banana", "orange"], description: "They grow on trees.", index: 1, rating: 1 },
    { id: "animals", name: "Team animals", labels: ["monkey", "lion"], description: "They eat fruits, and run.", index: 2, rating: 10 },
    {
      id: "mixed",
      name: "Mixed team fruits & animals",
      labels: ["monkey", "banana"],
      description: "Both <b>kinds</b>.",
      index: 3,
      plan: "paid",
      rating: 3,
    },
    { id: "planets", name: "Planetary society", description: "Mercury, Venus, Earth, Mars", founded: "2020-01-01T00:00:00Z" },
    { id: "rockets", name: "Rocket club", description: "To Mars and back", founded: "2024-01-01T00:00:00Z" },
    { id: "cafe", name: "Café Zürich", description: "Crème brûlée" },
  ] as never);
});
afterAll(() => world?.stop());

const teams = () => world.client.db.teams;
// biome-ignore lint/suspicious/noExplicitAny: options are tried beyond what the SDK's types allow
const find = async (query: string, options: any = {}): Promise<string[]> =>
  (await teams().search(query, options)).records.map(({ id }) => id);
const sorted = (ids: string[]) => [...ids].sort();

describe("in one table", () => {
  test("finds words in every text column, best first, with score and totalCount", async () => {
    const { records, totalCount } = await teams().search("fruits");
    expect(sorted(records.map(({ id }) => id))).toEqual(["animals", "fruits", "mixed"]);
    expect(totalCount).toBe(3);
    const scores = records.map((record) => record.getMetadata().score ?? Number.NaN);
    for (const [i, score] of scores.entries()) {
      expect(score).toBeGreaterThan(0);
      if (i > 0) expect(score).toBeLessThanOrEqual(scores[i - 1] ?? 0);
    }
  });

  test("records are whole and belong to their table", async () => {
    const { records } = await teams().search("planetary");
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({ id: "planets", name: "Planetary society", plan: "free", founded: new Date("2020-01-01T00:00:00Z") });
    expect(records[0]?.getMetadata()).toMatchObject({ table: "teams", version: 0, createdAt: expect.any(Date) });
    expect((await records[0]?.read())?.id).toBe("planets");
  });

  test("case and accents do not matter", async () => {
    expect(await find("PLANETARY")).toEqual(["planets"]);
    expect(await find("cafe", { fuzziness: 0 })).toEqual(["cafe"]);
    expect(await find("Zürich", { fuzziness: 0 })).toEqual(["cafe"]);
    expect(await find("brulee", { fuzziness: 0 })).toEqual(["cafe"]);
  });

  test("words in lists are found", async () => {
    expect(sorted(await find("banana", { fuzziness: 0 }))).toEqual(["fruits", "mixed"]);
    expect(await find("orange", { fuzziness: 0 })).toEqual(["fruits"]);
  });

  test("several words: any of them, more of them first", async () => {
    const found = await find("mars rocket", { fuzziness: 0 });
    expect(found[0]).toBe("rockets");
    expect(sorted(found)).toEqual(["planets", "rockets"]);
  });

  test("fuzziness 0, 1 (the default) and 2 tolerate that many letters", async () => {
    expect(await find("planetary", { fuzziness: 0 })).toEqual(["planets"]);
    expect(await find("planetery", { fuzziness: 0 })).toEqual([]);
    expect(await find("planetery")).toEqual(["planets"]);
    expect(await find("planetery", { fuzziness: 1 })).toEqual(["planets"]);
    expect(await find("plenetery", { fuzziness: 1 })).toEqual([]);
    expect(await find("plenetery", { fuzziness: 2 })).toEqual(["planets"]);
    expect(await find("plenetely", { fuzziness: 2 })).toEqual([]);
    expect(await find("planetry", { fuzziness: 1 })).toEqual(["planets"]);
    expect(await find("planettary", { fuzziness: 1 })).toEqual(["planets"]);
  });

  test("an exact word ranks above one with a typo", async () => {
    await teams().create({ id: "typo", name: "Rockat club" });
    const found = await find("rocket", { fuzziness: 1 });
    expect(found).toEqual(["rockets", "typo"]);
    await teams().delete("typo");
  });

  test("prefix: phrase matches the beginnings of words; disabled, the default, does not", async () => {
    expect(await find("planet", { fuzziness: 0 })).toEqual([]);
    expect(await find("planet", { fuzziness: 0, prefix: "disabled" })).toEqual([]);
    expect(await find("planet", { fuzziness: 0, prefix: "phrase" })).toEqual(["planets"]);
  });

  test("target chooses the columns, weights their importance", async () => {
    expect(sorted(await find("fruits", { target: ["name"] }))).toEqual(["fruits", "mixed"]);
    expect(await find("fruits", { target: ["description"] })).toEqual(["animals"]);
    const byDescription = await find("fruits", {
      target: [
        { column: "name", weight: 1 },
        { column: "description", weight: 10 },
      ],
    });
    expect(byDescription[0]).toBe("animals");
    const byName = await find("fruits", {
      target: [
        { column: "name", weight: 10 },
        { column: "description", weight: 1 },
      ],
    });
    expect(byName[2]).toBe("animals");
  });

  test("the filter is applied first", async () => {
    expect(sorted(await find("fruits", { filter: { index: { $lt: 3 } } }))).toEqual(["animals", "fruits"]);
    const { totalCount } = await teams().search("fruits", { filter: { plan: "paid" } as never });
    expect(totalCount).toBe(1);
  });

  test("boosters: a value, a number, a date, and only where a filter matches", async () => {
    const target = ["name"];
    const boosted = await find("team", { target, boosters: [{ valueBooster: { column: "plan", value: "paid", factor: 50 } }] });
    expect(boosted[0]).toBe("mixed");
    expect((await find("team", { target, boosters: [{ numericBooster: { column: "rating", factor: 50 } }] }))[0]).toBe("animals");
    expect(
      (await find("team", { target, boosters: [{ numericBooster: { column: "rating", factor: 50, modifier: "reciprocal" } }] }))[0],
    ).toBe("fruits");
    const date = (origin: string) => [{ dateBooster: { column: "founded", origin, scale: "30d", decay: 0.5, factor: 50 } }];
    expect(await find("mars", { boosters: date("2020-01-01T00:00:00Z") })).toEqual(["planets", "rockets"]);
    expect(await find("mars", { boosters: date("2024-01-01T00:00:00Z") })).toEqual(["rockets", "planets"]);
    const only = [{ numericBooster: { column: "rating", factor: 50, ifMatchesFilter: { id: "fruits" } } }];
    expect((await find("team", { target, boosters: only }))[0]).toBe("fruits");
  });

  test("highlight marks the matches, HTML encoded unless that is disabled", async () => {
    const { records } = await teams().search("venus");
    expect(records[0]?.getMetadata().highlight).toEqual({ description: [expect.stringContaining("<em>Venus</em>")] });
    const [encoded] = (await teams().search("kinds")).records;
    expect(JSON.stringify(encoded?.getMetadata().highlight)).toContain("&lt;b&gt;<em>kinds</em>&lt;/b&gt;");
    const [raw] = (await teams().search("kinds", { highlight: { enabled: true, encodeHTML: false } })).records;
    expect(JSON.stringify(raw?.getMetadata().highlight)).toContain("<b><em>kinds</em></b>");
    const [none] = (await teams().search("kinds", { highlight: { enabled: false } })).records;
    expect(none?.getMetadata().highlight).toBeUndefined();
  });

  test("pages by size and offset; totalCount stays", async () => {
    const all = await teams().search("team", { target: ["name"] });
    const first = await teams().search("team", { target: ["name"], page: { size: 2 } });
    const second = await teams().search("team", { target: ["name"], page: { size: 2, offset: 2 } });
    expect(all.records).toHaveLength(3);
    expect([...first.records, ...second.records].map(({ id }) => id)).toEqual(all.records.map(({ id }) => id));
    expect([first.totalCount, second.totalCount]).toEqual([3, 3]);
  });

  test("new records are found, changed ones by their new text, deleted ones not at all", async () => {
    await teams().create({ id: "new", name: "Xylophone quartet" });
    expect(await find("xylophone")).toEqual(["new"]);
    await teams().update("new", { name: "Bassoon quartet" });
    expect(await find("xylophone", { fuzziness: 0 })).toEqual([]);
    expect(await find("bassoon")).toEqual(["new"]);
    await world.client.sql`DELETE FROM "teams" WHERE "id" = ${"new"}`;
    expect(await find("bassoon")).toEqual([]);
  });

  test("an empty query finds every record", async () => {
    const { aggs } = await teams().aggregate({ all: { count: "*" } });
    expect((await teams().search("")).totalCount).toBe(aggs.all);
  });

  test("nothing found is an empty list; operators and quotes are only text", async () => {
    expect(await teams().search("qqqqqqqq")).toEqual({ records: [], totalCount: 0 });
    for (const query of ["fruits | & ! :*", '"fruits"', "fruits'; DROP TABLE teams; --", "\\fruits", "(fruits"]) {
      expect(sorted(await find(query, { fuzziness: 0 }))).toEqual(expect.arrayContaining(["fruits"]));
    }
    expect(await find("!!!")).toEqual([]);
  });

  test.each([
    ["fuzziness 3", "x", { fuzziness: 3 }, "fuzziness"],
    ["an unknown target", "x", { target: ["colour"] }, "colour"],
    ["a target that is not a text", "x", { target: ["index"] }, "index"],
    ["a weight of 11", "x", { target: [{ column: "name", weight: 11 }] }, "weight"],
    ["an unknown prefix", "x", { prefix: "word" }, "prefix"],
    ["size 201", "x", { page: { size: 201 } }, "size"],
    ["offset 801", "x", { page: { offset: 801 } }, "offset"],
    ["a filter that is wrong", "x", { filter: { shoe: 1 } }, "shoe"],
    ["a booster of an unknown column", "x", { boosters: [{ numericBooster: { column: "colour", factor: 1 } }] }, "colour"],
    ["a scale that is none", "x", { boosters: [{ dateBooster: { column: "founded", scale: "soon", decay: 0.5 } }] }, "scale"],
  ])("%s is a 400 that names it", async (_name, query, options, fragment) => {
    await expect(teams().search(query, options as never)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(fragment),
    });
  });
});

describe("over the branch", () => {
  test("search.all mixes tables, best first, each record with its table", async () => {
    const { records, totalCount } = await world.client.search.all("fruits");
    expect(totalCount).toBe(4);
    expect(records.map(({ table, record }) => [table, record.id]).sort()).toEqual([
      ["teams", "animals"],
      ["teams", "fruits"],
      ["teams", "mixed"],
      ["users", "of-fruits"],
    ]);
    const scores = records.map(({ record }) => record.getMetadata().score ?? Number.NaN);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    for (const { table, record } of records) expect(record.getMetadata().table).toBe(table);
  });

  test("search.byTable groups", async () => {
    const { records, totalCount } = await world.client.search.byTable("fruits", { tables: ["teams", "users"] });
    expect(totalCount).toBe(4);
    expect(sorted((records.teams ?? []).map(({ id }) => id))).toEqual(["animals", "fruits", "mixed"]);
    expect((records.users ?? []).map(({ id }) => id)).toEqual(["of-fruits"]);
    expect((await records.users?.[0]?.read())?.name).toBe("Owner of team fruits");
  });

  test("tables can be chosen, with filter, target and boosters of their own", async () => {
    const one = await world.client.search.all("fruits", { tables: ["users"] });
    expect(one.records.map(({ record }) => record.id)).toEqual(["of-fruits"]);
    const filtered = await world.client.search.all("fruits", {
      tables: [{ table: "teams", filter: { name: "Team fruits" }, target: ["name"] }, "users"] as never,
    });
    expect(filtered.records.map(({ record }) => record.id).sort()).toEqual(["fruits", "of-fruits"]);
    const boosted = await world.client.search.all("team", {
      tables: [{ table: "users", boosters: [{ numericBooster: { column: "age", factor: 50 } }] }, "teams"] as never,
    });
    expect(boosted.records[0]?.record.id).toBe("of-fruits");
  });

  test("fuzziness, prefix, highlight and paging as in one table", async () => {
    expect((await world.client.search.all("lovelase", { fuzziness: 0 })).totalCount).toBe(0);
    const fuzzy = await world.client.search.all("lovelase");
    expect(fuzzy.records.map(({ record }) => record.id)).toEqual(["ada"]);
    expect((await world.client.search.all("lovel", { fuzziness: 0, prefix: "phrase" })).totalCount).toBe(1);
    const page = await world.client.search.all("fruits", { page: { size: 1, offset: 1 } });
    const all = await world.client.search.all("fruits");
    expect(page.records.map(({ record }) => record.id)).toEqual([all.records[1]?.record.id]);
    expect(page.totalCount).toBe(4);
  });

  test("an unknown table is a 404 that names it", async () => {
    const answer = await world.plain("POST", "/search", { query: "x", tables: ["planets"] });
    expect([answer.status, answer.body.message]).toEqual([404, expect.stringContaining("planets")]);
  });
});
