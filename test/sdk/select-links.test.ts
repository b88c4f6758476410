/**
 * select: columns, links and links of links, reverse links, json paths; json and date values; through the
 * published SDK.
 */
import type { XataRecord } from "@xata.io/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, values, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("selecting");
  const { db } = world.client;
  await db.users.create([
    { id: "ada", name: "Ada", email: "ada@example.com", age: 36, born: "1815-12-10T00:00:00Z", settings: { theme: ["dark"] } },
    { id: "bob", name: "Bob", age: 41 },
  ] as never);
  await db.teams.create([
    { id: "one", name: "Team one", index: 1, owner: "ada", labels: ["a"], config: { bg: { path: "x/y", alpha: 0.5 }, list: [5] } },
    { id: "two", name: "Team two", index: 2, owner: "ada" },
    { id: "three", name: "Team three", index: 3, owner: "bob" },
    { id: "lone", name: "Lone team", index: 4 },
  ] as never);
  await db.users.update("bob", { team: "one" });
});
afterAll(() => world?.stop());

const teams = () => world.client.db.teams;
const users = () => world.client.db.users;
const plainQuery = async (table: string, body: object) => (await world.plain("POST", `/tables/${table}/query`, body)).body.records;
const meta = { version: expect.any(Number), createdAt: expect.any(String), updatedAt: expect.any(String) };

describe("columns", () => {
  test("only selected ones are returned, with id and metadata", async () => {
    const team = await teams().select(["name"]).filter("id", "one").getFirst();
    expect(values(team)).toEqual({ id: "one", name: "Team one" });
    expect(team?.getMetadata()).toMatchObject({ version: 0, createdAt: expect.any(Date), updatedAt: expect.any(Date) });
  });

  test("also in getFirst, read and getMany", async () => {
    expect(values(await teams().getFirst({ filter: { id: "two" }, columns: ["index", "name"] }))).toEqual({
      id: "two",
      name: "Team two",
      index: 2,
    });
    expect(values(await teams().read("two", ["index"]))).toEqual({ id: "two", index: 2 });
    expect((await teams().select(["index"]).sort("index").getMany()).map(values)).toEqual([
      { id: "one", index: 1 },
      { id: "two", index: 2 },
      { id: "three", index: 3 },
      { id: "lone", index: 4 },
    ]);
  });

  test("without columns, plain requests return everything except the contents of links", async () => {
    const [record] = await plainQuery("teams", { filter: { id: "one" } });
    expect(record).toEqual({
      id: "one",
      name: "Team one",
      index: 1,
      plan: "free",
      labels: ["a"],
      owner: { id: "ada" },
      config: { bg: { path: "x/y", alpha: 0.5 }, list: [5] },
      xata: meta,
    });
  });

  test("an unknown column is a 400 that names it", async () => {
    await expect(teams().getAll({ columns: ["colour"] as never })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("colour"),
    });
    await expect(teams().read("one", ["owner.shoe"] as never)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("shoe"),
    });
    await expect(teams().getAll({ columns: ["name.first"] as never })).rejects.toMatchObject({ status: 400 });
  });
});

