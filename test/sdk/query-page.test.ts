/**
 * Sorting, paging by stable cursors in all four directions, and the SDK's ways of getting many, through the
 * published SDK.
 */
import { gt, PAGINATION_MAX_OFFSET, PAGINATION_MAX_SIZE } from "@xata.io/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type World } from "./support/world.ts";

const COUNT = 57;
/** Ages repeat (ties), every seventh is null. */
const ageOf = (i: number): number | null => (i % 7 === 6 ? null : (i * 13) % 10);
const idOf = (i: number): string => `u${String(i).padStart(3, "0")}`;
const ROWS = Array.from({ length: COUNT }, (_, i) => ({ id: idOf(i), name: `user ${i}`, age: ageOf(i) }));

let world: World;
beforeAll(async () => {
  world = await openWorld("paging");
  await world.client.db.users.create(ROWS);
});
afterAll(() => world?.stop());

const users = () => world.client.db.users;

/** Nulls as in PostgreSQL: last ascending, first descending. Ties by id, ascending. */
const sorted = (direction: "asc" | "desc"): string[] => {
  const value = (age: number | null) => (age === null ? Number.POSITIVE_INFINITY : age);
  const sign = direction === "asc" ? 1 : -1;
  return [...ROWS]
    .sort((a, b) => {
      const [x, y] = [value(a.age), value(b.age)];
      return x === y ? (a.id < b.id ? -1 : 1) : sign * (x < y ? -1 : 1);
    })
    .map(({ id }) => id);
};
const ids = (records: readonly { id: string }[]): string[] => Array.from(records, ({ id }) => id);

describe("sort", () => {
  test("ascending and descending, ties by id", async () => {
    expect(ids(await users().sort("age").getAll())).toEqual(sorted("asc"));
    expect(ids(await users().sort("age", "desc").getAll())).toEqual(sorted("desc"));
  });

  test("every way the SDK writes a sort", async () => {
    const expected = ROWS.map(({ id }) => id).reverse();
    for (const sort of [{ id: "desc" }, { column: "id", direction: "desc" }, [{ column: "id", direction: "desc" }], [{ id: "desc" }]]) {
      expect(ids(await users().getAll({ sort: sort as never }))).toEqual(expected);
    }
    expect(ids(await users().getAll({ sort: "id" as never }))).toEqual([...expected].reverse());
    expect(ids(await users().getAll({ sort: ["id"] as never }))).toEqual([...expected].reverse());
  });

  test("by two columns, the second reversed", async () => {
    const records = await users()
      .sort("age", "asc")
      .sort("id" as never, "desc")
      .getAll();
    for (let i = 1; i < records.length; i++) {
      const [a, b] = [records[i - 1], records[i]];
      if (a?.age === b?.age) expect((a?.id ?? "") > (b?.id ?? "")).toBe(true);
      else if (b?.age !== null) expect(a?.age ?? 99).toBeLessThan(b?.age ?? -1);
    }
  });

  test("by metadata, by a link's column, by a json path", async () => {
    const { teams } = world.client.db;
    await teams.create([
      { id: "t1", name: "one", owner: idOf(5), config: { rank: 10 } },
      { id: "t2", name: "two", owner: idOf(3), config: { rank: 9 } },
      { id: "t3", name: "three", owner: idOf(4), config: { rank: 100 } },
    ]);
    await teams.update("t1", { name: "uno" });
    expect(ids(await teams.sort("xata.version" as never, "desc").getAll())).toEqual(["t1", "t2", "t3"]);
    expect(ids(await teams.sort("owner.name" as never).getAll())).toEqual(["t2", "t3", "t1"]);
    expect(ids(await teams.sort("config->rank" as never).getAll())).toEqual(["t2", "t1", "t3"]);
  });

  test("random returns everything once, in an order that changes", async () => {
    const orders = new Set<string>();
    for (const query of [users().sort("*", "random"), users().sort("*", "random")]) {
      const got = ids(await query.getAll());
      expect([...got].sort()).toEqual(ROWS.map(({ id }) => id));
      orders.add(got.join());
    }
    orders.add(ids(await users().getAll({ sort: { "*": "random" } as never })).join());
    expect(orders.size).toBeGreaterThan(1);
  });

  test.each([
    ["an unknown column", { sort: [{ colour: "asc" }] }, "colour"],
    ["an unknown direction", { sort: [{ age: "up" }] }, "up"],
    ["a random sort of a column", { sort: [{ age: "random" }] }, "random"],
  ])("%s is a 400 that names it", async (_name, body, fragment) => {
    const answer = await world.plain("POST", "/tables/users/query", body);
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining(fragment)]);
  });
});

