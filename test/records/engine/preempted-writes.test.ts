import { expect, test } from "vitest";
import { MemoryBudget } from "../../../src/budget/memory-budget.ts";
import { getRecord } from "../../../src/records/data/read/read-records.ts";
import { runTransaction } from "../../../src/records/data/transaction/record-transaction.ts";
import { insertRecords } from "../../../src/records/data/write/bulk-insert.ts";
import { insertRecord, updateRecord } from "../../../src/records/data/write/write-record.ts";
import { PREEMPTED } from "../../../src/records/engine/embedded/unit.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { engineForCaller } from "../../../src/records/engine/engine-for-caller.ts";
import { runSql } from "../../../src/records/sql/run-sql.ts";
import { describeOnEmbeddedEngine } from "../../support/record-engines.ts";

/** Values of a size at which they are encoded in pieces, and sent as buffers of their own. */
const TEXT = 'ä🂡\\"x'.repeat(60_000);
const JSON_VALUE = { texts: Array.from({ length: 40 }, (_, i) => `${i} ${"ö".repeat(5_000)}`) };
const VECTOR = Array.from({ length: 4_096 }, (_, i) => (i % 256) / 4);
const RECORD = { s: TEXT, j: JSON_VALUE, v: VECTOR };

/** A caller whose every unit of work is preempted when it has done everything, and then run again. */
function preempted(engine: Engine): Engine {
  const memory = new MemoryBudget({ answerBytes: 1 << 28, totalBytes: 1 << 30 });
  const transaction: Engine["transaction"] = (work, options) => {
    let isFirst = true;
    return engine.transaction(async (connection) => {
      const result = await work(connection);
      if (isFirst) {
        isFirst = false;
        throw PREEMPTED;
      }
      return result;
    }, options);
  };
  const query: Engine["query"] = (text, values, options) => transaction((connection) => connection.query(text, values, options));
  return engineForCaller(
    { ...engineForCaller(engine, new AbortController().signal), transaction, query },
    new AbortController().signal,
    memory.open("a"),
  );
}

describeOnEmbeddedEngine("a write that is preempted", (fixture) => {
  const table = () => fixture.table("t");
  const stored = async (id: string): Promise<unknown> => (await getRecord(fixture.engine, fixture.branch, table(), id))!;

  test("sends the same values when it runs again, however large", async () => {
    await fixture.createTable("t", [
      { name: "s", type: "text" },
      { name: "j", type: "json" },
      { name: "v", type: "vector", vector: { dimension: VECTOR.length } },
    ]);
    const engine = preempted(fixture.engine);
    const { branch } = fixture;
    const expected = expect.objectContaining({ s: TEXT, v: VECTOR });

    await insertRecord(engine, branch, table(), { id: "one", ...RECORD });
    expect(await stored("one")).toEqual(expected);

    await insertRecords(
      engine,
      branch,
      table(),
      Array.from({ length: 20 }, (_, i) => ({ id: `bulk${i}`, ...RECORD })),
    );
    for (let i = 0; i < 20; i++) expect(await stored(`bulk${i}`)).toEqual(expected);

    const operations = ["a", "b"].map((id) => ({ insert: { table: "t", record: { id, ...RECORD } } }));
    await runTransaction(engine, branch, [...operations, { update: { table: "t", id: "one", fields: { s: `${TEXT}!` } } }]);
    for (const id of ["a", "b"]) expect(await stored(id)).toEqual(expected);
    expect(await stored("one")).toMatchObject({ s: `${TEXT}!` });

    await updateRecord(engine, branch, table(), "one", { s: TEXT, j: JSON_VALUE });
    expect(await stored("one")).toEqual(expected);

    await runSql(engine, branch, { statement: 'INSERT INTO "t" ("id", "s") VALUES ($1, $2)', params: ["sql", TEXT] });
    expect(await stored("sql")).toMatchObject({ s: TEXT });
  });
});
