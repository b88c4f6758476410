/** Work for a caller who goes away: what waits is not begun, reads are ended, writes run to completion. */
import { setMaxListeners } from "node:events";
import { expect, it } from "vitest";
import { MemoryBudget } from "../../../src/budget/memory-budget.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { engineForCaller } from "../../../src/records/engine/engine-for-caller.ts";
import { ENDLESS, untilEndlessRuns } from "../../support/endless-statement.ts";
import { describeOnBothEngines, type RecordFixture } from "../../support/record-engines.ts";

const gone = new Error("the caller has gone");

/** Holds every connection of the engine in a transaction until `release` is called: all, or the first ones. */
async function holdAll(engine: Engine): Promise<{ release(count?: number): Promise<unknown> }> {
  const held = Array.from(
    { length: engine.isExclusive ? 1 : 10 },
    () =>
      new Promise<{ done: Promise<void>; letGo: () => void }>((resolve, reject) => {
        const done: Promise<void> = engine.transaction(async (connection) => {
          await connection.query("SELECT 1");
          await new Promise<void>((letGo) => {
            resolve({ done, letGo });
          });
        });
        done.catch(reject);
      }),
  );
  const transactions = await Promise.all(held);
  return {
    release(count = transactions.length) {
      const released = transactions.slice(0, count);
      for (const { letGo } of released) letGo();
      return Promise.all(released.map(({ done }) => done));
    },
  };
}

async function untilRunning({ engine, dataDir }: RecordFixture): Promise<void> {
  if (dataDir !== undefined) return untilEndlessRuns(dataDir);
  while ((await running(engine)) === 0) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function running(engine: Engine): Promise<number> {
  const { rows } = await engine.query<{ n: number }>(
    "SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%1e12%' AND pid <> pg_backend_pid()",
  );
  return rows[0]!.n;
}

describeOnBothEngines("an engine for many callers", (fixture) => {
  const memory = new MemoryBudget({ answerBytes: 1 << 20, totalBytes: 1 << 24 });
  const of = (name: string): Engine => engineForCaller(fixture.engine, new AbortController().signal, memory.open(name));

  it("takes turns between callers: one who sent many statements does not delay the next caller's", async () => {
    const { engine } = fixture;
    await engine.query("CREATE TABLE turns (n int)");
    const held = await holdAll(engine);
    const order: string[] = [];
    const send = (name: string, text: string): Promise<unknown> =>
      of(name)
        .query(text)
        .then(() => order.push(name));
    const all = Array.from({ length: 60 }, (_, i) => send("greedy", `INSERT INTO turns VALUES (${i})`));
    all.push(...Array.from({ length: 3 }, () => send("modest", "SELECT 1")));
    // One connection: of several, the operating system may let one wait while the others go on.
    await held.release(1);
    await Promise.all(all);
    await held.release();
    expect(order.filter((name) => name === "greedy")).toHaveLength(60);
    expect(order.lastIndexOf("modest")).toBeLessThan(30);
    // A caller's own statements keep their order if there is one session.
    if (engine.isExclusive) {
      const { rows } = await engine.query<{ n: number }>("SELECT n FROM turns");
      expect(rows.map(({ n }) => n)).toEqual(Array.from({ length: 60 }, (_, i) => i));
    }
  });

  it("keeps a place for others on a server, whatever one caller has running", async () => {
    const { engine } = fixture;
    if (engine.isExclusive) return;
    const leaving = new AbortController();
    setMaxListeners(30, leaving.signal);
    const hog = engineForCaller(engine, leaving.signal, memory.open("hog"));
    const endless = Array.from({ length: 20 }, () => hog.query(ENDLESS).catch((error: unknown) => error));
    await untilRunning(fixture);
    expect((await of("modest").query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
    leaving.abort(gone);
    expect(new Set(await Promise.all(endless))).toEqual(new Set([gone]));
  });
});

describeOnBothEngines("an engine for a caller who goes away", (fixture) => {
  const count = async () => Number((await fixture.engine.query<{ n: bigint }>("SELECT count(*) AS n FROM written")).rows[0]!.n);

  it("does not begin what waits for its turn", async () => {
    const { engine } = fixture;
    await engine.query("CREATE TABLE written (n int4)");
    const hold = await holdAll(engine);
    const [staying, leaving] = [new AbortController(), new AbortController()];
    const insert = "INSERT INTO written VALUES ($1)";
    const waiting = [
      engineForCaller(engine, leaving.signal).query(insert, [1]),
      engineForCaller(engine, staying.signal).query(insert, [2]),
      engineForCaller(engine, leaving.signal).transaction((connection) => connection.query(insert, [3])),
    ];
    const settled = Promise.allSettled(waiting);
    leaving.abort(gone);
    // The embedded queue drops it at once, a server's pool when its turn comes.
    if (engine.isExclusive) await expect(waiting[0]).rejects.toBe(gone);
    await hold.release();
    expect((await settled).map((outcome) => (outcome.status === "rejected" ? outcome.reason : "done"))).toEqual([gone, "done", gone]);
    expect((await engine.query("SELECT n FROM written")).rows).toEqual([{ n: 2 }]);
    await expect(engineForCaller(engine, leaving.signal).query(insert, [4])).rejects.toBe(gone);
    expect(await count()).toBe(1);
  });

  it.each(["a SELECT", "a transaction that only reads", "a transaction of which nothing is kept"])(
    "ends %s that runs, and serves the next",
    async (what) => {
      const { engine } = fixture;
      const leaving = new AbortController();
      const caller = engineForCaller(engine, leaving.signal);
      const options = what.endsWith("reads") ? { readOnly: true } : { abandonable: true };
      const work = what === "a SELECT" ? caller.query(ENDLESS) : caller.transaction((connection) => connection.query(ENDLESS), options);
      const refused = expect(work).rejects.toBe(gone);
      await untilRunning(fixture);
      leaving.abort(gone);
      await refused;
      expect((await engine.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
      if (!engine.isExclusive) while ((await running(engine)) > 0) await new Promise((resolve) => setTimeout(resolve, 50));
    },
  );

  it("lets a write run to its end, and commits it", async () => {
    const { engine } = fixture;
    const before = await count();
    const leaving = new AbortController();
    const caller = engineForCaller(engine, leaving.signal);
    await caller.transaction(async (connection) => {
      await connection.query("INSERT INTO written VALUES (10)");
      leaving.abort(gone);
      await connection.query("INSERT INTO written SELECT generate_series(11, 100000)");
    });
    expect(await count()).toBe(before + 99_991);
    const second = new AbortController();
    const statement = engineForCaller(engine, second.signal).query("INSERT INTO written SELECT generate_series(1, 100000)");
    await new Promise((resolve) => setTimeout(resolve, 20));
    second.abort(gone);
    // Whether it had begun depends on scheduling; it is there completely or not at all.
    const isDone = await statement.then(
      () => true,
      (error) => {
        expect(error).toBe(gone);
        return false;
      },
    );
    expect(await count()).toBe(before + 99_991 + (isDone ? 100_000 : 0));
  });

  it("ends nothing of other callers, nor of the engine", async () => {
    const { engine } = fixture;
    const leaving = new AbortController();
    const caller = engineForCaller(engine, leaving.signal);
    expect((await caller.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
    leaving.abort(gone);
    expect((await engine.query("SELECT 2 AS n")).rows).toEqual([{ n: 2 }]);
    expect(caller.shared).toBe(engine);
  });
});