describe("pages", () => {
  test("forwards from the first to the last, each record once, in order", async () => {
    const seen: string[] = [];
    let page = await users()
      .sort("age")
      .getPaginated({ pagination: { size: 10 } });
    const sizes: number[] = [];
    for (let guard = 0; guard < 20; guard++) {
      seen.push(...ids(page.records));
      sizes.push(page.records.length);
      expect(page.meta.page.size).toBe(10);
      if (!page.hasNextPage()) break;
      page = await page.nextPage();
    }
    expect(sizes).toEqual([10, 10, 10, 10, 10, 7]);
    expect(seen).toEqual(sorted("asc"));
  });

  test("backwards from the last to the first", async () => {
    let page = await (
      await users()
        .sort("age", "desc")
        .getPaginated({ pagination: { size: 10 } })
    ).endPage();
    const expected = sorted("desc");
    expect(ids(page.records)).toEqual(expected.slice(-10));
    expect(page.hasNextPage()).toBe(false);
    const seen = ids(page.records);
    for (let guard = 0; guard < 20; guard++) {
      page = await page.previousPage();
      if (page.records.length === 0) break;
      seen.unshift(...ids(page.records));
      expect(page.hasNextPage()).toBe(true);
    }
    expect(seen).toEqual(expected);
  });

  test("previousPage of the second page is the first; startPage and endPage keep filter and sort", async () => {
    const query = users().filter("age", gt(3)).sort("age", "desc");
    const expected = sorted("desc").filter((id) => (ROWS.find((row) => row.id === id)?.age ?? -1) > 3);
    const first = await query.getPaginated({ pagination: { size: 4 } });
    const second = await first.nextPage();
    const third = await second.nextPage();
    expect([first, second, third].map((page) => ids(page.records))).toEqual([
      expected.slice(0, 4),
      expected.slice(4, 8),
      expected.slice(8, 12),
    ]);
    expect(ids((await second.previousPage()).records)).toEqual(expected.slice(0, 4));
    expect(ids((await third.previousPage()).records)).toEqual(expected.slice(4, 8));
    expect(ids((await third.startPage()).records)).toEqual(expected.slice(0, 4));
    expect(ids((await first.endPage()).records)).toEqual(expected.slice(-4));
  });

  test("size and offset may change along the way", async () => {
    const expected = sorted("asc");
    const first = await users()
      .sort("age")
      .getPaginated({ pagination: { size: 5 } });
    const second = await first.nextPage(12);
    expect(ids(second.records)).toEqual(expected.slice(5, 17));
    expect(second.meta.page.size).toBe(12);
    expect(ids((await second.nextPage(3, 10)).records)).toEqual(expected.slice(27, 30));
  });

  test("past the end there is an empty page, from which one can go back", async () => {
    const last = await (
      await users()
        .sort("age")
        .getPaginated({ pagination: { size: 50 } })
    ).nextPage();
    expect(last.records).toHaveLength(7);
    const beyond = await last.nextPage();
    expect(beyond.records).toHaveLength(0);
    expect(beyond.meta.page).toMatchObject({ more: false, size: 50 });
    expect(ids((await beyond.startPage()).records)).toEqual(sorted("asc").slice(0, 50));
    expect(ids((await beyond.previousPage()).records)).toEqual(sorted("asc").slice(7));
  });

  test("cursors are stable: records added or removed elsewhere do not shift a page", async () => {
    const first = await users()
      .filter("name", { $startsWith: "user" })
      .sort("age")
      .getPaginated({ pagination: { size: 10 } });
    const expected = sorted("asc");
    await users().create([
      { id: "u000a", name: "user early", age: -5 },
      { id: "zzz", name: "user late", age: 1000 },
    ]);
    await users().delete(expected[2] ?? "");
    const second = await first.nextPage();
    expect(ids(second.records)).toEqual(expected.slice(10, 20));
    const [row] = ROWS.filter(({ id }) => id === expected[2]);
    if (row) await users().create(row);
    await users().delete(["u000a", "zzz"]);
  });

  test("the last page of a query by before: end, with filter and sort (plain)", async () => {
    const answer = await world.plain("POST", "/tables/users/query", {
      filter: { age: { $gt: 3 } },
      sort: { age: "desc" },
      page: { size: 3, before: "end" },
      columns: ["age"],
    });
    const expected = sorted("desc").filter((id) => (ROWS.find((row) => row.id === id)?.age ?? -1) > 3);
    expect(ids(answer.body.records)).toEqual(expected.slice(-3));
    expect(ids((await users().endPage(4)).records)).toEqual(ROWS.slice(-4).map(({ id }) => id));
  });

  test("tailing: after the end there is nothing until a record is added", async () => {
    const answer = await world.plain("POST", "/tables/users/query", { sort: { id: "asc" }, page: { size: 3, after: "end" } });
    expect(answer.body.records).toEqual([]);
    await users().create({ id: "zz-new", name: "new" });
    const next = await world.plain("POST", "/tables/users/query", { page: { after: answer.body.meta.page.cursor } });
    expect(ids(next.body.records)).toEqual(["zz-new"]);
    await users().delete("zz-new");
  });

  test("sizes and offsets up to the SDK's limits, and not beyond", async () => {
    expect(await users().getMany({ pagination: { size: PAGINATION_MAX_SIZE } })).toHaveLength(COUNT);
    await expect(users().getPaginated({ pagination: { size: PAGINATION_MAX_SIZE + 1 } })).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/1,?000/),
    });
    expect((await users().getPaginated({ pagination: { offset: PAGINATION_MAX_OFFSET } })).records).toHaveLength(0);
    await expect(users().getPaginated({ pagination: { offset: PAGINATION_MAX_OFFSET + 1 } })).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/49,?000/),
    });
    for (const page of [{ size: 0 }, { size: 1.5 }, { size: "10" }, { offset: -1 }]) {
      expect((await world.plain("POST", "/tables/users/query", { page })).status).toBe(400);
    }
  });

  test("a cursor with another filter or sort, of another table, or made up, is refused", async () => {
    const page = await users().getPaginated({ pagination: { size: 5 } });
    const { cursor } = page.meta.page;
    for (const [table, body] of [
      ["users", { page: { after: cursor }, sort: { age: "asc" } }],
      ["users", { page: { after: cursor }, filter: { age: 1 } }],
      ["teams", { page: { after: cursor } }],
      ["users", { page: { after: "made-up" } }],
      ["users", { page: { before: "" } }],
    ] as const) {
      const answer = await world.plain("POST", `/tables/${table}/query`, body);
      expect({ body, status: answer.status }).toEqual({ body, status: 400 });
    }
  });
});