describe("links", () => {
  test("a link named alone returns its whole record, whose own links are ids; under * it is an id", async () => {
    const team = await teams().select(["name", "owner"]).filter("id", "one").getFirst();
    expect(team?.owner).toMatchObject({ id: "ada", name: "Ada", age: 36, settings: { theme: ["dark"] } });
    expect((team?.owner as never as XataRecord | undefined)?.getMetadata()).toMatchObject({ version: 0, createdAt: expect.any(Date) });
    expect((await teams().read("one", ["owner"]))?.owner?.name).toBe("Ada");
    const [record] = await plainQuery("teams", { filter: { id: "three" }, columns: ["name", "owner"] });
    expect(record).toEqual({
      id: "three",
      name: "Team three",
      owner: { id: "bob", name: "Bob", age: 41, team: { id: "one" }, xata: meta },
      xata: meta,
    });
    expect((await plainQuery("teams", { filter: { id: "one" }, columns: ["*"] }))[0].owner).toEqual({ id: "ada" });
    expect((await plainQuery("teams", { filter: { id: "one" }, columns: ["*", "owner"] }))[0].owner).toMatchObject({
      name: "Ada",
      xata: meta,
    });
    const nested = await users().read("bob", ["team.owner"] as never);
    expect(JSON.parse(JSON.stringify(nested))).toMatchObject({ id: "bob", team: { id: "one", owner: { id: "ada", name: "Ada" } } });
    expect(await teams().update("lone", { owner: "bob" }, ["owner"])).toMatchObject({ owner: { name: "Bob" } });
    await teams().update("lone", { owner: null });
  });

  test("link.* has every column of the linked record, dates as dates", async () => {
    const team = await teams().read("one", ["name", "owner.*"]);
    expect(values(team?.owner ?? null)).toEqual({
      id: "ada",
      name: "Ada",
      email: "ada@example.com",
      age: 36,
      born: "1815-12-10T00:00:00.000Z",
      settings: { theme: ["dark"] },
      team: null,
    });
    expect(team?.owner?.born).toBeInstanceOf(Date);
    expect(team?.owner?.getMetadata()).toMatchObject({ version: 0, createdAt: expect.any(Date) });
  });

  test("link.column returns that column; several add up, also beside *", async () => {
    const [record] = await plainQuery("teams", { filter: { id: "one" }, columns: ["name", "owner.name", "owner.age"] });
    expect(record).toEqual({ id: "one", name: "Team one", owner: { id: "ada", name: "Ada", age: 36, xata: meta }, xata: meta });
    const team = await teams().select(["*", "owner.name"]).filter("id", "two").getFirst();
    expect(team).toMatchObject({ id: "two", index: 2, plan: "free", owner: { id: "ada", name: "Ada" } });
  });

  test("a link of a link", async () => {
    const user = await users().read("bob", ["name", "team.name", "team.owner.name"] as never);
    expect(JSON.parse(JSON.stringify(user))).toMatchObject({
      id: "bob",
      name: "Bob",
      team: { id: "one", name: "Team one", owner: { id: "ada", name: "Ada" } },
    });
  });

  test("a link to nothing is null, in every form", async () => {
    for (const columns of [["owner"], ["owner.*"], ["owner.name"], ["*"], ["*", "owner.*"]]) {
      expect((await teams().read("lone", columns as never))?.owner).toBeNull();
    }
  });

  test("a linked record updates itself", async () => {
    const team = await teams().read("three", ["owner.*"]);
    const updated = await team?.owner?.update({ age: 42 } as never);
    expect(updated).toMatchObject({ id: "bob", age: 42 });
    expect((await users().read("bob"))?.age).toBe(42);
  });

  test("writes can return linked columns too", async () => {
    const team = await teams().update("lone", { owner: "bob" }, ["name", "owner.name"]);
    expect(JSON.parse(JSON.stringify(team))).toMatchObject({ id: "lone", owner: { id: "bob", name: "Bob" } });
    await teams().update("lone", { owner: null });
  });
});

