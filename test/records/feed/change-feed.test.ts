import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { RecordFeed } from "../../../src/records/feed/change-feed.ts";
import { FeedTurn } from "../../../src/records/feed/feed-turn.ts";
import type { FeedBatch } from "../../../src/records/feed/feed-types.ts";
import type { BranchRef, ColumnSchema } from "../../../src/records/schema.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";
import { Follower } from "./follower.ts";

const EVERY_TYPE: readonly ColumnSchema[] = [
  { name: "name", type: "string" },
  { name: "body", type: "text" },
  { name: "mail", type: "email" },
  { name: "count", type: "int" },
  { name: "weight", type: "float" },
  { name: "done", type: "bool" },
  { name: "at", type: "datetime" },
  { name: "tags", type: "multiple" },
  { name: "config", type: "json" },
  { name: "parent", type: "link", link: { table: "everything" } },
  { name: "embedding", type: "vector", vector: { dimension: 3 } },
  { name: "address.city", type: "string" },
];

describeOnBothEngines("The change feed", (fixture, kind) => {
  let catalog: Catalog;
  let feed: RecordFeed;
  let branches = 0;

  beforeAll(async () => {
    catalog = await Catalog.open(fixture.engine);
    // Each read is as short as one that did not have to wait, however busy the machine is.
    feed = await RecordFeed.open(fixture.engine, catalog, { trimIntervalMs: 0, turnAfter: () => new FeedTurn(0, false) });
  });
  afterAll(async () => {
    await feed.close();
    await catalog.close();
  });

  /** A branch of the test's own. */
  const newBranch = async (
    tables: Record<string, readonly ColumnSchema[]>,
  ): Promise<{ ref: BranchRef; sql: (text: string, values?: unknown[]) => Promise<void> }> => {
    const ref = { database: "feed", branch: `b${branches++}` };
    await catalog.createBranch(ref);
    const { schemaName } = await catalog.change(ref, async (editor) => {
      for (const [name, columns] of Object.entries(tables)) await editor.createTable(name, columns);
    });
    return {
      ref,
      sql: (text, values) =>
        fixture.engine.transaction(async (connection) => {
          // Writes as another program would: psql, another service.
          await connection.query("SELECT set_config('search_path', $1, true), set_config('lodestone.writer', '', true)", [
            `"${schemaName}"`,
          ]);
          await connection.query(text, values);
        }),
    };
  };

  test("returns the values of every column type, with nulls and extremes", async () => {
    const { ref, sql } = await newBranch({ everything: EVERY_TYPE });
    await sql(
      `INSERT INTO everything (id, name, body, mail, count, weight, done, at, tags, config, parent, embedding, "address.city") VALUES
       ('a', '', 'ä\n😀', 'x@y.z', 9223372036854775807, 'NaN', true, '2026-01-31T12:00:00.123456Z', '{"a,b",NULL,""}', '{"k": [1, null]}', 'a', '{1,-0.1,3e38}', 'Köln'),
       ('b', 'n', NULL, NULL, -9223372036854775808, '-Infinity', false, '-infinity', '{}', 'null', NULL, NULL, NULL),
       ('c', NULL, NULL, NULL, NULL, NULL, NULL, 'infinity', NULL, NULL, NULL, '{0,-0,1e-45}', NULL),
       ('d', NULL, NULL, NULL, NULL, NULL, NULL, '0044-03-15 BC', '{{a,b},{c,d}}', '{}', 'b', NULL, NULL)`,
    );
    const follower = new Follower(feed, ref);
    await follower.start(["everything"]);
    const records = follower.rows.get("everything")!;
    expect([...records.keys()]).toEqual(["a", "b", "c", "d"]);
    expect(records.get("a")).toEqual({
      "xata.version": 0n,
      "xata.createdAt": expect.any(BigInt),
      "xata.updatedAt": expect.any(BigInt),
      name: "",
      body: "ä\n😀",
      mail: "x@y.z",
      count: 9223372036854775807n,
      weight: Number.NaN,
      done: true,
      at: BigInt(Date.UTC(2026, 0, 31, 12, 0, 0, 123)) * 1000n + 456n,
      tags: ["a,b", null, ""],
      config: '{"k": [1, null]}',
      parent: "a",
      embedding: [1, Math.fround(-0.1), Math.fround(3e38)],
      "address.city": "Köln",
    });
    expect(records.get("b")).toMatchObject({
      count: -9223372036854775808n,
      weight: -Infinity,
      done: false,
      at: -9223372036854775808n,
      tags: [],
      config: "null",
      parent: null,
      embedding: null,
    });
    expect(records.get("c")).toMatchObject({
      name: null,
      at: 9223372036854775807n,
      tags: null,
      config: null,
      embedding: [0, -0, Math.fround(1e-45)],
    });
    expect(records.get("d")).toMatchObject({
      at: BigInt(new Date("-000043-03-15T00:00:00Z").getTime()) * 1000n,
      tags: ["a", "b", "c", "d"],
    });
  });

  test("reads only the requested columns", async () => {
    const { ref, sql } = await newBranch({ everything: EVERY_TYPE });
    await sql("INSERT INTO everything (id, name, count) VALUES ('a', 'n', 1)");
    const batches: FeedBatch[] = [];
    await feed.readAll(ref, [{ table: "everything", columns: ["count", "xata.version"] }], async (batch) => void batches.push(batch));
    expect(batches.map((batch) => [batch.ids, [...batch.columns]])).toEqual([
      [
        ["a"],
        [
          ["xata.version", { kind: "int", values: [0n] }],
          ["count", { kind: "int", values: [1n] }],
        ],
      ],
    ]);
    await expect(feed.readAll(ref, [{ table: "everything", columns: ["nope"] }], async () => {})).rejects.toMatchObject({
      code: "CONFLICT",
    });
    await expect(feed.readAll(ref, [{ table: "nope" }], async () => {})).rejects.toMatchObject({ code: "CONFLICT" });
  });

  test("follows inserts, updates, deletes, truncates and the effects of links", async () => {
    const { ref, sql } = await newBranch({
      teams: [{ name: "name", type: "string" }],
      users: [{ name: "team", type: "link", link: { table: "teams" } }],
    });
    const follower = new Follower(feed, ref);
    await follower.start(["teams", "users"]);
    await sql("INSERT INTO teams (id, name) VALUES ('t1', 'one'), ('t2', 'two')");
    await sql("INSERT INTO users (id, team) VALUES ('u1', 't1'), ('u2', 't2')");
    await sql("INSERT INTO teams (id, name) VALUES ('t1', 'uno'), ('t3', 'tres') ON CONFLICT (id) DO UPDATE SET name = excluded.name");
    expect(await follower.catchUp()).toBe(true);
    expect([...follower.rows.get("teams")!].map(([id, { name, "xata.version": version }]) => [id, name, version])).toEqual([
      ["t1", "uno", 1n],
      ["t2", "two", 0n],
      ["t3", "tres", 0n],
    ]);
    await sql("WITH gone AS (DELETE FROM teams WHERE id = 't1' RETURNING id) INSERT INTO teams (id) SELECT 'copy of ' || id FROM gone");
    expect(await follower.catchUp()).toBe(true);
    expect([...follower.rows.get("teams")!.keys()].sort()).toEqual(["copy of t1", "t2", "t3"]);
    expect(follower.rows.get("users")!.get("u1")).toMatchObject({ team: null, "xata.version": 1n });
    await sql("TRUNCATE users");
    expect(await follower.catchUp()).toBe(true);
    expect(follower.rows.get("users")!.size).toBe(0);
  });

  test("a transaction that is rolled back leaves nothing", async () => {
    const { ref, sql } = await newBranch({ t: [] });
    const follower = new Follower(feed, ref);
    await follower.start(["t"]);
    await expect(sql("INSERT INTO t (id) SELECT CASE WHEN i < 3 THEN i::text END FROM generate_series(1, 3) AS i")).rejects.toMatchObject({
      code: "23502",
    });
    expect(await follower.catchUp()).toBe(true);
    expect(follower.rows.get("t")).toBeUndefined();
  });

  test("large changes come in pieces, and positions between pieces lose nothing", async () => {
    const { ref, sql } = await newBranch({
      t: [
        { name: "n", type: "int" },
        { name: "v", type: "vector", vector: { dimension: 200 } },
      ],
    });
    const follower = new Follower(feed, ref);
    await follower.start(["t"]);
    await sql("INSERT INTO t (id, n, v) SELECT 'r' || i, i, array_fill(i::real, ARRAY[200]) FROM generate_series(1, 10000) AS i");
    expect(await follower.catchUp()).toBe(true);
    expect(follower.partialReads).toBeGreaterThan(2);
    expect(follower.rows.get("t")!.size).toBe(10_000);
    expect(follower.rows.get("t")!.get("r77")).toMatchObject({ n: 77n, v: new Array(200).fill(77) });

    // Changed again in the middle of reading: the remaining pieces have the newest values.
    await sql("UPDATE t SET n = -n");
    const first = await feed.readSince(ref, follower.position, follower.incarnation);
    expect(first!.complete).toBe(false);
    for (const batch of first!.batches) follower.apply(batch);
    follower.position = first!.position;
    await sql("UPDATE t SET n = 5 WHERE id IN ('r1', 'r10000')");
    await sql("DELETE FROM t WHERE id = 'r500'");
    expect(await follower.catchUp()).toBe(true);
    const records = follower.rows.get("t")!;
    expect(records.size).toBe(9_999);
    expect(["r1", "r2", "r9999", "r10000"].map((id) => records.get(id)!.n)).toEqual([5n, -2n, -9999n, 5n]);
  });

  test("reading a table whole continues while it is written, and ends at one consistent state", async () => {
    const { ref, sql } = await newBranch({
      t: [
        { name: "n", type: "int" },
        { name: "v", type: "vector", vector: { dimension: 100 } },
      ],
    });
    await sql(
      "INSERT INTO t (id, n, v) SELECT lpad(i::text, 5, '0'), 0, array_fill(1::real, ARRAY[100]) FROM generate_series(1, 6000) AS i",
    );
    const follower = new Follower(feed, ref);
    let batches = 0;
    const read = await feed.readAll(ref, [{ table: "t" }], async (batch) => {
      batches++;
      follower.apply(batch);
      // After, at and before the current position of the reading: none may be missed.
      if (batches === 2) await sql("UPDATE t SET n = 1 WHERE id IN ('00001', '03000', '06000')");
      if (batches === 3) await sql("DELETE FROM t WHERE id IN ('00002', '05999')");
    });
    expect(batches).toBeGreaterThan(3);
    const records = follower.rows.get("t")!;
    expect(records.size).toBe(5_998);
    expect(["00001", "03000", "06000", "00003"].map((id) => records.get(id)!.n)).toEqual([1n, 1n, 1n, 0n]);
    const changes = await feed.readSince(ref, read.position, read.incarnation);
    expect(changes).toMatchObject({ batches: [], complete: true });
  });

  test("a change of schema while a table is read whole ends the reading with CONFLICT", async () => {
    const { ref, sql } = await newBranch({ t: [{ name: "v", type: "vector", vector: { dimension: 1000 } }] });
    await sql("INSERT INTO t (v) SELECT array_fill(1::real, ARRAY[1000]) FROM generate_series(1, 1000) AS i");
    let batches = 0;
    const reading = feed.readAll(ref, [{ table: "t" }], async () => {
      if (batches++ === 0) await catalog.change(ref, (editor) => editor.addColumn("t", { name: "n", type: "int" }));
    });
    await expect(reading).rejects.toMatchObject({ code: "CONFLICT", message: expect.stringContaining("schema changed") });
  });

  test("records far larger than a batch are read one by one", async () => {
    const { ref, sql } = await newBranch({ t: [{ name: "body", type: "text" }] });
    await sql("INSERT INTO t (id, body) SELECT 'r' || i, repeat('x', 2000000) || i FROM generate_series(1, 5) AS i");
    await sql("INSERT INTO t (id, body) VALUES ('small', 's')");
    const sizes: number[] = [];
    const follower = new Follower(feed, ref);
    await feed.readAll(ref, [{ table: "t" }], async (batch) => {
      sizes.push(batch.ids.length);
      follower.apply(batch);
    });
    expect(sizes).toEqual([1, 1, 1, 1, 1, 1]);
    expect([...follower.rows.get("t")!].map(([id, { body }]) => [id, (body as string).length])).toEqual([
      ["r1", 2_000_001],
      ["r2", 2_000_001],
      ["r3", 2_000_001],
      ["r4", 2_000_001],
      ["r5", 2_000_001],
      ["small", 1],
    ]);
  });

  describe("schema changes", () => {
    test("writes before a table was renamed come under its new name", async () => {
      const { ref, sql } = await newBranch({ old: [{ name: "n", type: "int" }] });
      const follower = new Follower(feed, ref);
      await follower.start(["old"]);
      await sql("INSERT INTO old (id, n) VALUES ('a', 1)");
      await catalog.change(ref, async (editor) => {
        await editor.renameTable("old", "fresh");
        await editor.renameColumn("fresh", "n", "number");
      });
      await sql("INSERT INTO fresh (id, number) VALUES ('b', 2)");
      const before = follower.schemaVersion;
      expect(await follower.catchUp()).toBe(true);
      expect(follower.schemaVersion).toBe(before + 1);
      expect([...follower.rows.get("fresh")!].map(([id, { number }]) => [id, number])).toEqual([
        ["a", 1n],
        ["b", 2n],
      ]);
    });

    test("a table that was dropped and created again has another id, and returns only its own records", async () => {
      const { ref, sql } = await newBranch({ t: [] });
      const before = (await catalog.branch(ref)).tables.get("t")!.id;
      await sql("INSERT INTO t (id) VALUES ('a')");
      const follower = new Follower(feed, ref);
      await follower.start(["t"]);
      await sql("INSERT INTO t (id) VALUES ('b')");
      await catalog.change(ref, async (editor) => {
        await editor.dropTable("t");
        await editor.createTable("t");
      });
      await sql("INSERT INTO t (id) VALUES ('c')");
      const changes = await feed.readSince(ref, follower.position, follower.incarnation);
      expect(changes!.batches.map((batch) => [batch.table, batch.ids])).toEqual([["t", ["c"]]]);
      expect((await catalog.branch(ref)).tables.get("t")!.id).not.toBe(before);
    });

    test("a branch that was dropped is NOT_FOUND, and one created in its place must be read whole", async () => {
      const { ref } = await newBranch({ t: [] });
      const follower = new Follower(feed, ref);
      await follower.start(["t"]);
      await catalog.dropBranch(ref);
      await expect(feed.readSince(ref, follower.position, follower.incarnation)).rejects.toMatchObject({ code: "NOT_FOUND" });
      // A snapshot that is written meanwhile acknowledges what it holds.
      await feed.acknowledge(ref, follower.position, follower.incarnation);
      await catalog.createBranch(ref);
      expect(await feed.readSince(ref, follower.position, follower.incarnation)).toBeNull();
    });
  });

  describe("a branch that is dropped while it is read", () => {
    test("is NOT_FOUND, although the snapshot of the read still shows it", async () => {
      const { ref } = await newBranch({ t: [] });
      const follower = new Follower(feed, ref);
      await follower.start(["t"]);
      const transaction = fixture.engine.transaction.bind(fixture.engine);
      let dropped: Promise<void> | undefined;
      vi.spyOn(fixture.engine, "transaction").mockImplementationOnce((work, options) =>
        transaction((connection) => {
          const query: typeof connection.query = async (...given) => {
            const answer = await connection.query<never>(...given);
            dropped ??= catalog.dropBranch(ref);
            // The embedded database has one session: there the drop waits for the read.
            if (kind === "server") await dropped;
            return answer;
          };
          return work({ ...connection, query });
        }, options),
      );
      const read = feed.readSince(ref, follower.position, follower.incarnation);
      if (kind === "server") await expect(read).rejects.toMatchObject({ code: "NOT_FOUND" });
      else expect(await read).toMatchObject({ complete: true });
      await dropped;
    });

    test("is NOT_FOUND when the drop commits after the follower has asked that changes be kept", async () => {
      const { ref } = await newBranch({ t: [] });
      let read: Promise<unknown> | undefined;
      await fixture.engine.transaction(async (connection) => {
        await connection.query("DELETE FROM lodestone.branches WHERE database = $1 AND branch = $2", [ref.database, ref.branch]);
        read = new Follower(feed, ref).start(["t"]);
        read.catch(() => {}); // awaited below
        if (kind === "embedded") return;
        const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%lodestone.followers%'";
        await expect.poll(async () => (await fixture.engine.query(waiting)).rows).toHaveLength(1);
      });
      await expect(read).rejects.toMatchObject({ code: "NOT_FOUND" });
    });
  });

  describe("what is kept", () => {
    const outbox = async (ref: BranchRef): Promise<number> => {
      const { schemaName } = await catalog.branch(ref);
      const { rows } = await fixture.engine.query<{ n: number }>(`SELECT count(*)::int4 AS n FROM "${schemaName}"."lodestone.feed"`);
      return rows[0]!.n;
    };

    test("acknowledged changes are removed, and a position before them is too old", async () => {
      const { ref, sql } = await newBranch({ t: [] });
      const follower = new Follower(feed, ref);
      await follower.start(["t"]);
      const start = follower.position;
      await sql("INSERT INTO t (id) VALUES ('a'), ('b')");
      expect(await follower.catchUp()).toBe(true);
      expect(await outbox(ref)).toBe(2);
      await feed.acknowledge(ref, follower.position, follower.incarnation);
      expect(await outbox(ref)).toBe(0);
      expect(await feed.readSince(ref, start, follower.incarnation)).toBeNull();
      await sql("INSERT INTO t (id) VALUES ('c')");
      expect(await follower.catchUp()).toBe(true);
      expect([...follower.rows.get("t")!.keys()]).toEqual(["a", "b", "c"]);
    });

    test("a position later than the database, or malformed, is too old", async () => {
      const { ref } = await newBranch({ t: [] });
      const follower = new Follower(feed, ref);
      await follower.start(["t"]);
      expect(await feed.readSince(ref, "999999999:999999999:", follower.incarnation)).toBeNull();
      for (const bad of ["", "x", "1:2", "1:2:3:4", "1:2:/", "1:2:/3:4:/5", "1:2:'; DROP TABLE t --"]) {
        expect(await feed.readSince(ref, bad, follower.incarnation)).toBeNull();
      }
      await expect(feed.acknowledge(ref, "x", follower.incarnation)).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringContaining('"x" is not a position'),
      });
    });
  });

  test("reports changes of records, of the schema, and of branches that come and go", async () => {
    const { ref, sql } = await newBranch({ t: [] });
    const heard: string[] = [];
    let wake = (): void => {};
    const stop = feed.onChange(({ database, branch }) => {
      heard.push(`${database}:${branch}`);
      wake();
    });
    const expectToHear = async (change: () => Promise<unknown>): Promise<void> => {
      heard.length = 0;
      await change();
      const name = `${ref.database}:${ref.branch}`;
      while (!heard.includes(name)) await new Promise<void>((resolve) => (wake = resolve));
    };
    await expectToHear(() => sql("INSERT INTO t (id) VALUES ('a')"));
    await expectToHear(() => sql("UPDATE t SET id = id"));
    await expectToHear(() => sql("DELETE FROM t"));
    await expectToHear(() => catalog.change(ref, (editor) => editor.createTable("u")));
    await expectToHear(() => catalog.dropBranch(ref));
    stop();
  });
});
