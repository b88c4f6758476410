/**
 * update, createOrUpdate, createOrReplace, numeric operators and optimistic concurrency, through the
 * published SDK.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, RECORD_ID, values, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("updating");
});
afterAll(() => world?.stop());

const teams = () => world.client.db.teams;
const users = () => world.client.db.users;

describe("update", () => {
  test("changes the given fields, keeps the rest, and increments the version", async () => {
    const team = await teams().create({ name: "Ships", index: 1, labels: ["a"] });
    const updated = await teams().update(team.id, { name: "Boats", labels: ["b", "c"] });
    expect(updated).toMatchObject({ id: team.id, name: "Boats", index: 1, labels: ["b", "c"] });
    const metadata = updated?.getMetadata();
    expect(metadata?.version).toBe(1);
    expect(metadata?.createdAt).toEqual(team.getMetadata().createdAt);
    expect(metadata?.updatedAt.getTime()).toBeGreaterThanOrEqual(team.getMetadata().updatedAt.getTime());
    expect(await teams().read(team.id)).toMatchObject({ name: "Boats", labels: ["b", "c"] });
  });

  test("accepts an object with an id, and columns for the result", async () => {
    const team = await teams().create({ name: "Inline", index: 1 });
    const updated = await teams().update({ id: team.id, index: 2 }, ["index"]);
    expect(values(updated)).toEqual({ id: team.id, index: 2 });
  });

  test("null clears a column, and is refused in one that is notNull", async () => {
    const team = await teams().create({ name: "Nullable", index: 5, founded: new Date("2001-01-01T00:00:00Z"), owner: null });
    expect(values(await teams().update(team.id, { index: null, founded: null }))).toMatchObject({ index: null, founded: null });
    await expect(teams().update(team.id, { plan: null } as never)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("plan"),
    });
    expect((await teams().read(team.id))?.plan).toBe("free");
  });

  test("of a record that does not exist is null; updateOrThrow throws", async () => {
    expect(await teams().update("no-such-team", { name: "x" })).toBeNull();
    await expect(teams().updateOrThrow("no-such-team", { name: "x" })).rejects.toThrow("Record with id no-such-team not found");
    expect(await teams().read("no-such-team")).toBeNull();
  });

  test("many: existing ones are changed, the others are null", async () => {
    const [a, b] = await teams().create([{ name: "A" }, { name: "B" }]);
    const updated = await teams().update([
      { id: a?.id ?? "", name: "A2" },
      { id: "no-such-team", name: "X2" },
      { id: b?.id ?? "", name: "B2" },
    ]);
    expect(updated.map((team) => team?.name ?? null)).toEqual(["A2", null, "B2"]);
    expect(updated.map((team) => team?.getMetadata().version)).toEqual([1, undefined, 1]);
    expect(await teams().update([])).toEqual([]);
  });

  test("whole records can be passed back changed", async () => {
    const made = await teams().create([{ name: "R1", config: { a: [5] } }, { name: "R2" }]);
    const updated = await teams().update(made.map((team) => ({ ...team, name: `${team.name}!` })) as never);
    expect((updated as unknown as { name: string }[]).map((team) => team.name)).toEqual(["R1!", "R2!"]);
    expect((await teams().read(made[0]?.id ?? ""))?.config).toEqual({ a: [5] });
  });

  test("many is all or nothing", async () => {
    const [a, b] = await users().create([
      { name: "A", age: 1 },
      { name: "B", age: 2 },
    ]);
    await expect(
      users().update([
        { id: a?.id ?? "", age: 10 },
        { id: b?.id ?? "", age: "old" },
      ] as never),
    ).rejects.toMatchObject({ status: 400, errors: [{ index: 1, message: expect.stringContaining("age") }] });
    expect((await users().read([a?.id ?? "", b?.id ?? ""])).map((user) => user?.age)).toEqual([1, 2]);
  });
});

describe("numeric operators", () => {
  test("$increment, $decrement, $multiply and $divide, on int and float", async () => {
    const team = await teams().create({ name: "Numbers", index: 10, rating: 1.5 });
    expect(await teams().update(team.id, { index: { $increment: 5 }, rating: { $increment: 0.25 } })).toMatchObject({
      index: 15,
      rating: 1.75,
    });
    expect(await teams().update(team.id, { index: { $decrement: 3 }, rating: { $decrement: 0.5 } })).toMatchObject({
      index: 12,
      rating: 1.25,
    });
    expect(await teams().update(team.id, { index: { $multiply: 3 }, rating: { $multiply: 4 } })).toMatchObject({ index: 36, rating: 5 });
    expect(await teams().update(team.id, { index: { $divide: 4 }, rating: { $divide: 8 } })).toMatchObject({ index: 9, rating: 0.625 });
    expect((await teams().read(team.id))?.getMetadata().version).toBe(4);
  });

  test("in update of many", async () => {
    const made = await users().create([
      { name: "A", age: 1 },
      { name: "B", age: 2 },
    ]);
    const updated = await users().update(made.map(({ id }) => ({ id, age: { $increment: 10 } })));
    expect(updated.map((user) => user?.age)).toEqual([11, 12]);
  });

  test("concurrent increments are all counted", async () => {
    const user = await users().create({ name: "Counter", age: 0 });
    await Promise.all(Array.from({ length: 40 }, () => users().update(user.id, { age: { $increment: 1 } })));
    const read = await users().read(user.id);
    expect(read?.age).toBe(40);
    expect(read?.getMetadata().version).toBe(40);
  });

  test.each([
    ["an operator on a string column", { name: { $increment: 1 } }, "name"],
    ["division by zero", { index: { $divide: 0 } }, "index"],
    ["an operator that does not exist", { index: { $power: 2 } }, "index"],
    ["two operators at once", { index: { $increment: 1, $multiply: 2 } }, "index"],
    ["an operand that is not a number", { index: { $increment: "1" } }, "index"],
  ])("%s: 400 that names the column, nothing changed", async (_name, fields, column) => {
    const team = await teams().create({ name: "Kept", index: 7 });
    await expect(teams().update(team.id, fields as never)).rejects.toMatchObject({ status: 400, message: expect.stringContaining(column) });
    expect(await teams().read(team.id)).toMatchObject({ name: "Kept", index: 7, xata: { version: 0 } });
  });
});

describe("ifVersion", () => {
  test("applies the update only at that version; a stale one is null and changes nothing", async () => {
    const team = await teams().create({ name: "v0" });
    expect(await teams().update(team.id, { name: "v1" }, { ifVersion: 0 })).toMatchObject({ name: "v1", xata: { version: 1 } });
    expect(await teams().update(team.id, { name: "stale" }, { ifVersion: 0 })).toBeNull();
    expect(await teams().read(team.id)).toMatchObject({ name: "v1", xata: { version: 1 } });
    await expect(teams().updateOrThrow(team.id, { name: "stale" }, { ifVersion: 0 })).rejects.toThrow("not found");
  });

  test("createOrUpdate and createOrReplace fail with 422 at a stale version", async () => {
    const user = await users().create({ name: "v0" });
    await expect(users().createOrUpdate(user.id, { name: "stale" }, { ifVersion: 3 })).rejects.toMatchObject({ status: 422 });
    await expect(users().createOrReplace(user.id, { name: "stale" }, { ifVersion: 3 })).rejects.toMatchObject({ status: 422 });
    expect((await users().createOrReplace(user.id, { name: "v1" }, { ifVersion: 0 })).name).toBe("v1");
    expect((await users().createOrUpdate(user.id, { name: "v2" }, { ifVersion: 1 })).name).toBe("v2");
    expect(await users().read(user.id)).toMatchObject({ name: "v2", xata: { version: 2 } });
  });

  test("in update of many: one stale version fails all", async () => {
    const [a, b] = await users().create([{ name: "a" }, { name: "b" }]);
    await users().update(b?.id ?? "", { name: "b1" });
    await expect(
      users().update(
        [
          { id: a?.id ?? "", name: "a1" },
          { id: b?.id ?? "", name: "b2" },
        ],
        { ifVersion: 0 } as never,
      ),
    ).rejects.toMatchObject({ status: 400, errors: [{ index: 1 }] });
    expect((await users().read([a?.id ?? "", b?.id ?? ""])).map((user) => user?.name)).toEqual(["a", "b1"]);
  });

  test("only one of two writers at the same version wins", async () => {
    const user = await users().create({ name: "start" });
    const results = await Promise.all(["left", "right"].map((name) => users().update(user.id, { name }, { ifVersion: 0 })));
    expect(results.filter((result) => result === null)).toHaveLength(1);
    const winner = results.find((result) => result !== null);
    expect((await users().read(user.id))?.name).toBe(winner?.name);
  });
});

describe("createOrUpdate", () => {
  test("creates, then updates the given fields and keeps the rest", async () => {
    const made = await users().createOrUpdate("cou-1", { name: "New", age: 1 });
    expect(values(made)).toMatchObject({ id: "cou-1", name: "New", age: 1 });
    const updated = await users().createOrUpdate("cou-1", { age: 2 });
    expect(values(updated)).toMatchObject({ id: "cou-1", name: "New", age: 2 });
    expect(updated.getMetadata().version).toBe(1);
  });

  test("accepts an object with an id, or without one", async () => {
    expect(await users().createOrUpdate({ id: "cou-2", name: "Inline" })).toMatchObject({ id: "cou-2", name: "Inline" });
    expect((await users().createOrUpdate({ name: "No id" } as never)).id).toMatch(RECORD_ID);
  });

  test("accepts links, dates and json as the SDK sends them here: whole records, ISO text, plain objects", async () => {
    const owner = await users().create({ name: "Owner" });
    const founded = new Date("1999-12-31T23:59:59.999Z");
    const team = await teams().createOrUpdate("cou-raw", { name: "Raw", owner, founded, config: { deep: { list: [1] } } } as never);
    expect(team.owner?.id).toBe(owner.id);
    expect(team.founded).toEqual(founded);
    expect(team.config).toEqual({ deep: { list: [1] } });
  });

  test("many: some created, some updated, in order", async () => {
    await users().create("mixed-2", { name: "was", age: 7 });
    const records = await users().createOrUpdate([
      { id: "mixed-1", name: "one" },
      { id: "mixed-2", name: "two" },
    ]);
    expect(records.map(values)).toEqual([
      { id: "mixed-1", name: "one", email: null, age: null, born: null, team: null },
      { id: "mixed-2", name: "two", email: null, age: 7, born: null, team: null },
    ]);
  });

  test("notNull without a value fails on creation and is allowed on update", async () => {
    await expect(teams().createOrUpdate("cou-null", { name: "x", plan: null } as never)).rejects.toMatchObject({ status: 400 });
    expect(await teams().read("cou-null")).toBeNull();
  });
});

describe("createOrReplace", () => {
  test("creates, then replaces everything", async () => {
    const made = await users().createOrReplace("cor-1", { name: "New", age: 1 });
    expect(values(made)).toMatchObject({ id: "cor-1", name: "New", age: 1 });
    const replaced = await users().createOrReplace("cor-1", { email: "only@example.com" });
    expect(values(replaced)).toMatchObject({ id: "cor-1", name: null, age: null, email: "only@example.com" });
    expect(replaced.getMetadata().version).toBe(1);
    expect(replaced.getMetadata().createdAt).toEqual(made.getMetadata().createdAt);
  });

  test("replacing restores defaults", async () => {
    await teams().create("cor-default", { name: "d", plan: "paid" });
    expect((await teams().createOrReplace("cor-default", { name: "e" })).plan).toBe("free");
  });

  test("many, in order", async () => {
    await users().create("cor-m2", { name: "was", age: 7 });
    const records = await users().createOrReplace([
      { id: "cor-m1", name: "one" },
      { id: "cor-m2", name: "two" },
    ]);
    expect(records.map((user) => [user.id, user.name, user.age])).toEqual([
      ["cor-m1", "one", null],
      ["cor-m2", "two", null],
    ]);
  });

  test("an empty id is refused", async () => {
    await expect(users().createOrReplace("", { name: "x" })).rejects.toThrow("The id can't be empty");
  });

  test("an id that the API does not accept is a 400 that says what it accepts", async () => {
    await expect(users().createOrReplace("no spaces", { name: "x" })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("no spaces"),
    });
    await expect(users().create("x".repeat(256), { name: "x" })).rejects.toMatchObject({ status: 400 });
    expect((await users().create("x".repeat(255), { name: "x" })).name).toBe("x");
  });
});
