import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { queryRecords } from "../../../../src/records/data/read/query-records.ts";
import { insertRecords } from "../../../../src/records/data/write/bulk-insert.ts";
import type { JsonObject, JsonValue, PageRequest, QueryRequest } from "../../../../src/records/requests.ts";
import { runs } from "../../../support/random-runs.ts";
import { describeOnBothEngines } from "../../../support/record-engines.ts";

describeOnBothEngines("queries", (fixture) => {
  const run = (table: string, request: QueryRequest = {}) => queryRecords(fixture.engine, fixture.branch, fixture.table(table), request);
  const ids = (records: readonly JsonObject[]) => records.map((record) => record.id as string);
  const all: JsonObject[] = [];

  beforeAll(async () => {
    await fixture.createTable("teams", [
      { name: "name", type: "string" },
      { name: "rank", type: "int" },
    ]);
    await fixture.createTable("players", [
      { name: "name", type: "string" },
      { name: "score", type: "int" },
      { name: "rating", type: "float" },
      { name: "active", type: "bool" },
      { name: "joined", type: "datetime" },
      { name: "tags", type: "multiple" },
      { name: "config", type: "json" },
      { name: "team", type: "link", link: { table: "teams" } },
      { name: "place.city", type: "string" },
      { name: "embedding", type: "vector", vector: { dimension: 2 } },
    ]);
    await insertRecords(fixture.engine, fixture.branch, fixture.table("teams"), [
      { id: "t1", name: "red", rank: 2 },
      { id: "t2", name: "blue", rank: 1 },
      { id: "t3", name: null, rank: null },
    ]);
    const names = ["a", "B", "ä", "a\uffff", "😀", "", null];
    for (let i = 0; i < 60; i++) {
      all.push({
        id: `p${String((i * 37) % 60).padStart(2, "0")}`,
        name: names[i % names.length]!,
        score: i % 5 === 0 ? null : i % 4,
        rating: i % 7 === 0 ? null : [0, -0.5, 1e300, -1e-300, 0.1][i % 5]!,
        active: i % 3 === 0 ? null : i % 2 === 0,
        joined: i % 6 === 0 ? null : `2026-01-0${(i % 4) + 1}T00:00:00.00000${i % 3}Z`,
        team: i % 4 === 0 ? null : `t${(i % 3) + 1}`,
        tags: i % 2 === 0 ? ["x", "y"] : [],
        config: { n: i, deep: { list: [i] } },
        "place.city": i % 2 === 0 ? "Oslo" : null,
      });
    }
    await insertRecords(fixture.engine, fixture.branch, fixture.table("players"), all);
  });

  test("return 20 records by id with all columns by default", async () => {
    const answer = await run("players");
    expect(ids(answer.records)).toEqual(Array.from({ length: 20 }, (_, i) => `p${String(i).padStart(2, "0")}`));
    expect(answer.meta.page).toEqual({ cursor: expect.any(String), more: true, size: 20 });
    expect(answer.records[1]).toEqual({
      id: "p01",
      score: 1,
      rating: -1e-300,
      tags: [],
      config: { n: 13, deep: { list: [13] } },
      team: { id: "t2" },
      active: false,
      joined: "2026-01-02T00:00:00.000001Z",
      xata: { version: 0, createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
  });

  test("filter, also across links and json", async () => {
    const answer = await run("players", {
      filter: { "team.name": "blue", "config->n": { $lt: 20 } },
      columns: ["team.name"],
      page: { size: 1000 },
    });
    const expected = all.filter((player) => player.team === "t2" && (player.config as { n: number }).n < 20);
    expect(ids(answer.records)).toEqual(expected.map((player) => player.id as string).sort());
    expect(answer.records[0]).toMatchObject({ team: { id: "t2", name: "blue", xata: { version: 0 } } });
    expect(answer.meta.page.more).toBe(false);
  });

  test("walk forwards and backwards over any sort, each record once and in order", async () => {
    const column = fc.constantFrom(
      "name",
      "score",
      "rating",
      "active",
      "joined",
      "team",
      "team.name",
      "team.rank",
      "place.city",
      "id",
      "xata.version",
    );
    const sort = fc.array(fc.record({ column, direction: fc.constantFrom("asc", "desc") }), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(sort, fc.integer({ min: 1, max: 25 }), fc.boolean(), async (keys, size, filtered) => {
        const filter: JsonValue = filtered ? { score: { $ge: 1 } } : {};
        const expected = all
          .filter((player) => !filtered || (player.score !== null && (player.score as number) >= 1))
          .toSorted((a, b) => compare(a, b, keys))
          .map((player) => player.id as string);
        const forward: string[] = [];
        let answer = await run("players", { filter, sort: keys, page: { size }, columns: [] });
        for (let i = 0; i < 100; i++) {
          forward.push(...ids(answer.records));
          if (!answer.meta.page.more) break;
          answer = await run("players", { page: { after: answer.meta.page.cursor } });
        }
        expect(forward).toEqual(expected);
        const backward: string[] = [];
        answer = await run("players", { page: { end: answer.meta.page.cursor } });
        for (let i = 0; i < 100 && answer.records.length > 0; i++) {
          backward.unshift(...ids(answer.records));
          answer = await run("players", { page: { before: answer.meta.page.cursor } });
          expect(answer.meta.page.more).toBe(true);
        }
        expect(backward).toEqual(expected);
      }),
      { numRuns: runs(25) },
    );
  });

  test("continue from a cursor with its filter, sort, columns and size", async () => {
    const first = await run("players", { filter: { $exists: "score" }, sort: { score: "desc" }, page: { size: 7 }, columns: ["score"] });
    const second = await run("players", { page: { after: first.meta.page.cursor } });
    expect(second.records).toHaveLength(7);
    expect(second.meta.page.size).toBe(7);
    expect(Object.keys(second.records[0]!).sort()).toEqual(["id", "score", "xata"]);
    const other = await run("players", { page: { after: first.meta.page.cursor, size: 3 }, columns: ["name"] });
    expect(ids(other.records)).toEqual(ids(second.records).slice(0, 3));
    expect(other.records[0]).not.toHaveProperty("score");
    const back = await run("players", { page: { before: second.meta.page.cursor } });
    expect(ids(back.records)).toEqual(ids(first.records));
    const start = await run("players", { page: { start: second.meta.page.cursor } });
    expect(ids(start.records)).toEqual(ids(first.records));
    const skipped = await run("players", { page: { after: first.meta.page.cursor, offset: 2, size: 2 } });
    expect(ids(skipped.records)).toEqual(ids(second.records).slice(2, 4));
  });

  test("end where the result ends", async () => {
    const size = 40;
    const one = await run("players", { page: { size }, sort: ["id"] });
    const two = await run("players", { page: { after: one.meta.page.cursor } });
    const three = await run("players", { page: { after: two.meta.page.cursor } });
    expect([one, two, three].map((answer) => [answer.records.length, answer.meta.page.more])).toEqual([
      [40, true],
      [20, false],
      [0, false],
    ]);
    const again = await run("players", { page: { before: three.meta.page.cursor, size: 3 } });
    expect(ids(again.records)).toEqual(["p57", "p58", "p59"]);
    const last = await run("players", { page: { end: one.meta.page.cursor } });
    expect([ids(last.records)[0], last.records.length, last.meta.page.more]).toEqual(["p20", 40, false]);
    const beforeEnd = await run("players", { page: { before: "end", size: 2 }, sort: { id: "desc" } });
    expect(ids(beforeEnd.records)).toEqual(["p01", "p00"]);
    const afterStart = await run("players", { page: { after: "start", size: 2 } });
    expect(ids(afterStart.records)).toEqual(["p00", "p01"]);
  });

  test("tail a table: the end is followed by records that are created later", async () => {
    await fixture.createTable("log");
    const nothing = await run("log", { page: { after: "end" } });
    expect(nothing.records).toEqual([]);
    await insertRecords(fixture.engine, fixture.branch, fixture.table("log"), [{ id: "l1" }, { id: "l2" }]);
    const early = await run("log", { page: { after: nothing.meta.page.cursor } });
    expect(ids(early.records)).toEqual(["l1", "l2"]);
    const end = await run("log", { page: { after: "end" } });
    expect(end.records).toEqual([]);
    await insertRecords(fixture.engine, fixture.branch, fixture.table("log"), [{ id: "l3" }]);
    expect(ids((await run("log", { page: { after: end.meta.page.cursor } })).records)).toEqual(["l3"]);
    expect(ids((await run("log", { page: { before: end.meta.page.cursor } })).records)).toEqual(["l1", "l2", "l3"]);
  });

  test("return what lies between two cursors", async () => {
    const a = await run("players", { sort: "id", page: { size: 10 } });
    const b = await run("players", { page: { after: a.meta.page.cursor, size: 5 } });
    const c = await run("players", { page: { after: b.meta.page.cursor, size: 5 } });
    const between = await run("players", { page: { after: a.meta.page.cursor, before: c.meta.page.cursor, size: 100 } });
    expect(ids(between.records)).toEqual(ids(b.records));
    const elsewhere = await run("players", { sort: { id: "desc" } });
    await expect(run("players", { page: { after: a.meta.page.cursor, before: elsewhere.meta.page.cursor } })).rejects.toMatchObject({
      code: "INVALID",
      message: "page.after and page.before are cursors of different queries; both must come from the same filter and sort.",
    });
  });

  test("sort at random, in the same order on all pages of one query", async () => {
    const walk = async (): Promise<string[]> => {
      const seen: string[] = [];
      let answer = await run("players", { sort: { "*": "random" }, page: { size: 13 } });
      for (;;) {
        seen.push(...ids(answer.records));
        if (!answer.meta.page.more) return seen;
        answer = await run("players", { page: { after: answer.meta.page.cursor } });
      }
    };
    const [one, two] = [await walk(), await walk()];
    expect([...one].sort()).toEqual([...two].sort());
    expect(new Set(one).size).toBe(60);
    expect(one).not.toEqual(two);
    const ties = await run("players", { sort: [{ "place.city": "asc" }, "*"], page: { size: 60 } });
    expect(ties.records.map((record) => (record.place as JsonObject | undefined)?.city)).toEqual([
      ...Array(30).fill("Oslo"),
      ...Array(30).fill(undefined),
    ]);
  });

  test("accept every form of sort", async () => {
    const expected = ids((await run("players", { sort: [{ score: "desc" }, { name: "asc" }], page: { size: 60 } })).records);
    for (const sort of [
      { score: "desc", name: "asc" },
      [{ column: "score", direction: "desc" }, "name"],
      [{ column: "score", direction: "desc" }, { column: "name" }],
    ] as JsonValue[]) {
      expect(ids((await run("players", { sort, page: { size: 60 } })).records)).toEqual(expected);
    }
  });

  test("select links, objects, json paths and reverse links", async () => {
    const { records } = await run("teams", {
      sort: { rank: "asc" },
      columns: [
        "name",
        {
          name: "<-players.team",
          as: "best",
          columns: ["score", "team.name", "place.city"],
          sort: [{ score: "asc" }, "id"],
          limit: 2,
          offset: 1,
        },
        { name: "<-players.team", columns: ["id"], limit: 1, order: [{ column: "name", order: "desc" }] },
      ],
    });
    expect(records).toHaveLength(3);
    const best = (records[0]!.best as JsonObject).records as JsonObject[];
    const expected = all
      .filter((player) => player.team === "t2")
      .toSorted((a, b) =>
        compare(a, b, [
          { column: "score", direction: "asc" },
          { column: "id", direction: "asc" },
        ]),
      )
      .slice(1, 3);
    expect(ids(best)).toEqual(expected.map((player) => player.id as string));
    expect(best[0]).toMatchObject({ score: expected[0]!.score, team: { id: "t2", name: "blue" }, xata: { version: 0 } });
    expect((records[0]!.playersteam as JsonObject).records).toEqual([{ id: expect.any(String), xata: expect.any(Object) }]);
    const [player] = (
      await run("players", { filter: { id: "p24" }, columns: ["config->deep->list->0", "config->nope", "place", "place.*", "xata.*"] })
    ).records;
    expect(player).toEqual({ id: "p24", "config->deep->list->0": 12, place: { city: "Oslo" }, xata: expect.any(Object) });
  });

  test("return an empty list for a reverse link without records", async () => {
    await fixture.createTable("groups");
    await fixture.createTable("members", [{ name: "group", type: "link", link: { table: "groups" } }]);
    await insertRecords(fixture.engine, fixture.branch, fixture.table("groups"), [{ id: "lonely" }]);
    expect((await run("groups", { columns: [{ name: "<-members.group", as: "members" }] })).records).toMatchObject([
      { id: "lonely", members: { records: [] } },
    ]);
  });

  test.each<[QueryRequest, string]>([
    [{ page: { after: "nonsense" } }, 'page.after is "nonsense", which is not a cursor'],
    [{ page: { before: "1.AAAA" } }, 'page.before is "1.AAAA", which is not a cursor'],
    [{ page: { start: "end" } }, 'page.start is "end", which is not a cursor'],
    [{ sort: "nope" }, 'sort: table "players" has no column "nope"'],
    [{ sort: { name: "up" } }, 'sort: the direction is "up"; expected "asc" or "desc".'],
    [{ sort: [{ "*": "asc" }] }, 'sort[0]: the direction is "asc"; expected "random", the only direction of "*".'],
    [{ sort: [5] }, 'sort[0] is 5; expected a column name or an object such as {"name": "desc"}.'],
    [{ sort: "embedding" }, 'sort: column "embedding" is of type vector, which has no order; sort by another column.'],
    [{ sort: "place" }, 'sort: "place" is an object; name one of its columns, such as "place.city".'],
    [{ sort: "name.first" }, 'sort: column "name" of table "players" is of type string, not a link'],
    [{ sort: Array(17).fill("name") }, "sort has 17 keys; at most 16 are allowed."],
    [{ columns: ["nope"] }, 'columns[0]: table "players" has no column "nope"'],
    [{ columns: ["team.nope"] }, 'columns[0]: table "teams" has no column "nope"'],
    [{ columns: ["name.x"] }, 'columns[0]: column "name" of table "players" is of type string, not a link'],
    [{ columns: ["name->x"] }, 'columns[0]: column "name" is of type string; only json columns have paths with "->"'],
    [{ columns: [5 as unknown as string] }, "columns[0] is 5; expected a column name, or an object with a name."],
    [{ columns: "name" as unknown as string[] }, 'columns is "name"; expected an array such as ["*", "team.name"].'],
    [{ columns: [{ name: 5 }] }, 'columns[0].name is 5; expected a column name, or "<-table.column".'],
    [{ columns: [{ name: "name", columns: ["x"] }] }, 'columns[0].name: "name" is not a link, so it takes no columns.'],
    [{ filter: { embedding: 5 } }, 'column "embedding" is a vector; a filter can only ask whether it has a value'],
    [{ columns: [{ name: "<-teams.name" }] }, 'columns[0].name: column "teams.name" does not link to table "players".'],
    [{ columns: [{ name: "<-nope.x" }] }, 'columns[0].name: there is no column "nope.x"; a reverse link is written "<-table.column"'],
    [{ filter: { nope: 1 } }, 'has no column "nope"'],
  ])("refuse %j", async (request, message) => {
    await expect(run("players", request)).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining(message) });
  });

  test("refuse a cursor whose values the sorted column can no longer have", async () => {
    await fixture.createTable("drafts", [{ name: "rank", type: "string" }]);
    const drafts = (page: PageRequest, sort?: string) =>
      queryRecords(fixture.engine, fixture.branch, fixture.table("drafts"), { page, ...(sort === undefined ? {} : { sort }) });
    const ranks = ["first", "second", "third"].map((rank) => ({ rank }));
    await insertRecords(fixture.engine, fixture.branch, fixture.table("drafts"), ranks);
    const { cursor } = (await drafts({ size: 2 }, "rank")).meta.page;
    await fixture.change(async (editor) => {
      await editor.dropColumn("drafts", "rank");
      await editor.addColumn("drafts", { name: "rank", type: "int" });
    });
    await expect(drafts({ after: cursor })).rejects.toMatchObject({
      code: "INVALID",
      message: "The cursor does not fit the table's current schema; start a new query.",
    });
  });

  test("refuse a cursor with another filter or sort, of another table, or that was modified", async () => {
    const { cursor } = (await run("players", { sort: "name", page: { size: 3 } })).meta.page;
    await expect(run("players", { page: { after: cursor }, sort: "score" })).rejects.toMatchObject({
      code: "INVALID",
      message: "sort cannot be given with a cursor, which has the sort of its query; leave it out, or start a new query.",
    });
    await expect(run("players", { page: { after: cursor }, filter: { name: "a" } })).rejects.toMatchObject({
      message: expect.stringContaining("filter cannot be given with a cursor"),
    });
    await expect(run("teams", { page: { after: cursor } })).rejects.toMatchObject({
      message: 'page.after is a cursor of another table than "teams".',
    });
    await expect(run("players", { page: { start: cursor, after: cursor } })).rejects.toMatchObject({
      message: 'page has "after" and "start"; "start" and "end" cannot be combined with others.',
    });
    for (let i = 2; i < cursor.length; i += 5) {
      const changed = `${cursor.slice(0, i)}${cursor[i] === "A" ? "B" : "A"}${cursor.slice(i + 1)}`;
      await expect(run("players", { page: { after: changed } })).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringContaining("which is not a cursor"),
      });
    }
  });
});

/** The promised order: by code point, nulls above everything, ties by id, ascending. */
function compare(a: JsonObject, b: JsonObject, keys: readonly { column: string; direction: string }[]): number {
  const teams: Record<string, JsonObject> = { t1: { name: "red", rank: 2 }, t2: { name: "blue", rank: 1 }, t3: { name: null, rank: null } };
  const value = (record: JsonObject, column: string): string | number | boolean | null => {
    if (column === "xata.version") return 0;
    if (column === "config->n") return (record.config as { n: number }).n;
    if (column.startsWith("team."))
      return record.team === null ? null : (teams[record.team as string]![column.slice(5)] as string | number | null);
    return record[column] as string | number | boolean | null;
  };
  for (const { column, direction } of [...keys, { column: "id", direction: "asc" }]) {
    const [x, y] = [value(a, column), value(b, column)];
    if (x === y) continue;
    const order =
      x === null ? 1 : y === null ? -1 : typeof x === "string" ? Buffer.compare(Buffer.from(x), Buffer.from(y as string)) : x < y ? -1 : 1;
    return direction === "desc" ? -order : order;
  }
  return 0;
}
