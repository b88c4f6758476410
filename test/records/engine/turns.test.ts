/**
 * The embedded database with several callers: long statements are interrupted without losing the session,
 * make way for others, and complete.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemoryBudget } from "../../../src/budget/memory-budget.ts";
import { EmbeddedEngine } from "../../../src/records/engine/embedded/embedded-engine.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { engineForCaller } from "../../../src/records/engine/engine-for-caller.ts";
import { ENDLESS, untilEndlessRuns } from "../../support/endless-statement.ts";
import { copyTemplate } from "../../support/server-template.ts";
import { UNINTERRUPTIBLE } from "../sql/attacks.ts";

describe("the embedded engine, for several callers", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-turns-"));
  const memory = new MemoryBudget({ answerBytes: 1 << 20, totalBytes: 1 << 24 });
  let engine: EmbeddedEngine;
  beforeAll(async () => {
    copyTemplate(dataDir);
    engine = await EmbeddedEngine.open({ dataDir, statementTimeoutMs: 3_600_000, sqlTimeoutMs: 3_600_000 });
    await engine.query("CREATE TABLE things (n int4)");
  });
  afterAll(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const of = (name: string, signal = new AbortController().signal): Engine => engineForCaller(engine, signal, memory.open(name));
  /** A prepared statement exists as long as the session lives. */
  const mark = () => engine.query("PREPARE alive AS SELECT 1");
  const isSameSession = async () => (await engine.query("SELECT FROM pg_prepared_statements WHERE name = 'alive'")).rowCount === 1;

  it("ends a statement whose caller has left, and keeps the session", async () => {
    await mark();
    const leaving = new AbortController();
    const gone = new Error("gone");
    const work = expect(of("a", leaving.signal).query(ENDLESS)).rejects.toBe(gone);
    await untilEndlessRuns(dataDir);
    leaving.abort(gone);
    await work;
    expect(await isSameSession()).toBe(true);
  });

  it("ends a statement at its time limit, with nothing done, and keeps the session", async () => {
    const work = engine.transaction(
      async (connection) => {
        await connection.query("INSERT INTO things VALUES (1)");
        await connection.query(ENDLESS);
      },
      { timeoutMs: 300 },
    );
    await expect(work).rejects.toMatchObject({ code: "TIMEOUT" });
    expect((await engine.query("SELECT FROM things")).rowCount).toBe(0);
    expect(await isSameSession()).toBe(true);
  });

  it("an interruption that comes between two statements ends neither the next transaction nor its commit", async () => {
    for (let i = 0; i < 20; i++) {
      const work = engine.transaction((connection) => connection.query("SELECT pg_sleep(0)"), { timeoutMs: 1 }).catch(() => {});
      await work;
      await engine.query("INSERT INTO things SELECT generate_series(1, 200)");
    }
    expect((await engine.query("SELECT FROM things")).rowCount).toBe(4_000);
    await engine.query("DELETE FROM things");
  });

  it("a long unit makes way for others, is run again, and counts once", async () => {
    let runs = 0;
    const budget = memory.open("heavy");
    const isOver: string[] = [];
    let begin = (): void => {};
    const hasBegun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const heavy = engineForCaller(engine, new AbortController().signal, budget)
      .transaction(async (connection) => {
        runs++;
        await connection.query("SELECT repeat('x', 200000)");
        await connection.query("INSERT INTO things VALUES (7)");
        begin();
        // The first run must not end before somebody else has come; the second one does.
        await connection.query(`SELECT count(*) FROM generate_series(1, ${runs === 1 ? "1e12" : "10"})`);
      })
      .then(() => isOver.push("heavy"));
    await hasBegun;
    await of("light").query("SELECT 1 AS n");
    isOver.push("light");
    await heavy;
    expect(isOver).toEqual(["light", "heavy"]);
    expect(runs).toBe(2);
    expect((await engine.query("SELECT FROM things")).rowCount).toBe(1);
    // The charges of the first run were given back.
    expect(budget.bytes).toBeLessThan(300_000);
    expect(await isSameSession()).toBe(true);
  });

  it("a unit that computes for longer than others may have to wait is ended, whatever its own limit", async () => {
    const heavy = expect(of("endless").query(ENDLESS)).rejects.toMatchObject({
      code: "TIMEOUT",
      message: expect.stringContaining("others waited"),
    });
    let isOver = false;
    void heavy.then(() => {
      isOver = true;
    });
    for (let served = 0; !isOver; served++) {
      await of("light").query("SELECT 1");
      if (served > 100_000) throw new Error("It is not ended.");
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await heavy;
    expect(await isSameSession()).toBe(true);
  });

  it("a statement that cannot be interrupted is ended when others wait, and is not run again", { timeout: 120_000 }, async () => {
    const ownDir = mkdtempSync(join(tmpdir(), "lodestone-deaf-"));
    copyTemplate(ownDir);
    const own = await EmbeddedEngine.open({ dataDir: ownDir, statementTimeoutMs: 3_600_000, sqlTimeoutMs: 3_600_000 });
    try {
      const ofOwn = (name: string): Engine => engineForCaller(own, new AbortController().signal, memory.open(name));
      let isOver = false;
      await own.query("PREPARE alive AS SELECT 1");
      const deaf = expect(ofOwn("deaf").query(UNINTERRUPTIBLE))
        .rejects.toMatchObject({ code: "TIMEOUT" })
        .finally(() => {
          isOver = true;
        });
      while (!isOver) {
        await ofOwn("light").query("SELECT 1");
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      await deaf;
      expect((await own.query("SELECT FROM pg_prepared_statements WHERE name = 'alive'")).rowCount).toBe(0);
    } finally {
      await own.close();
      rmSync(ownDir, { recursive: true, force: true });
    }
  });

  it("a caller who is alone is not interrupted", async () => {
    // An engine of its own, on which nobody else has been seen.
    const ownDir = mkdtempSync(join(tmpdir(), "lodestone-alone-"));
    copyTemplate(ownDir);
    const own = await EmbeddedEngine.open({ dataDir: ownDir, statementTimeoutMs: 3_600_000, sqlTimeoutMs: 3_600_000 });
    try {
      let runs = 0;
      const alone = engineForCaller(own, new AbortController().signal, memory.open("alone"));
      await Promise.all(
        [1, 2, 3].map(() =>
          alone.transaction(async (connection) => {
            runs++;
            await connection.query("SELECT count(*) FROM generate_series(1, 400000)");
          }),
        ),
      );
      expect(runs).toBe(3);
    } finally {
      await own.close();
      rmSync(ownDir, { recursive: true, force: true });
    }
  });
});
