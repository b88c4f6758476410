/** create and read, one and many, through the published SDK. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, RECORD_ID, values, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("creating");
});
afterAll(() => world?.stop());

describe("create", () => {
  test("one record returns with an id, metadata, and every column", async () => {
    const before = Date.now();
    const team = await world.client.db.teams.create({
      name: "Ships",
      description: "They sail.",
      labels: ["sea", "wind"],
      index: 9_007_199_254_740_991,
      rating: 4.5,
      founded: new Date("2020-02-29T12:34:56.789Z"),
      email: "ships@example.com",
      dark: false,
      config: { flag: "red", sizes: [1, 2] },
    });
    expect(team.id).toMatch(RECORD_ID);
    expect(team.founded).toBeInstanceOf(Date);
    expect(values(team)).toEqual({
      id: team.id,
      name: "Ships",
      description: "They sail.",
      labels: ["sea", "wind"],
      index: 9_007_199_254_740_991,
      rating: 4.5,
      founded: "2020-02-29T12:34:56.789Z",
      email: "ships@example.com",
      plan: "free",
      dark: false,
      config: { flag: "red", sizes: [1, 2] },
      owner: null,
    });
    const metadata = team.getMetadata();
    expect(metadata.version).toBe(0);
    expect(metadata.createdAt.getTime()).toBeGreaterThanOrEqual(before - 1000);
    expect(metadata.createdAt.getTime()).toBeLessThanOrEqual(Date.now() + 1000);
    expect(metadata.updatedAt).toEqual(metadata.createdAt);
  });

  test("columns that are not given are null, dates too, and defaults apply", async () => {
    const team = await world.client.db.teams.create({ name: "Bare" });
    expect(values(team)).toEqual({
      id: team.id,
      name: "Bare",
      description: null,
      labels: null,
      index: null,
      rating: null,
      founded: null,
      email: null,
      plan: "free",
      dark: null,
      owner: null,
    });
    expect(team.config ?? null).toBeNull();
  });

  test("the result has the requested columns, and no others", async () => {
    const owner = await world.client.db.users.create({ name: "Ada", email: "ada@example.com" });
    const team = await world.client.db.teams.create({ name: "Some", index: 3, owner: owner.id }, ["name", "owner.name"]);
    expect(JSON.parse(JSON.stringify(team))).toMatchObject({ id: team.id, name: "Some", owner: { id: owner.id, name: "Ada" } });
    expect(Object.keys(team)).not.toContain("index");
    expect(Object.keys(team.owner ?? {})).not.toContain("email");
  });

  test("an id chosen by the user is kept, as the first argument or in the object", async () => {
    const first = await world.client.db.users.create("user:one~1.0", { name: "One" });
    const second = await world.client.db.users.create({ id: "user_two", name: "Two" });
    expect([first.id, first.name, second.id, second.name]).toEqual(["user:one~1.0", "One", "user_two", "Two"]);
    expect(values(await world.client.db.users.read("user:one~1.0", ["name"]))).toEqual({ id: "user:one~1.0", name: "One" });
  });

  test("an id that is taken fails with 422 and changes nothing", async () => {
    await world.client.db.users.create("taken", { name: "First" });
    await expect(world.client.db.users.create("taken", { name: "Second" })).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining("taken"),
      requestId: expect.any(String),
    });
    expect((await world.client.db.users.read("taken"))?.name).toBe("First");
  });

  test("many records return in the order they were given, with and without ids", async () => {
    const teams = await world.client.db.teams.create([{ name: "Zebra" }, { id: "a-given-id", name: "Apple" }, { name: "Mango" }]);
    expect(teams.map((team) => team.name)).toEqual(["Zebra", "Apple", "Mango"]);
    expect(teams.map((team) => team.id)).toEqual([expect.stringMatching(RECORD_ID), "a-given-id", expect.stringMatching(RECORD_ID)]);
    expect(teams.map((team) => team.getMetadata().version)).toEqual([0, 0, 0]);
  });

  test("many with columns returns those", async () => {
    const users = await world.client.db.users.create(
      [
        { name: "A", age: 1 },
        { name: "B", age: 2 },
      ],
      ["age"],
    );
    expect(users.map(values)).toEqual([
      { id: users[0]?.id, age: 1 },
      { id: users[1]?.id, age: 2 },
    ]);
  });

  test("many is all or nothing: if one id is taken, none is created", async () => {
    await world.client.db.users.create("blocker", { name: "was here" });
    await expect(
      world.client.db.users.create([
        { id: "fresh-1", name: "x" },
        { id: "blocker", name: "y" },
        { id: "fresh-2", name: "z" },
      ]),
    ).rejects.toMatchObject({ status: 400, errors: [{ index: 1, message: expect.stringContaining("blocker") }] });
    expect(await world.client.db.users.read(["fresh-1", "blocker", "fresh-2"], ["name"])).toMatchObject([null, { name: "was here" }, null]);
  });

  test("2,500 records go in with one call and are all read back in order", async () => {
    const made = await world.client.db.users.create(Array.from({ length: 2500 }, (_, i) => ({ name: `bulk ${i}`, age: i })));
    expect(made).toHaveLength(2500);
    expect(made.map((user) => user.age)).toEqual(Array.from({ length: 2500 }, (_, i) => i));
    const again = await world.client.db.users.read(made.map((user) => user.id));
    expect(again.map((user) => user?.name)).toEqual(Array.from({ length: 2500 }, (_, i) => `bulk ${i}`));
  });

  test("an empty list creates nothing and sends no request", async () => {
    expect(await world.client.db.users.create([])).toEqual([]);
  });

  test("a link takes a record, an object with an id, or an id", async () => {
    const owner = await world.client.db.users.create({ name: "Grace" });
    const teams = [
      await world.client.db.teams.create({ name: "by record", owner }),
      await world.client.db.teams.create({ name: "by object", owner: { id: owner.id } }),
      await world.client.db.teams.create({ name: "by id", owner: owner.id }),
    ];
    expect(teams.map((team) => team.owner?.id)).toEqual([owner.id, owner.id, owner.id]);
  });
});

describe("what a column refuses", () => {
  const refusals: [string, Record<string, unknown>, string][] = [
    ["a number in a string column", { name: 5 }, "name"],
    ["text in an int column", { index: "many" }, "index"],
    ["a fraction in an int column", { index: 1.5 }, "index"],
    ["text in a float column", { rating: "good" }, "rating"],
    ["a number in a bool column", { dark: 1 }, "dark"],
    ["a date that is none", { founded: "yesterday-ish" }, "founded"],
    ["an email without an @", { email: "nobody" }, "email"],
    ["a string in a multiple column", { labels: "one" }, "labels"],
    ["a list with a number in a multiple column", { labels: ["one", 2] }, "labels"],
    ["null in a notNull column", { plan: null }, "plan"],
    ["text that is not JSON in a json column", { config: "{broken" }, "config"],
    ["a link to nobody", { owner: "no-such-user" }, "owner"],
    ["a column that does not exist", { colour: "blue" }, "colour"],
    ["an attempt to write metadata columns", { "xata.version": 7 }, "xata.version"],
  ];
  test.each(refusals)("%s: 400 that names the column, and nothing is created", async (_name, fields, column) => {
    const before = (await world.client.db.teams.aggregate({ n: { count: "*" } })).aggs.n;
    await expect(world.client.db.teams.create({ name: "refused", ...fields } as never)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(column),
    });
    expect((await world.client.db.teams.aggregate({ n: { count: "*" } })).aggs.n).toBe(before);
    expect(await world.client.db.teams.filter("name", "refused").getFirst()).toBeNull();
  });

  test("a unique value used twice: 400 that names the column", async () => {
    await world.client.db.teams.create({ name: "Unique", email: "unique@example.com" });
    await expect(world.client.db.teams.create({ name: "Copy", email: "unique@example.com" })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("email"),
    });
    const second = await world.client.db.teams.create({ name: "Copy" });
    await expect(world.client.db.teams.update(second.id, { email: "unique@example.com" })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("email"),
    });
  });

  test("two faults in a list of new records are reported with their positions", async () => {
    await expect(world.client.db.teams.create([{ name: "good" }, { name: "bad", index: "x" }] as never)).rejects.toMatchObject({
      status: 400,
      errors: [{ index: 1, message: expect.stringContaining("index") }],
    });
    expect(await world.client.db.teams.filter("name", "good").getFirst()).toBeNull();
  });
});

describe("read", () => {
  test("one that does not exist is null; readOrThrow throws", async () => {
    expect(await world.client.db.users.read("nobody")).toBeNull();
    await expect(world.client.db.users.readOrThrow("nobody")).rejects.toThrow("Record with id nobody not found");
  });

  test("many return in the order of the ids, null for missing ones, twice if requested twice", async () => {
    await world.client.db.users.create([
      { id: "r1", name: "first" },
      { id: "r2", name: "second" },
    ]);
    const read = await world.client.db.users.read(["r2", "missing", { id: "r1" }, "r2"] as never, ["name"]);
    expect((read as unknown as unknown[]).map((record) => values(record as object | null))).toEqual([
      { id: "r2", name: "second" },
      null,
      { id: "r1", name: "first" },
      { id: "r2", name: "second" },
    ]);
    await expect(world.client.db.users.readOrThrow(["r1", "missing"])).rejects.toThrow("Could not find records with ids: missing");
  });

  test("an id that SQL wrote is found, whatever it is", async () => {
    const id = 'a/b?c d"\u00e9#%41';
    await world.client.sql({ statement: 'INSERT INTO "users" ("id", "name") VALUES ($1, $2)', params: [id, "odd"] });
    expect(values(await world.client.db.users.read(id, ["name"]))).toEqual({ id, name: "odd" });
    expect(values(await world.client.db.users.delete(id, ["name"]))).toEqual({ id, name: "odd" });
    expect(await world.client.db.users.read(id)).toBeNull();
  });

  test("a record reads, updates, replaces and deletes itself", async () => {
    const user = await world.client.db.users.create({ name: "Self", age: 1 });
    expect((await user.read())?.name).toBe("Self");
    expect((await user.update({ age: 2 }))?.age).toBe(2);
    expect(values(await user.replace({ name: "Replaced" }))).toMatchObject({ id: user.id, name: "Replaced", age: null });
    expect((await user.delete())?.id).toBe(user.id);
    expect(await user.read()).toBeNull();
  });

  test("a table that does not exist is a 404 that names it, not null", async () => {
    const answer = await world.plain("GET", "/tables/planets/data/earth");
    expect(answer.status).toBe(404);
    expect(answer.body.message).toContain("planets");
  });

  test("a client without a schema learns it from the server", async () => {
    const { BaseClient } = await import("@xata.io/client");
    const client = new BaseClient({
      databaseURL: `http://w.r.localhost:${world.port}/db/${world.database}`,
      apiKey: "k",
      branch: "main",
    });
    const born = new Date("1815-12-10T00:00:00Z");
    const user = await client.db.users?.create({ name: "Untyped", born });
    expect(user).toMatchObject({ name: "Untyped", born });
    expect(await client.db.users?.read(user?.id ?? "")).toMatchObject({ name: "Untyped", born });
  });
});
