/** delete and deleteOrThrow, one, many and by object, through the published SDK. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWorld, values, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("deleting");
});
afterAll(() => world?.stop());

const users = () => world.client.db.users;

test("one by id returns the record that was removed", async () => {
  const user = await users().create({ name: "Gone", age: 3 });
  const deleted = await users().delete(user.id);
  expect(values(deleted)).toMatchObject({ id: user.id, name: "Gone", age: 3 });
  expect(deleted?.getMetadata().version).toBe(0);
  expect(await users().read(user.id)).toBeNull();
});

test("with columns returns those", async () => {
  const user = await users().create({ name: "Partly", age: 3 });
  expect(values(await users().delete(user.id, ["age"]))).toEqual({ id: user.id, age: 3 });
});

test("by object", async () => {
  const user = await users().create({ name: "Object" });
  expect((await users().delete(user))?.id).toBe(user.id);
  expect((await users().delete({ id: user.id })) as unknown).toBeNull();
});

test("one that does not exist is null; deleteOrThrow throws", async () => {
  expect(await users().delete("nobody")).toBeNull();
  await expect(users().deleteOrThrow("nobody")).rejects.toThrow("Record with id nobody not found");
});

test("many, by ids and objects: the removed ones in order, null for those that were not there", async () => {
  const [a, b, c] = await users().create([{ name: "a" }, { name: "b" }, { name: "c" }]);
  const deleted = await users().delete([c?.id ?? "", "nobody", { id: a?.id ?? "" }] as never);
  expect((deleted as unknown as ({ name: string } | null)[]).map((user) => user?.name ?? null)).toEqual(["c", null, "a"]);
  expect((await users().read([a?.id ?? "", b?.id ?? "", c?.id ?? ""])).map((user) => user?.name ?? null)).toEqual([null, "b", null]);
  await expect(users().deleteOrThrow([b?.id ?? "", "nobody"])).rejects.toThrow("Could not find records with ids: nobody");
  expect(await users().delete([])).toEqual([]);
});

test("1,500 at once", async () => {
  const made = await users().create(Array.from({ length: 1500 }, (_, i) => ({ name: "crowd", age: i })));
  const deleted = await users().delete(made.map(({ id }) => id));
  expect(deleted.map((user) => user?.age)).toEqual(Array.from({ length: 1500 }, (_, i) => i));
  expect(await users().filter("name", "crowd").getFirst()).toBeNull();
});

test("a deleted record leaves links to it null, not broken", async () => {
  const owner = await users().create({ name: "Owner" });
  const team = await world.client.db.teams.create({ name: "Orphan", owner });
  await users().delete(owner.id);
  const read = await world.client.db.teams.read(team.id, ["*", "owner.name"]);
  expect(read).toMatchObject({ name: "Orphan", owner: null });
});

test("a deleted record does not reappear in any kind of read", async () => {
  const colour = await world.client.db.colours.create({ name: "vanish", family: "none", lab: [1, 2, 3] });
  await world.client.db.colours.delete(colour.id);
  expect(await world.client.db.colours.read(colour.id)).toBeNull();
  expect(await world.client.db.colours.filter("name", "vanish").getAll()).toHaveLength(0);
  const answer = await world.plain("POST", "/tables/colours/vectorSearch", {
    column: "lab",
    queryVector: [1, 2, 3],
    consistency: "strong",
  });
  expect(answer.body.results.map((hit: { id: string }) => hit.id)).not.toContain(colour.id);
  const { records } = await world.client.sql({ statement: 'SELECT "id" FROM "colours" WHERE "id" = $1', params: [colour.id] });
  expect(records).toEqual([]);
});

test("all three ways of deleting through the SDK and SQL remove the same", async () => {
  const made = await users().create(["one", "two", "three", "kept"].map((name) => ({ name: `way ${name}` })));
  const ids = made.map(({ id }) => id);
  await users().delete(ids[0] ?? "");
  await world.client.transactions.run([{ delete: { table: "users", id: ids[1] ?? "" } }]);
  await world.client.sql({ statement: 'DELETE FROM "users" WHERE "id" IN ($1)', params: [ids[2]] });
  expect((await users().read(ids)).map((user) => user?.name ?? null)).toEqual([null, null, null, "way kept"]);
});