describe("getting many", () => {
  test("getFirst, getFirstOrThrow", async () => {
    expect(
      (
        await users()
          .sort("id" as never)
          .getFirst()
      )?.id,
    ).toBe(idOf(0));
    expect(
      (
        await users()
          .sort("id" as never, "desc")
          .getFirstOrThrow()
      ).id,
    ).toBe(idOf(COUNT - 1));
    expect(await users().filter("name", "nobody").getFirst()).toBeNull();
    await expect(users().filter("name", "nobody").getFirstOrThrow()).rejects.toThrow("No results found.");
  });

  test("getMany: 20 by default, offset and size, and paging from the array", async () => {
    const many = await users().getMany({ sort: "id" as never });
    expect(ids(many)).toEqual(ROWS.slice(0, 20).map(({ id }) => id));
    expect(many.hasNextPage()).toBe(true);
    const chunk = await users().getMany({ sort: "id" as never, pagination: { size: 10, offset: 10 } });
    expect(ids(chunk)).toEqual(ROWS.slice(10, 20).map(({ id }) => id));
    const page = await users().getPaginated({ sort: "id" as never, pagination: { size: 10, offset: 10 } });
    expect(ids((await page.nextPage()).records)).toEqual(ROWS.slice(20, 30).map(({ id }) => id));
  });

  test("getAll in small batches, iterator, and for await", async () => {
    const expected = sorted("desc");
    expect(ids(await users().sort("age", "desc").getAll({ batchSize: 9 }))).toEqual(expected);
    const batches: string[][] = [];
    for await (const batch of users().sort("age", "desc").getIterator({ batchSize: 25 })) batches.push(ids(batch));
    expect(batches).toEqual([expected.slice(0, 25), expected.slice(25, 50), expected.slice(50)]);
    const one: string[] = [];
    for await (const user of users()
      .filter("age", 9)
      .sort("id" as never))
      one.push(user.id);
    expect(one).toEqual(ROWS.filter(({ age }) => age === 9).map(({ id }) => id));
  });

  test("without a sort the order is by id", async () => {
    expect(ids(await users().getAll())).toEqual(ROWS.map(({ id }) => id));
  });

  test("consistency is accepted, both words", async () => {
    for (const consistency of ["strong", "eventual"] as const) {
      expect(await users().getMany({ consistency, pagination: { size: 3 } })).toHaveLength(3);
    }
    expect((await world.plain("POST", "/tables/users/query", { consistency: "maybe" })).status).toBe(400);
  });
});
