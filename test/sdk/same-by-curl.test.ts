/**
 * The same operations give the same results through curl. Each is done once with the SDK and once with a
 * plain HTTP request, on twin records, and the results are compared as plain JSON. A null column is missing
 * on the wire and null in the SDK; the SDK itself makes that difference.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { API_KEY, openWorld, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("curling");
});
afterAll(() => world?.stop());

type Json = null | string | number | boolean | Json[] | { [key: string]: Json };

/** Removes what the wire omits and the SDK fills in with null, and the times of writing. */
function bare(value: unknown): Json {
  const json = JSON.parse(JSON.stringify(value ?? null)) as Json;
  const walk = (node: Json): Json => {
    if (Array.isArray(node)) return node.map(walk);
    if (node === null || typeof node !== "object") return node;
    return Object.fromEntries(
      Object.entries(node)
        .filter(([key, v]) => v !== null && key !== "createdAt" && key !== "updatedAt" && key !== "requestId")
        .map(([key, v]) => [key, walk(v)]),
    );
  };
  return walk(json);
}
const withoutId = (value: unknown): Json => {
  const { id: _id, ...rest } = bare(value) as { [key: string]: Json };
  return rest;
};

const RECORD = {
  name: "Twin",
  labels: ["a", "b"],
  index: 3,
  rating: 0.5,
  founded: "2021-03-04T05:06:07.089Z",
  dark: true,
  config: { list: [5], text: "x" },
  plan: "paid",
};

describe("records", () => {
  test("create, read, update, replace, upsert and delete", async () => {
    const { teams } = world.client.db;
    const sdk = await teams.create("sdk", RECORD as never);
    const plain = await world.plain("PUT", "/tables/teams/data/plain?createOnly=true&columns=*", RECORD);
    expect(plain.status).toBe(201);
    expect(withoutId(plain.body)).toEqual(withoutId(sdk));
    expect(withoutId((await world.plain("GET", "/tables/teams/data/plain")).body)).toEqual(withoutId(await teams.read("sdk")));

    const change = { name: "Changed", index: { $increment: 2 }, dark: null };
    const patched = await world.plain("PATCH", "/tables/teams/data/plain?columns=*", change);
    expect(withoutId(patched.body)).toEqual(withoutId(await teams.update("sdk", change as never)));

    const replacement = { name: "Replaced", config: [1] };
    const replaced = await world.plain("PUT", "/tables/teams/data/plain?columns=*", replacement);
    expect(replaced.status).toBe(200);
    expect(withoutId(replaced.body)).toEqual(withoutId(await teams.createOrReplace("sdk", replacement as never)));

    const upserted = await world.plain("POST", "/tables/teams/data/plain?columns=*", { rating: 2 });
    expect(withoutId(upserted.body)).toEqual(withoutId(await teams.createOrUpdate("sdk", { rating: 2 })));

    const deleted = await world.plain("DELETE", "/tables/teams/data/plain?columns=*");
    expect(withoutId(deleted.body)).toEqual(withoutId(await teams.delete("sdk")));
    expect((await world.plain("DELETE", "/tables/teams/data/plain")).status).toBe(404);
    expect(await teams.delete("sdk")).toBeNull();
  });

  test("a delete without columns is a 204 without a body, which the SDK reads as {}", async () => {
    await world.client.db.teams.create("silent", { name: "x" });
    const answer = await world.plain("DELETE", "/tables/teams/data/silent");
    expect([answer.status, answer.body]).toEqual([204, undefined]);
  });

  test("failures: the same status and message", async () => {
    await world.client.db.teams.create("there", { name: "x" });
    for (const [path, method, body, call] of [
      [
        "/tables/teams/data/there?createOnly=true&columns=*",
        "PUT",
        { name: "y" },
        () => world.client.db.teams.create("there", { name: "y" }),
      ],
      ["/tables/teams/data?columns=*", "POST", { index: "x" }, () => world.client.db.teams.create({ index: "x" } as never)],
      [
        "/tables/teams/data/there?ifVersion=7&columns=*",
        "POST",
        { name: "y" },
        () => world.client.db.teams.createOrUpdate("there", { name: "y" }, { ifVersion: 7 }),
      ],
      [
        "/transaction",
        "POST",
        { operations: [{ delete: { table: "teams", id: "gone", failIfMissing: true } }] },
        () => world.client.transactions.run([{ delete: { table: "teams", id: "gone", failIfMissing: true } }] as never),
      ],
      ["/sql", "POST", { statement: "DROP TABLE teams" }, () => world.client.sql({ statement: "DROP TABLE teams" })],
    ] as const) {
      const plain = await world.plain(method, path, body);
      const error = (await (call() as Promise<unknown>).catch((e: unknown) => e)) as { status: number; message: string; errors: unknown[] };
      expect(plain.status).toBe(error.status);
      expect(plain.status).toBeGreaterThanOrEqual(400);
      if (plain.body.message !== undefined) expect(plain.body.message).toBe(error.message);
      if (plain.body.errors !== undefined) expect(plain.body.errors).toEqual(error.errors);
    }
  });
});

