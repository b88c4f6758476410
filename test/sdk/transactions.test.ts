/**
 * transactions.run through the published SDK: results of every operation, all or nothing, and the messages of
 * failures.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, RECORD_ID, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("transacting");
});
afterAll(() => world?.stop());

const run = (operations: object[]) => world.client.transactions.run(operations as never) as Promise<{ results: unknown[] }>;
const team = (id: string) => world.client.db.teams.read(id);

describe("results", () => {
  test("nothing to do", async () => {
    expect((await run([])).results).toEqual([]);
  });

  test("insert: without an id, with one, with columns", async () => {
    const { results } = await run([
      { insert: { table: "teams", record: { name: "no id" } } },
      { insert: { table: "teams", record: { id: "i1", name: "with id" } } },
      { insert: { table: "teams", record: { id: "i2", name: "columns", index: 4 }, createOnly: true, columns: ["id", "index", "plan"] } },
    ]);
    expect(results).toEqual([
      { operation: "insert", id: expect.stringMatching(RECORD_ID), rows: 1 },
      { operation: "insert", id: "i1", rows: 1, columns: {} },
      { operation: "insert", id: "i2", rows: 1, columns: { id: "i2", index: 4, plan: "free" } },
    ]);
  });

  test("insert replaces an existing record, as a new version", async () => {
    await run([{ insert: { table: "teams", record: { id: "r", name: "a", index: 1 } } }]);
    await run([{ insert: { table: "teams", record: { id: "r", name: "b" } } }]);
    expect(await team("r")).toMatchObject({ name: "b", index: null, xata: { version: 1 } });
    const { results } = await run([{ insert: { table: "teams", record: { id: "r", name: "c" }, ifVersion: 1 } }]);
    expect(results).toEqual([{ operation: "insert", id: "r", rows: 1, columns: {} }]);
    expect(await team("r")).toMatchObject({ name: "c", xata: { version: 2 } });
  });

  test("update, twice in one transaction, with operators, ifVersion and upsert", async () => {
    await run([{ insert: { table: "teams", record: { id: "u", name: "a", index: 1 } } }]);
    const { results } = await run([
      { update: { table: "teams", id: "u", fields: { name: "b" } } },
      { update: { table: "teams", id: "u", fields: { index: { $increment: 4 } }, ifVersion: 1, columns: ["index"] } },
      { update: { table: "teams", id: "u-new", fields: { name: "upserted" }, upsert: true } },
    ]);
    expect(results).toEqual([
      { operation: "update", id: "u", rows: 1, columns: {} },
      { operation: "update", id: "u", rows: 1, columns: { index: 5 } },
      { operation: "update", id: "u-new", rows: 1, columns: {} },
    ]);
    expect(await team("u")).toMatchObject({ name: "b", index: 5, xata: { version: 2 } });
    expect(await team("u-new")).toMatchObject({ name: "upserted", xata: { version: 0 } });
  });

  test("delete: existing, missing, with columns", async () => {
    await run([
      { insert: { table: "teams", record: { id: "d1", name: "a" } } },
      { insert: { table: "teams", record: { id: "d2", name: "b" } } },
      { insert: { table: "teams", record: { id: "d3", name: "c" } } },
    ]);
    const { results } = await run([
      { delete: { table: "teams", id: "d1" } },
      { delete: { table: "teams", id: "nobody" } },
      { delete: { table: "teams", id: "d2", failIfMissing: true, columns: ["name"] } },
      { delete: { table: "teams", id: "d3", columns: [] } },
    ]);
    expect(results).toEqual([
      { operation: "delete", rows: 1 },
      { operation: "delete", rows: 0 },
      { operation: "delete", rows: 1, columns: { name: "b" } },
      { operation: "delete", rows: 1 },
    ]);
    expect([await team("d1"), await team("d2")]).toEqual([null, null]);
  });

  test("get: existing and missing; later operations see earlier ones", async () => {
    const { results } = await run([
      { get: { table: "teams", id: "g", columns: ["name"] } },
      { insert: { table: "teams", record: { id: "g", name: "seen" } } },
      { get: { table: "teams", id: "g", columns: ["name"] } },
      { update: { table: "teams", id: "g", fields: { name: "changed" } } },
      { get: { table: "teams", id: "g", columns: ["id", "name"] } },
      { delete: { table: "teams", id: "g" } },
      { get: { table: "teams", id: "g" } },
      { insert: { table: "teams", record: { id: "g2", name: "exact" }, createOnly: true } },
      { get: { table: "teams", id: "g2", columns: ["name", "xata.version"] } },
      { get: { table: "teams", id: "g2", columns: ["xata"] } },
      { get: { table: "teams", id: "g2", columns: [] } },
      { get: { table: "teams", id: "g2" } },
    ]);
    const xata = { version: 0, createdAt: expect.any(String), updatedAt: expect.any(String) };
    expect(results).toEqual([
      { operation: "get", columns: {} },
      { operation: "insert", id: "g", rows: 1, columns: {} },
      { operation: "get", columns: { name: "seen" } },
      { operation: "update", id: "g", rows: 1, columns: {} },
      { operation: "get", columns: { id: "g", name: "changed" } },
      { operation: "delete", rows: 1 },
      { operation: "get", columns: {} },
      { operation: "insert", id: "g2", rows: 1 },
      { operation: "get", columns: { name: "exact", xata: { version: 0 } } },
      { operation: "get", columns: { xata } },
      { operation: "get", columns: { id: "g2", xata } },
      { operation: "get", columns: { id: "g2", name: "exact", plan: "free", xata } },
    ]);
  });

  test("several tables, and links to records made in the same transaction", async () => {
    await run([
      { insert: { table: "users", record: { id: "owner", name: "Owner" } } },
      { insert: { table: "teams", record: { id: "owned", name: "Owned", owner: "owner" } } },
    ]);
    expect((await world.client.db.teams.read("owned", ["owner.name"]))?.owner?.name).toBe("Owner");
  });

  test("json, dates, lists and vectors as plain JSON", async () => {
    await run([
      {
        insert: {
          table: "teams",
          record: { id: "typed", config: { a: [5] }, founded: "2020-01-01T00:00:00Z", labels: ["x"], rating: 0.5, dark: true },
        },
      },
      { insert: { table: "colours", record: { id: "typed", lab: [1, 2, 3] } } },
    ]);
    expect(await team("typed")).toMatchObject({
      config: { a: [5] },
      founded: new Date("2020-01-01T00:00:00Z"),
      labels: ["x"],
      rating: 0.5,
      dark: true,
    });
    expect((await world.client.db.colours.read("typed"))?.lab).toEqual([1, 2, 3]);
  });
});

describe("a failure applies nothing and names the operation and the reason", () => {
  const failures: [string, object, string, string][] = [
    ["an update of nothing", { update: { table: "teams", id: "nobody", fields: { name: "x" } } }, "NOT_FOUND", "nobody"],
    [
      "a delete that must find one",
      { delete: { table: "teams", id: "nobody", failIfMissing: true } },
      "NOT_FOUND",
      "table [teams]: no rows deleted",
    ],
    [
      "createOnly on an id that is taken",
      { insert: { table: "teams", record: { id: "base", name: "x" }, createOnly: true } },
      "CONFLICT",
      "base",
    ],
    ["a stale ifVersion on update", { update: { table: "teams", id: "base", fields: { name: "x" }, ifVersion: 9 } }, "CONFLICT", "version"],
    ["a stale ifVersion on insert", { insert: { table: "teams", record: { id: "base", name: "x" }, ifVersion: 9 } }, "CONFLICT", "version"],
    ["an unknown table", { insert: { table: "planets", record: { name: "x" } } }, "NOT_FOUND", "planets"],
    ["an unknown column", { insert: { table: "teams", record: { colour: "x" } } }, "INVALID", "colour"],
    ["a wrong type", { update: { table: "teams", id: "base", fields: { index: "x" } } }, "INVALID", "index"],
    ["a unique value twice", { insert: { table: "teams", record: { email: "base@example.com" } } }, "INVALID", "email"],
    ["a link to nobody", { insert: { table: "teams", record: { owner: "nobody" } } }, "INVALID", "owner"],
    ["null in a notNull column", { insert: { table: "teams", record: { plan: null } } }, "INVALID", "plan"],
  ];

  test.each(failures)("%s", async (_name, operation, code, fragment) => {
    await world.client.db.teams.createOrReplace("base", { name: "base", email: "base@example.com" });
    const version = (await team("base"))?.getMetadata().version;
    await expect(
      run([
        { insert: { table: "users", record: { id: "half", name: "must not stay" } } },
        { update: { table: "teams", id: "base", fields: { name: "must not stay" } } },
        operation,
        { delete: { table: "teams", id: "base" } },
      ]),
    ).rejects.toMatchObject({
      status: 400,
      errors: expect.arrayContaining([{ index: 2, code, message: expect.stringContaining(fragment) }]),
      requestId: expect.any(String),
    });
    expect(await world.client.db.users.read("half")).toBeNull();
    expect(await team("base")).toMatchObject({ name: "base", xata: { version } });
  });

  test.each([
    ["an operation with two keys", { get: { table: "teams", id: "a" }, delete: { table: "teams", id: "a" } }],
    ["an unknown operation", { merge: { table: "teams" } }],
    ["an operation without a table", { get: { id: "a" } }],
    ["no object at all", "get"],
  ])("%s is a 400", async (_name, operation) => {
    await expect(run([operation as object])).rejects.toMatchObject({ status: 400 });
  });
});