describe("reverse links", () => {
  test("are returned under their alias, sorted, limited, with the requested columns", async () => {
    const records = await users()
      .select(["name", { name: "<-teams.owner", as: "ownerTeams", columns: ["name"], sort: [{ name: "desc" }], limit: 10 }] as never)
      .sort("id" as never)
      .getAll();
    expect(JSON.parse(JSON.stringify(records))).toMatchObject([
      {
        id: "ada",
        name: "Ada",
        ownerTeams: {
          records: [
            { id: "two", name: "Team two" },
            { id: "one", name: "Team one" },
          ],
        },
      },
      { id: "bob", name: "Bob", ownerTeams: { records: [{ id: "three", name: "Team three" }] } },
    ]);
  });

  test("limit and offset select a part", async () => {
    const [ada] = await plainQuery("users", {
      filter: { id: "ada" },
      columns: [{ name: "<-teams.owner", as: "part", columns: ["index"], sort: [{ index: "asc" }], limit: 1, offset: 1 }],
    });
    expect(ada.part.records).toEqual([{ id: "two", index: 2, xata: meta }]);
  });

  test("no linking record gives an empty list", async () => {
    const [lone] = await plainQuery("teams", {
      filter: { id: "lone" },
      columns: ["name", { name: "<-users.team", as: "members", columns: ["name"] }],
    });
    expect(lone.members.records).toEqual([]);
  });

  test.each([
    ["a table that is not there", { name: "<-planets.owner", columns: ["name"] }, "planets"],
    ["a column that is not there", { name: "<-teams.boss", columns: ["name"] }, "boss"],
    ["a column that does not link to this table", { name: "<-teams.name", columns: ["name"] }, "name"],
    ["an unknown column of the other table", { name: "<-teams.owner", columns: ["shoe"] }, "shoe"],
    ["a limit out of range", { name: "<-teams.owner", columns: ["name"], limit: 0 }, "limit"],
  ])("%s is a 400 that names it", async (_name, column, fragment) => {
    const answer = await world.plain("POST", "/tables/users/query", { columns: [column] });
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining(fragment)]);
  });
});

describe("json", () => {
  const roundTrips: [string, unknown][] = [
    ["an object", { a: 1, b: { c: [true, null, "x"] } }],
    ["a list", [1, "two", { three: 3 }]],
    ["a list of one number, which the SDK would turn into the number", [5]],
    ["a list of one text that reads as JSON", ["true"]],
    ["nested single lists", [[7]]],
    ["an empty list", []],
    ["an empty object", {}],
    ["a number", 12.5],
    ["a boolean", false],
    ["unicode and escapes", { "käse ✓": '"quoted"\n\\', "": 1 }],
    ["numbers at the edges of float64", { big: 1e308, small: 5e-324, int: 9007199254740991 }],
  ];
  test.each(roundTrips)("%s is stored and returned unchanged, by create, update, createOrUpdate and query", async (_name, config) => {
    const created = await teams().create({ name: "json", config: config as never });
    expect(created.config).toEqual(config);
    expect((await teams().read(created.id))?.config).toEqual(config);
    await teams().update(created.id, { config: null } as never);
    expect((await teams().update(created.id, { config: config as never }))?.config).toEqual(config);
    expect((await teams().filter("id", created.id).getFirst())?.config).toEqual(config);
    expect((await world.plain("GET", `/tables/teams/data/${created.id}`)).body.config).toEqual(config);
    if (typeof config === "object") {
      expect((await teams().createOrUpdate(created.id, { config } as never)).config).toEqual(config);
    }
    await teams().delete(created.id);
  });

  test("JSON as text becomes JSON, because the SDK sends it so", async () => {
    const team = await teams().create({ name: "text", config: '{"hello":"world"}' as never });
    expect(team.config).toEqual({ hello: "world" });
    const string = await teams().create({ name: "string", config: '"just text"' as never });
    expect(string.config).toBe("just text");
    const digits = await world.plain("POST", "/tables/teams/data", { name: "digits", config: '"123"' });
    expect((await world.plain("GET", `/tables/teams/data/${digits.body.id}`)).body.config).toBe("123");
    expect((await teams().read(digits.body.id))?.config).toBe("123");
    await teams().delete([team.id, string.id, digits.body.id]);
  });

  test("__proto__ is a key like any other", async () => {
    const text = '{"__proto__": {"polluted": true}, "constructor": 1}';
    const team = await teams().create({ name: "proto", config: text as never });
    expect(JSON.stringify((await world.plain("GET", `/tables/teams/data/${team.id}`)).body.config)).toContain("__proto__");
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    await teams().delete(team.id);
  });

  test("a json path can be selected and is returned under its own name", async () => {
    const [record] = await plainQuery("teams", { filter: { id: "one" }, columns: ["name", "config->bg->path"] });
    expect(record).toEqual({ id: "one", name: "Team one", "config->bg->path": "x/y", xata: meta });
    const sdk = await teams().getFirst({ filter: { id: "one" }, columns: ["config->bg->alpha"] as never });
    expect((sdk as never as Record<string, unknown>)["config->bg->alpha"]).toBe(0.5);
  });

  test("in a linked record too", async () => {
    const team = await teams().read("one", ["owner.settings"]);
    expect(team?.owner?.settings).toEqual({ theme: ["dark"] });
  });
});