describe("reading many", () => {
  beforeAll(async () => {
    await world.client.db.users.create(
      Array.from({ length: 30 }, (_, i) => ({
        id: `u${String(i).padStart(2, "0")}`,
        name: `User ${i % 7}`,
        age: i,
        settings: [i],
      })) as never,
    );
    await world.client.db.colours.create([
      { id: "red", name: "red", family: "warm", lab: [53, 80, 67] },
      { id: "blue", name: "blue", family: "cold", lab: [32, 79, -108] },
      { id: "navy", name: "navy", family: "cold", lab: [13, 47, -65] },
    ]);
  });

  test("query with filter, sort, columns, and on to the next page", async () => {
    const query = world.client.db.users.filter("name", { $endsWith: "3" }).sort("age", "desc").select(["age", "settings"]);
    const sdk = await query.getPaginated({ pagination: { size: 3 } });
    const plain = await world.plain("POST", "/tables/users/query", {
      filter: { name: { $endsWith: "3" } },
      sort: { age: "desc" },
      columns: ["age", "settings"],
      page: { size: 3 },
    });
    expect(bare(plain.body.records)).toEqual(bare([...sdk.records]));
    expect({ ...plain.body.meta.page, cursor: "" }).toEqual({ ...sdk.meta.page, cursor: "" });
    const next = await world.plain("POST", "/tables/users/query", {
      page: { after: plain.body.meta.page.cursor },
      columns: ["age", "settings"],
    });
    expect(bare(next.body.records)).toEqual(bare([...(await sdk.nextPage()).records]));
  });

  test("vectorSearch: ids, scores and totalCount", async () => {
    const sdk = await world.client.db.colours.vectorSearch("lab", [30, 70, -100], {
      similarityFunction: "l2",
      filter: { family: "cold" } as never,
    });
    const plain = await world.plain("POST", "/tables/colours/vectorSearch", {
      column: "lab",
      queryVector: [30, 70, -100],
      similarityFunction: "l2",
      filter: { family: "cold" },
      consistency: "strong",
    });
    expect(plain.body).toEqual({
      totalCount: 2,
      results: sdk.records.map((record) => ({ id: record.id, score: record.getMetadata().score })),
    });
    expect(plain.body.results.map(({ id }: { id: string }) => id)).toEqual(["blue", "navy"]);
    expect(sdk.totalCount).toBe(2);
  });

  test("search, aggregate and summarize", async () => {
    const searched = await world.client.db.users.search("user", { page: { size: 5 } });
    const plainSearch = await world.plain("POST", "/tables/users/search", { query: "user", page: { size: 5 } });
    expect(plainSearch.body.totalCount).toBe(searched.totalCount);
    expect(bare(plainSearch.body.records)).toEqual(bare(searched.records));

    const aggs = { mean: { average: { column: "age" } }, top: { topValues: { column: "name", size: 2 } } };
    expect((await world.plain("POST", "/tables/users/aggregate", { aggs })).body).toEqual(
      await world.client.db.users.aggregate(aggs as never),
    );

    const summary = { columns: ["name"], summaries: { n: { count: "*" } }, sort: [{ name: "asc" }] };
    const plainSummary = await world.plain("POST", "/tables/users/summarize", summary);
    expect(bare(plainSummary.body)).toEqual(bare(await world.client.db.users.summarize(summary as never)));
  });

  test("sql, one and batch", async () => {
    const statement = 'SELECT "id", "age", "settings" FROM "users" WHERE "age" > $1 ORDER BY "age"';
    const sdk = await world.client.sql({ statement, params: [27] });
    const plain = await world.plain("POST", "/sql", { statement, params: [27] });
    expect(plain.body.records).toEqual(sdk.records);
    expect(plain.body.columns).toEqual(sdk.columns);
    expect(plain.body).toMatchObject({ total: 2, rowCount: 2 });
    const batch = { statements: [{ statement, params: [28] }, { statement: 'SELECT count(*) AS n FROM "users"' }] };
    expect((await world.plain("POST", "/sql/batch", batch)).body).toEqual(await world.client.sql.batch(batch));
  });

  test("transactions", async () => {
    const operations = [
      { insert: { table: "users", record: { id: "tx", name: "T" }, columns: ["name"] } },
      { get: { table: "users", id: "tx", columns: ["name", "age"] } },
      { delete: { table: "users", id: "tx" } },
    ];
    const plain = await world.plain("POST", "/transaction", { operations });
    expect(bare(plain.body)).toEqual(bare(await world.client.transactions.run(operations as never)));
  });
});

test("without configured keys any bearer key is accepted, and none", async () => {
  const url = `${world.url}/db/curling:main/tables/users/data/u01`;
  const withKey = await fetch(url, { headers: { Authorization: `Bearer ${API_KEY}` } });
  const without = await fetch(url);
  expect([withKey.status, without.status]).toEqual([200, 200]);
});

test("IPv4 and IPv6 both answer", async () => {
  for (const host of ["127.0.0.1", "[::1]", "localhost"]) {
    expect({ host, status: (await fetch(`http://${host}:${world.port}/livez`)).status }).toEqual({ host, status: 200 });
  }
});
