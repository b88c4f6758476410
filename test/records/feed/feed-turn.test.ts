/** The feed beside a caller who keeps the embedded database permanently busy. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { RecordFeed } from "../../../src/records/feed/change-feed.ts";
import { FeedTurn } from "../../../src/records/feed/feed-turn.ts";
import { describeOnEmbeddedEngine } from "../../support/record-engines.ts";
import { Follower } from "./follower.ts";

/** More than one page of the outbox, hence more than a read of fixed size. */
const STATEMENT_ROWS = 5_000;
const DIMENSION = 64;
/** A follower that has not caught up by then never does. */
const MOST_STATEMENTS = 25;

describeOnEmbeddedEngine("The change feed beside a writer without pause", (fixture) => {
  let catalog: Catalog;
  let feed: RecordFeed;

  beforeAll(async () => {
    catalog = await Catalog.open(fixture.engine);
    feed = await RecordFeed.open(fixture.engine, catalog, { trimIntervalMs: 0 });
  });
  afterAll(async () => {
    await feed.close();
    await catalog.close();
  });

  test("ends a first reading, and then follows", async () => {
    const ref = { database: "turns", branch: "main" };
    await catalog.createBranch(ref);
    const { schemaName } = await catalog.change(ref, async (editor) => {
      await editor.createTable("t", [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }]);
    });
    let begun = 0;
    let written = 0;
    let isWatched = true;
    const writer = async (): Promise<void> => {
      while (isWatched && begun < MOST_STATEMENTS) {
        const first = begun++ * STATEMENT_ROWS;
        await fixture.engine.transaction((connection) =>
          connection.query(
            `INSERT INTO "${schemaName}"."t" (id, v) SELECT 'r' || n, ARRAY(SELECT random() FROM generate_series(1, ${DIMENSION}) AS i WHERE i + n > n) FROM generate_series($1::int, $2::int) AS n`,
            [first, first + STATEMENT_ROWS - 1],
          ),
        );
        written++;
      }
    };
    await fixture.engine.query(
      `INSERT INTO "${schemaName}"."t" (id, v) SELECT 's' || n, array_fill(n, ARRAY[${DIMENSION}])::real[] FROM generate_series(1, 5000) AS n`,
    );
    // Two of them, so that the next statement always waits when one ends.
    const writers = Promise.all([writer(), writer()]);
    const follower = new Follower(feed, ref);
    await follower.start(["t"]);
    const whenRead = written;
    for (let isComplete = false; !isComplete; ) {
      const changes = await feed.readSince(ref, follower.position, follower.incarnation);
      for (const batch of changes!.batches) follower.apply(batch);
      follower.position = changes!.position;
      isComplete = changes!.complete;
    }
    const whenFollowed = written;
    isWatched = false;
    await writers;
    expect(whenRead).toBeLessThan(MOST_STATEMENTS - 2);
    expect(whenFollowed).toBeLessThan(MOST_STATEMENTS - 2);
    expect(await follower.catchUp()).toBe(true);
    expect(follower.rows.get("t")?.size).toBe(5_000 + written * STATEMENT_ROWS);
  });
});

test("A turn of the feed is three times as long as it waited, within bounds", () => {
  let now = 0;
  let computed = 0;
  const turn = (waitedMs: number, isShared = false): FeedTurn =>
    new FeedTurn(waitedMs, isShared, { now: () => now, computed: () => computed });
  const passes = (ms: number, computedMs = ms): void => {
    now += ms;
    computed += computedMs;
  };
  expect(turn(0).goesOn(1)).toBe(false);
  const short = turn(100);
  passes(299);
  expect(short.goesOn(1)).toBe(true);
  passes(1);
  expect(short.goesOn(1)).toBe(false);
  const long = turn(60_000);
  passes(1_999);
  expect(long.goesOn(1)).toBe(true);
  passes(1);
  expect(long.goesOn(1)).toBe(false);
  const onSlowMachine = turn(60_000);
  passes(19_990, 1_999);
  expect(onSlowMachine.goesOn(1)).toBe(true);
  passes(10, 1);
  expect(onSlowMachine.goesOn(1)).toBe(false);
  const besideSearches = turn(60_000);
  passes(1_999, 8_000);
  expect(besideSearches.goesOn(1)).toBe(true);
  const besideCallers = turn(60_000, true);
  passes(249);
  expect(besideCallers.goesOn(1)).toBe(true);
  passes(1);
  expect(besideCallers.goesOn(1)).toBe(false);
  const much = turn(1_000);
  expect(much.goesOn(47_999_999)).toBe(true);
  expect(much.goesOn(1)).toBe(false);
});