describe("dates, emails, lists and numbers", () => {
  test.each([
    ["before 1970", "1815-12-10T08:00:00.000Z"],
    ["1970 itself", "1970-01-01T00:00:00.000Z"],
    ["a leap day", "2024-02-29T23:59:59.999Z"],
    ["far ahead", "9999-12-31T23:59:59.999Z"],
  ])("a date %s goes in and out", async (_name, iso) => {
    const user = await users().create({ name: "date", born: new Date(iso) });
    expect(user.born?.toISOString()).toBe(iso);
    expect((await users().read(user.id))?.born?.toISOString()).toBe(iso);
    expect(
      (
        await users()
          .filter("born", new Date(iso) as never)
          .getAll()
      ).map(({ id }) => id),
    ).toEqual([user.id]);
    await users().delete(user.id);
  });

  test("a date with an offset is returned in UTC", async () => {
    const user = await users().create({ name: "zone", born: "2024-06-01T12:00:00+02:00" as never });
    expect(user.born).toEqual(new Date("2024-06-01T10:00:00Z"));
    expect((await world.plain("GET", `/tables/users/data/${user.id}`)).body.born).toMatch(/^2024-06-01T10:00:00(\.0+)?Z$/);
    await users().delete(user.id);
  });

  test("a date that is null is null, not 1970", async () => {
    const user = await users().create({ name: "undated", born: null });
    expect(user.born).toBeNull();
    expect((await users().read(user.id))?.born).toBeNull();
    const listed = await users().filter("id", user.id).getFirst();
    expect(listed?.born).toBeNull();
    await users().delete(user.id);
  });

  test.each(["a@b.co", "first.last+tag@sub.example.org"])("the email %s is accepted", async (email) => {
    const user = await users().create({ email });
    expect(user.email).toBe(email);
    await users().delete(user.id);
  });

  test.each(["", "plain", "@example.com", "a@", "a b@example.com"])("the email %j is refused", async (email) => {
    await expect(users().create({ email })).rejects.toMatchObject({ status: 400, message: expect.stringContaining("email") });
  });

  test("lists keep order, duplicates, commas, quotes, empty strings and emptiness", async () => {
    const labels = ["b", "a", "b", "with, comma", 'with "quotes"', "", "{braces}", "NULL", "back\\slash", "ünïcode"];
    const team = await teams().create({ name: "list", labels });
    expect((await teams().read(team.id))?.labels).toEqual(labels);
    expect((await teams().update(team.id, { labels: [] }))?.labels).toEqual([]);
    await teams().delete(team.id);
  });

  test.each([0, -1, 9_007_199_254_740_991, -9_007_199_254_740_991])("the int %d is exact", async (index) => {
    const team = await teams().create({ name: "int", index });
    expect((await teams().read(team.id))?.index).toBe(index);
    await teams().delete(team.id);
  });

  test.each([0.1, -2.5e-308, 1.7976931348623157e308, 5e-324])("the float %d is exact", async (rating) => {
    const team = await teams().create({ name: "float", rating });
    expect((await teams().read(team.id))?.rating).toBe(rating);
    await teams().delete(team.id);
  });

  test("long text, emoji, and text that looks like SQL", async () => {
    const description = `${"long ".repeat(20_000)}👩‍🚀'; DROP TABLE "teams"; --`;
    const team = await teams().create({ name: "text", description });
    expect((await teams().read(team.id))?.description).toBe(description);
    await teams().delete(team.id);
  });
});
