/**
 * What only a server has: overlapping transactions. A feed that went by numbers alone would skip them or see
 * them by half.
 */
import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { RecordFeed } from "../../../src/records/feed/change-feed.ts";
import type { BranchRef } from "../../../src/records/schema.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { runs } from "../../support/random-runs.ts";
import { describeWith } from "../../support/requirements.ts";
import { Follower } from "./follower.ts";

describeWith("postgresql", "The change feed under transactions that overlap", (bin) => {
  let server: TestPostgres;
  let url: string;
  let engine: Engine;
  let catalog: Catalog;
  let feed: RecordFeed;
  let branches = 0;
  const clients: pg.Client[] = [];

  beforeAll(async () => {
    server = await startPostgres(bin);
    url = await server.createDatabase();
    engine = await openEngine({ databaseUrl: url });
    catalog = await Catalog.open(engine);
    feed = await RecordFeed.open(engine, catalog, { trimIntervalMs: 0 });
  });
  afterAll(async () => {
    for (const client of clients) await client.end();
    await feed.close();
    await catalog.close();
    await engine.close();
    await server.stop();
  });

  const newBranch = async (): Promise<BranchRef> => {
    const ref = { database: "order", branch: `b${branches++}` };
    await catalog.createBranch(ref);
    await catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
    return ref;
  };
  /** A session of another program: psql, another service. */
  const newClient = async (ref: BranchRef): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    clients.push(client);
    await client.query(`SET search_path = "${(await catalog.branch(ref)).schemaName}"`);
    return client;
  };
  const stored = async (client: pg.Client): Promise<[string, bigint][]> =>
    (await client.query("SELECT id, n FROM t ORDER BY id")).rows.map((row) => [row.id, BigInt(row.n)]);
  const followed = (follower: Follower): [string, unknown][] =>
    [...(follower.rows.get("t") ?? [])].map(([id, { n }]): [string, unknown] => [id, n]).sort(([a], [b]) => (a < b ? -1 : 1));

  test("a transaction that began early and commits late is delivered, and does not delay those after it", async () => {
    const ref = await newBranch();
    const [early, late] = [await newClient(ref), await newClient(ref)];
    const follower = new Follower(feed, ref);
    await follower.start(["t"]);
    await early.query("BEGIN");
    await early.query("INSERT INTO t (id, n) VALUES ('early', 1)");
    await late.query("INSERT INTO t (id, n) VALUES ('late', 2)");
    expect(await follower.catchUp()).toBe(true);
    expect(followed(follower)).toEqual([["late", 2n]]);
    await feed.acknowledge(ref, follower.position, follower.incarnation);
    await late.query("UPDATE t SET n = 3");
    expect(await follower.catchUp()).toBe(true);
    await feed.acknowledge(ref, follower.position, follower.incarnation);
    await early.query("COMMIT");
    expect(await follower.catchUp()).toBe(true);
    expect(followed(follower)).toEqual([
      ["early", 1n],
      ["late", 3n],
    ]);
    expect(follower.partialReads).toBe(0);
  });

  test("a transaction that was open while the table was read whole is delivered when it commits", async () => {
    const ref = await newBranch();
    const [open, other] = [await newClient(ref), await newClient(ref)];
    await other.query("INSERT INTO t (id, n) VALUES ('a', 1), ('b', 1)");
    await open.query("BEGIN");
    await open.query("UPDATE t SET n = 2 WHERE id = 'a'");
    await open.query("INSERT INTO t (id, n) VALUES ('c', 2)");
    const follower = new Follower(feed, ref);
    await follower.start(["t"]);
    expect(followed(follower)).toEqual([
      ["a", 1n],
      ["b", 1n],
    ]);
    await open.query("COMMIT");
    expect(await follower.catchUp()).toBe(true);
    expect(followed(follower)).toEqual([
      ["a", 2n],
      ["b", 1n],
      ["c", 2n],
    ]);
  });

  test("what a second follower of a process needs is kept, however long that is silent, and no longer once it lets go", async () => {
    const ref = await newBranch();
    const client = await newClient(ref);
    const second = feed.forFollower("second");
    const followers = [new Follower(feed, ref), new Follower(second, ref)] as const;
    const kept = async (): Promise<number> => (await client.query('SELECT count(*)::int4 AS n FROM "lodestone.feed"')).rows[0].n;
    for (const follower of followers) await follower.start(["t"]);
    await client.query("INSERT INTO t (id, n) VALUES ('a', 1)");
    for (const follower of followers) expect(await follower.catchUp()).toBe(true);
    await client.query("UPDATE lodestone.followers SET seen_at = now() - interval '1 hour'");
    await client.query("DELETE FROM lodestone.processes");
    const { incarnation } = followers[0];
    await feed.acknowledge(ref, followers[0].position, incarnation);
    expect(await kept()).toBe(1);
    expect(await feed.backlogBytes(ref)).toBeGreaterThan(0);
    await second.release(incarnation);
    await client.query("INSERT INTO t (id, n) VALUES ('b', 1)");
    expect(await followers[0].catchUp()).toBe(true);
    await feed.acknowledge(ref, followers[0].position, incarnation);
    expect(await kept()).toBe(0);
    expect(await followers[1].catchUp()).toBe(false);
  });

  test("savepoints that are rolled back leave nothing; the rest of their transaction is delivered", async () => {
    const ref = await newBranch();
    const client = await newClient(ref);
    const follower = new Follower(feed, ref);
    await follower.start(["t"]);
    await client.query("BEGIN");
    await client.query("INSERT INTO t (id, n) VALUES ('kept', 1)");
    await client.query("SAVEPOINT s");
    await client.query("INSERT INTO t (id, n) VALUES ('gone', 1)");
    await client.query("ROLLBACK TO s");
    await client.query("SAVEPOINT s2");
    await client.query("INSERT INTO t (id, n) VALUES ('kept too', 1)");
    await client.query("RELEASE s2");
    await client.query("COMMIT");
    expect(await follower.catchUp()).toBe(true);
    expect(followed(follower)).toEqual([
      ["kept", 1n],
      ["kept too", 1n],
    ]);
  });

  test("rows that another process still needs are kept; rows that nobody needs are removed, whoever acknowledges", async () => {
    const ref = await newBranch();
    const client = await newClient(ref);
    const second = await RecordFeed.open(engine, catalog, { trimIntervalMs: 0 });
    const outbox = async (): Promise<number> => Number((await client.query('SELECT count(*) AS n FROM "lodestone.feed"')).rows[0].n);
    try {
      const [fast, slow] = [new Follower(feed, ref), new Follower(second, ref)];
      await fast.start(["t"]);
      await slow.start(["t"]);
      await client.query("INSERT INTO t (id, n) VALUES ('a', 1)");
      await fast.catchUp();
      await feed.acknowledge(ref, fast.position, fast.incarnation);
      expect(await outbox()).toBe(1);
      expect(await slow.catchUp()).toBe(true);
      expect(followed(slow)).toEqual([["a", 1n]]);
      await second.acknowledge(ref, slow.position, slow.incarnation);
      expect(await outbox()).toBe(0);

      // The slow one has been silent for long: it no longer counts, and learns that it has to read everything
      // again.
      await client.query("INSERT INTO t (id, n) VALUES ('b', 1)");
      await client.query("UPDATE lodestone.followers SET seen_at = now() - interval '1 day'");
      await fast.catchUp();
      await feed.acknowledge(ref, fast.position, fast.incarnation);
      expect(await outbox()).toBe(0);
      expect(await slow.catchUp()).toBe(false);
      await slow.start(["t"]);
      expect(followed(slow)).toEqual(followed(fast));
    } finally {
      await second.close();
    }
  });

  test("a process that follows many branches says in one row that it is there, and that row alone keeps what it needs", async () => {
    const refs = [await newBranch(), await newBranch(), await newBranch()];
    const second = await RecordFeed.open(engine, catalog, { trimIntervalMs: 0, heartbeatMs: 200 });
    const seen = async (table: string): Promise<string[]> =>
      (await engine.query<{ seen: string }>(`SELECT seen_at::text AS seen FROM lodestone.${table} ORDER BY 1`)).rows.map((row) => row.seen);
    const twoBeats = async (): Promise<void> => {
      for (let beats = 0; beats < 2; beats++) {
        const processes = await seen("processes");
        await expect.poll(() => seen("processes")).not.toEqual(processes);
      }
    };
    try {
      // Holds the other one back.
      await new Follower(feed, refs[1]!).start(["t"]);
      await newBranch();
      const slow = new Follower(second, refs[0]!);
      await slow.start(["t"]);
      for (const ref of refs.slice(1)) await new Follower(second, ref).start(["t"]);
      // The first removes what nobody needs.
      await twoBeats();
      const followers = await seen("followers");
      await twoBeats();
      expect(await seen("processes")).toHaveLength(1);
      expect(await seen("followers")).toEqual(followers);

      await engine.query("UPDATE lodestone.followers SET seen_at = now() - interval '1 day'");
      const client = await newClient(refs[0]!);
      const fast = new Follower(feed, refs[0]!);
      await fast.start(["t"]);
      await client.query("INSERT INTO t (id, n) VALUES ('a', 1)");
      await fast.catchUp();
      await feed.acknowledge(refs[0]!, fast.position, fast.incarnation);
      expect(await slow.catchUp()).toBe(true);
      expect(followed(slow)).toEqual([["a", 1n]]);
    } finally {
      await second.close();
    }
  });

  test("the followers of every server are woken: by the server that wrote, by any other commit, and finally by polling", async () => {
    const ref = await newBranch();
    const client = await newClient(ref);
    const other = await openEngine({ databaseUrl: url });
    const otherCatalog = await Catalog.open(other);
    const otherFeed = await RecordFeed.open(other, otherCatalog);
    const heard = (followed: RecordFeed): Promise<void> =>
      new Promise((resolve) => {
        const stop = followed.onChange((changed) => {
          if (changed.branch !== ref.branch) return;
          stop();
          resolve();
        });
      });
    try {
      const [here, there] = [heard(feed), heard(otherFeed)];
      feed.changed(ref);
      await Promise.all([here, there]);
      const byTrigger = heard(otherFeed);
      await client.query("INSERT INTO t (id) VALUES ('a')");
      await byTrigger;
      // A server that commits, and dies before it notifies.
      const byLooking = heard(otherFeed);
      await engine.query(`INSERT INTO "${(await catalog.branch(ref)).schemaName}".t (id) VALUES ('b')`);
      await byLooking;
    } finally {
      await otherFeed.close();
      await otherCatalog.close();
      await other.close();
    }
  });

  describe("whatever concurrent writers do", () => {
    type Step = {
      readonly writer: number;
      readonly action: "begin" | "commit" | "rollback" | "insert" | "update" | "delete" | "deleteAll";
      readonly id: number;
    };
    const step: fc.Arbitrary<Step> = fc.record({
      writer: fc.nat(3),
      action: fc.constantFrom("begin", "commit", "rollback", "insert", "insert", "update", "update", "delete", "deleteAll"),
      id: fc.nat(9),
    });
    /** What the follower does between the steps. */
    const script = fc.array(
      fc.oneof({ weight: 5, arbitrary: step }, { weight: 2, arbitrary: fc.constantFrom("read" as const, "acknowledge" as const) }),
      {
        minLength: 10,
        maxLength: 60,
      },
    );

    test("the follower ends with exactly what is stored", async () => {
      const ref = await newBranch();
      const writers = await Promise.all(Array.from({ length: 4 }, () => newClient(ref)));
      const reader = await newClient(ref);
      let n = 0;
      // A writer that waits for another's lock would wait for ever, since this test is one thread.
      for (const writer of writers) await writer.query("SET lock_timeout = '1ms'");
      const perform = async ({ writer, action, id }: Step, open: boolean[]): Promise<void> => {
        const client = writers[writer]!;
        const statement = {
          begin: "BEGIN",
          commit: "COMMIT",
          rollback: "ROLLBACK",
          insert: `INSERT INTO t (id, n) VALUES ('r${id}', ${n++}) ON CONFLICT (id) DO UPDATE SET n = excluded.n`,
          update: `UPDATE t SET n = ${n++} WHERE id IN ('r${id}', 'r${(id + 1) % 10}')`,
          delete: `DELETE FROM t WHERE id = 'r${id}'`,
          deleteAll: "DELETE FROM t",
        }[action];
        if (action === "begin" ? open[writer] : ["commit", "rollback"].includes(action) && !open[writer]) return;
        try {
          await client.query(statement);
          if (action === "begin") open[writer] = true;
          if (action === "commit" || action === "rollback") open[writer] = false;
        } catch (error) {
          if ((error as { code?: string }).code !== "55P03") throw error; // it was locked: the whole transaction is over
          if (open[writer]) await client.query("ROLLBACK");
          open[writer] = false;
        }
      };
      await fc.assert(
        fc.asyncProperty(script, async (steps) => {
          const open = [false, false, false, false];
          const follower = new Follower(feed, ref);
          await follower.start(["t"]);
          for (const s of steps) {
            if (s === "read") expect(await follower.catchUp()).toBe(true);
            else if (s === "acknowledge") await feed.acknowledge(ref, follower.position, follower.incarnation);
            else await perform(s, open);
          }
          for (const [i, isOpen] of open.entries()) if (isOpen) await writers[i]!.query(i % 2 === 0 ? "COMMIT" : "ROLLBACK");
          expect(await follower.catchUp()).toBe(true);
          expect(followed(follower)).toEqual(await stored(reader));
        }),
        { numRuns: runs(40), verbose: 1 },
      );
    });

    test("a follower that reads while eight sessions write ends with exactly what is stored", async () => {
      const ref = await newBranch();
      const writers = await Promise.all(Array.from({ length: 8 }, () => newClient(ref)));
      const follower = new Follower(feed, ref);
      await follower.start(["t"]);
      let writing = true;
      const write = async (client: pg.Client, writer: number): Promise<void> => {
        for (let i = 0; i < 60; i++) {
          const id = `w${writer}-${i}`;
          try {
            await client.query("BEGIN");
            await client.query("INSERT INTO t (id, n) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = excluded.n", [id, i]);
            if (i % 3 === 0) await client.query("SELECT pg_sleep(random() * 0.005)");
            if (i % 5 === 0) await client.query("DELETE FROM t WHERE id = $1", [`w${(writer + 1) % 8}-${i - 5}`]);
            await client.query(i % 7 === 6 ? "ROLLBACK" : "COMMIT");
          } catch (error) {
            if ((error as { code?: string }).code !== "40P01") throw error; // a deadlock between writers
            await client.query("ROLLBACK");
          }
        }
      };
      const done = Promise.all(writers.map(write)).finally(() => {
        writing = false;
      });
      while (writing) {
        expect(await follower.catchUp()).toBe(true);
        await feed.acknowledge(ref, follower.position, follower.incarnation);
      }
      await done;
      expect(await follower.catchUp()).toBe(true);
      expect(followed(follower)).toEqual(await stored(writers[0]!));
      expect(follower.reads).toBeGreaterThan(3);
    });
  });
});
