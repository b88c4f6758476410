/**
 * Records that no request could send but SQL can store: the feed gets past them, and reports what it leaves
 * out.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { RecordFeed } from "../../../src/records/feed/change-feed.ts";
import type { FeedBatch, FeedColumn } from "../../../src/records/feed/feed-types.ts";
import type { BranchRef } from "../../../src/records/schema.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";

const MIB = 2 ** 20;

type Omissible = Extract<FeedColumn, { kind: "text" | "json" | "multiple" }>;

describeOnBothEngines("The change feed and values that are too large", (fixture) => {
  let catalog: Catalog;
  let feed: RecordFeed;
  let schemaName: string;
  let position: string;
  let incarnation: string;
  const ref: BranchRef = { database: "feed", branch: "large" };
  const sql = (text: string, values?: unknown[]) =>
    fixture.engine.transaction(async (connection) => {
      await connection.query("SELECT set_config('search_path', $1, true)", [`"${schemaName}"`]);
      await connection.query(text, values);
    });

  beforeAll(async () => {
    catalog = await Catalog.open(fixture.engine);
    feed = await RecordFeed.open(fixture.engine, catalog, { trimIntervalMs: 0 });
    await catalog.createBranch(ref);
    ({ schemaName } = await catalog.change(ref, (editor) =>
      editor.createTable("t", [
        { name: "body", type: "text" },
        { name: "config", type: "json" },
        { name: "n", type: "int" },
        { name: "v", type: "vector", vector: { dimension: 2 } },
      ]),
    ));
  });
  afterAll(async () => {
    await feed.close();
    await catalog.close();
  });

  interface Seen {
    readonly body: number | "omitted" | null;
    readonly config: number | "omitted" | null;
    readonly n: unknown;
    readonly v: number[];
  }

  /** By id, the lengths of the values. */
  function look(batches: readonly FeedBatch[], into = new Map<string, Seen>()): Map<string, Seen> {
    for (const batch of batches) {
      batch.ids.forEach((id, row) => {
        const size = (name: string): number | "omitted" | null => {
          const column = batch.columns.get(name) as Omissible;
          const value = column.values[row] as string | null;
          if (column.omitted?.has(row) === true) return value === null ? "omitted" : -1;
          return value === null ? null : value.length;
        };
        const vectors = batch.columns.get("v") as Extract<FeedColumn, { kind: "vector" }>;
        const at = vectors.rows.indexOf(row);
        const n = (batch.columns.get("n") as Extract<FeedColumn, { kind: "int" }>).values[row];
        into.set(id, { body: size("body"), config: size("config"), n, v: [...vectors.elements.subarray(2 * at, 2 * at + 2)] });
      });
    }
    return into;
  }

  async function readAll(): Promise<Map<string, Seen>> {
    const batches: FeedBatch[] = [];
    ({ position, incarnation } = await feed.readAll(ref, [{ table: "t" }], async (batch) => void batches.push(batch)));
    return look(batches);
  }

  /** What each batch of the last `catchUp` holds. How many a read returns depends on how long it had to wait. */
  let pieces: Map<string, Seen>[] = [];

  /** What each read returns. */
  async function catchUp(): Promise<Map<string, Seen>[]> {
    const reads: Map<string, Seen>[] = [];
    pieces = [];
    for (let complete = false; !complete; ) {
      const changes = (await feed.readSince(ref, position, incarnation))!;
      ({ position, complete } = changes);
      if (changes.batches.length > 0) reads.push(look(changes.batches));
      pieces.push(...changes.batches.map((batch) => look([batch])));
    }
    return reads;
  }

  test("two records, of 140 MB each on the embedded engine, of 600 MB on a server, come without the large value", async () => {
    const bytes = fixture.engine.isExclusive ? 140_000_000 : 600_000_000;
    await sql(`INSERT INTO t (id, body, n, v) VALUES ('a', 'small', 1, '{1,2}'), ('b', NULL, 2, '{3,4}'), ('c', 'kept', 3, '{5,6}')`);
    await readAll();
    for (const id of ["a", "b"]) await sql("UPDATE t SET body = repeat('x', $1::int) WHERE id = $2", [bytes, id]);
    const changed = new Map((await catchUp()).flatMap((read) => [...read]));
    const expected = new Map<string, Seen>([
      ["a", { body: "omitted", config: null, n: 1n, v: [1, 2] }],
      ["b", { body: "omitted", config: null, n: 2n, v: [3, 4] }],
    ]);
    expect(changed).toEqual(expected);
    expect(await readAll()).toEqual(new Map([...expected, ["c", { body: 4, config: null, n: 3n, v: [5, 6] }]]));
    await sql("UPDATE t SET body = 'small again' WHERE id IN ('a', 'b')");
    expect((await catchUp()).map((read) => [...read.values()].map(({ body }) => body))).toEqual([[11, 11]]);
  });

  test("a value of 32 MiB still comes, one byte more does not", async () => {
    await sql(`UPDATE t SET body = repeat('x', $1::int) WHERE id = 'a'`, [32 * MIB]);
    await sql(`UPDATE t SET body = repeat('x', $1::int) WHERE id = 'b'`, [32 * MIB + 1]);
    const seen = new Map((await catchUp()).flatMap((read) => [...read]));
    expect([seen.get("a")!.body, seen.get("b")!.body]).toEqual([32 * MIB, "omitted"]);
    await sql("UPDATE t SET body = NULL WHERE id IN ('a', 'b')");
    await catchUp();
  });

  test("JSON that is small where it is stored, and too large to be printed, is left out, and what changes with it comes", async () => {
    // Ten bytes each in the table, 131,001 digits each as text.
    await sql(`UPDATE t SET config = ('[' || repeat('1e131000,', 3000) || '1]')::jsonb WHERE id = 'a'`);
    await sql(`UPDATE t SET config = '{"x": 1}', n = 9 WHERE id = 'b'`);
    const seen = new Map((await catchUp()).flatMap((read) => [...read]));
    expect(seen.get("a")).toMatchObject({ config: "omitted", body: null, n: 1n });
    expect(seen.get("b")).toMatchObject({ config: 8, n: 9n });
    expect((await readAll()).get("a")).toMatchObject({ config: "omitted", v: [1, 2] });
    await sql("UPDATE t SET config = NULL WHERE id = 'a'");
    await catchUp();
  });

  test("many records of some megabytes come a few at a time", async () => {
    await sql(`INSERT INTO t (id, body, n) SELECT 'm' || n, repeat(md5(n::text), 100000), n FROM generate_series(1, 30) AS n`);
    const reads = await catchUp();
    const all = new Map(reads.flatMap((read) => [...read]));
    expect([all.size, new Set([...all.values()].map(({ body }) => body))]).toEqual([30, new Set([3_200_000])]);
    for (const piece of pieces) expect([...piece.values()].reduce((sum, { body }) => sum + (body as number), 0)).toBeLessThan(12 * MIB);
    await sql("DELETE FROM t WHERE id LIKE 'm%'");
    await catchUp();
  });

  test("ids made long by SQL come as they are, a few megabytes at a time", async () => {
    // Compressed, they fit in the index.
    await sql(`INSERT INTO t (id, n) SELECT repeat(chr(97 + n % 26), 150000) || n, n FROM generate_series(1, 200) AS n`);
    const reads = await catchUp();
    expect(Math.max(...pieces.map((piece) => piece.size))).toBeLessThan(40);
    const all = new Map(reads.flatMap((read) => [...read]));
    expect([all.size, [...all.keys()].every((id) => id.length > 150_000)]).toEqual([200, true]);
    await sql("DELETE FROM t WHERE n > 9");
  });
});
