/** Inserts that come together: one statement for all, and for each caller what he would have got alone. */
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { MemoryBudget } from "../../../../src/budget/memory-budget.ts";
import { getRecord } from "../../../../src/records/data/read/read-records.ts";
import { ConcurrentInserts } from "../../../../src/records/data/write/concurrent-inserts.ts";
import { insertRecord, replaceRecord } from "../../../../src/records/data/write/write-record.ts";
import type { Engine } from "../../../../src/records/engine/engine.ts";
import { engineForCaller } from "../../../../src/records/engine/engine-for-caller.ts";
import type { JsonObject, WriteOptions } from "../../../../src/records/requests.ts";
import { runs } from "../../../support/random-runs.ts";
import { describeOnBothEngines } from "../../../support/record-engines.ts";

const ALL = { columns: ["*"] };
/** However busy the machine is, they wait for each other. */
const PATIENT_MS = 3_600_000;
const memory = new MemoryBudget({ answerBytes: 1 << 28, totalBytes: 1 << 30 });

describeOnBothEngines("inserts that come together", (fixture) => {
  beforeAll(async () => {
    for (const name of ["notes", "alone"]) {
      await fixture.createTable(name, [
        { name: "title", type: "string" },
        { name: "code", type: "string", unique: true },
        { name: "plan", type: "string", defaultValue: "free" },
        { name: "tags", type: "multiple" },
        { name: "look", type: "vector", vector: { dimension: 2 } },
        { name: "before", type: "link", link: { table: name } },
      ]);
    }
  });

  /** An engine that counts what commits by itself; each caller has a share of his own. */
  function counting() {
    let statements = 0;
    const shared: Engine = {
      ...engineForCaller(fixture.engine, new AbortController().signal),
      get shared() {
        return shared;
      },
      query(text, values, options) {
        statements++;
        return fixture.engine.query(text, values, options);
      },
    };
    const caller = (name: string, signal = new AbortController().signal): Engine => engineForCaller(shared, signal, memory.open(name));
    return { caller, statements: () => statements };
  }

  function writer(inserts = new ConcurrentInserts(PATIENT_MS), table = "notes") {
    const at = () => [fixture.branch, fixture.table(table)] as const;
    return {
      insert: (engine: Engine, record: object, options: WriteOptions = ALL) =>
        insertRecord(engine, ...at(), record as JsonObject, options, inserts.write),
      replace: (engine: Engine, id: string, record: object, options: WriteOptions = ALL) =>
        replaceRecord(engine, ...at(), id, record as JsonObject, options, inserts.write),
    };
  }

  const stored = (id: string, table = "notes") => getRecord(fixture.engine, fixture.branch, fixture.table(table), id, ALL);

  test("are few statements, and each is answered with its own record", async () => {
    const { caller, statements } = counting();
    const { insert } = writer();
    const engine = caller("a");
    const records = Array.from({ length: 250 }, (_, i) => ({
      title: `Title ${i}`,
      tags: [`tag ${i}`, '"{,}'],
      ...(i % 3 === 0 ? {} : { look: [i, 0.1] }),
    }));
    const written = await Promise.all(records.map((record) => insert(engine, record)));
    // The first alone, then a hundred at once.
    expect(statements()).toBe(4);
    for (const [i, record] of records.entries()) {
      expect(written[i]).toMatchObject({ ...record, plan: "free", xata: { version: 0 } });
      expect(await stored(written[i]!.id as string)).toEqual(written[i]);
    }
  });

  test("are written alone one after the other, and by another caller beside them", async () => {
    const { caller, statements } = counting();
    const { insert } = writer();
    for (let i = 0; i < 3; i++) await insert(caller("a"), { title: "alone" });
    expect(statements()).toBe(3);
    await Promise.all(["a", "a", "a", "b"].map((name) => insert(caller(name), { title: name })));
    expect(statements()).toBe(3 + 2 + 1);
  });

  test("keep what was left out and what is null apart", async () => {
    const { caller } = counting();
    const { insert } = writer();
    const engine = caller("a");
    const plans = await Promise.all(Array.from({ length: 12 }, (_, i) => insert(engine, i % 2 === 0 ? {} : { plan: null })));
    expect(plans.map(({ plan }) => plan)).toEqual(Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? "free" : undefined)));
  });

  test("replace in the order in which they came, and say what is new", async () => {
    const { caller, statements } = counting();
    const { replace } = writer();
    const engine = caller("a");
    const ids = ["first", "x", "y", "x", "z", "x"];
    const written = await Promise.all(ids.map((id, i) => replace(engine, id, { title: `${i}` })));
    expect(written.map(({ created }) => created)).toEqual([true, true, true, false, true, false]);
    expect(await stored("x")).toMatchObject({ title: "5", xata: { version: 2 } });
    expect(statements()).toBe(4);
  });

  test("a refusal is that of its own record: the others are written", async () => {
    const { caller } = counting();
    const { insert } = writer();
    const engine = caller("a");
    await insert(engine, { id: "taken", code: "taken" });
    const results = await Promise.allSettled([
      insert(engine, { title: "first" }),
      insert(engine, { id: "good-1", code: "1" }),
      insert(engine, { id: "taken" }),
      insert(engine, { id: "good-2", code: "2" }),
      insert(engine, { title: "bad", code: "taken" }),
      insert(engine, { title: "bad", before: "nobody" }),
      insert(engine, { id: "good-3", before: "good-1" }),
    ]);
    expect(results.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "rejected",
      "fulfilled",
      "rejected",
      "rejected",
      "fulfilled",
    ]);
    const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    expect(reasons).toMatchObject([
      { code: "CONFLICT", message: expect.stringContaining('"taken"') },
      { code: "INVALID", message: expect.stringContaining('"code" is unique') },
      { code: "INVALID", message: expect.stringContaining('"before"') },
    ]);
    for (const id of ["good-1", "good-2", "good-3"]) expect(await stored(id)).toBeDefined();
  });

  test("whoever leaves before his turn writes nothing; whoever leaves later takes nobody with him", async () => {
    const { caller } = counting();
    const { insert } = writer();
    const left = new AbortController();
    const staying = caller("a");
    const first = insert(staying, { id: "stays-1" });
    const gone = insert(caller("a", left.signal), { id: "gone" });
    const others = Promise.all([first, insert(staying, { id: "stays-2" }), insert(staying, { id: "stays-3" })]);
    left.abort(new Error("left"));
    await expect(gone).rejects.toThrow("left");
    await others;
    await expect(stored("gone")).rejects.toMatchObject({ code: "NOT_FOUND" });

    const later = new AbortController();
    const leaving = { ...caller("a", later.signal) };
    const ahead = insert(staying, { id: "ahead" });
    const together = [insert(leaving, { id: "leaves" }), insert(staying, { id: "stays-4" })];
    const ended = Promise.allSettled(together);
    await ahead;
    later.abort(new Error("left"));
    await together[1];
    expect(await stored("stays-4")).toBeDefined();
    await ended;
  });

  test("do not wait for one that waits for another transaction", async () => {
    if (fixture.engine.isExclusive) return;
    const { caller } = counting();
    const { insert } = writer(new ConcurrentInserts());
    await fixture.engine
      .transaction(async (connection) => {
        await connection.query(
          `INSERT INTO "${fixture.branch.schemaName}"."${fixture.table("notes").physicalName}" ("id") VALUES ('locked')`,
        );
        const waits = insert(caller("a"), { id: "locked" });
        const isRefused = expect(waits).rejects.toMatchObject({ code: "CONFLICT" });
        await Promise.all([insert(caller("a"), { title: "goes on" }), insert(caller("a"), { title: "goes on" })]);
        return { isRefused };
      })
      .then(({ isRefused }) => isRefused);
  });

  test("end as they would one after the other", async () => {
    const record = fc.record(
      {
        id: fc.constantFrom("1", "2", "3", "4", "5", "6"),
        code: fc.constantFrom("a", "b", "c", "d", "e"),
        title: fc.string({ maxLength: 3 }).filter((text) => !text.includes("\u0000")),
        look: fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 })),
      },
      { requiredKeys: ["id"] },
    );
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 2, maxLength: 12 }), fc.boolean(), async (records, replaces) => {
        round++;
        // Nothing of an earlier round is met again.
        const own = records.map(({ id, code, ...rest }) => ({
          id: `${round}-${id}`,
          ...rest,
          ...(code === undefined ? {} : { code: `${round} ${code}` }),
        }));
        const engine = counting().caller("a");
        const write = (table: string) => {
          const to = writer(undefined, table);
          return (sent: (typeof own)[number]): Promise<unknown> =>
            (replaces ? to.replace(engine, sent.id, sent) : to.insert(engine, sent)).then(
              (written) => (replaces ? (written as { created: boolean }).created : "written"),
              (error) => error.message.replaceAll('"alone"', '"notes"'),
            );
        };
        const together = await Promise.all(own.map(write("notes")));
        const alone: unknown[] = [];
        for (const sent of own) alone.push(await write("alone")(sent));
        expect(together).toEqual(alone);
        for (const { id } of own) {
          const [a, b] = await Promise.all(
            ["notes", "alone"].map((table) =>
              stored(id, table).then(
                ({ xata, ...fields }) => [fields, (xata as JsonObject).version],
                () => null,
              ),
            ),
          );
          expect(a).toEqual(b);
        }
      }),
      { numRuns: runs(60) },
    );
  });
});
