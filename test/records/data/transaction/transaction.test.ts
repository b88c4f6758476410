import { beforeAll, beforeEach, expect, test } from "vitest";
import { getRecords } from "../../../../src/records/data/read/read-records.ts";
import { runTransaction } from "../../../../src/records/data/transaction/record-transaction.ts";
import { insertRecords } from "../../../../src/records/data/write/bulk-insert.ts";
import type { Engine } from "../../../../src/records/engine/engine.ts";
import type { JsonObject, TransactionOperation } from "../../../../src/records/requests.ts";
import { describeOnBothEngines } from "../../../support/record-engines.ts";

describeOnBothEngines("transactions", (fixture) => {
  const run = (...operations: TransactionOperation[]) => runTransaction(fixture.engine, fixture.branch, operations);
  const read = (table: string, ...ids: string[]) => getRecords(fixture.engine, fixture.branch, fixture.table(table), ids);
  const contents = async (): Promise<unknown> =>
    (await fixture.engine.query(`SELECT "id", "name", "code", "size", "xata.version" FROM "test:main"."items" ORDER BY "id"`)).rows;

  beforeAll(async () => {
    await fixture.createTable("items", [
      { name: "name", type: "string", notNull: true, defaultValue: "unnamed" },
      { name: "code", type: "string", unique: true },
      { name: "size", type: "int" },
      { name: "parent", type: "link", link: { table: "items" } },
      { name: "vector", type: "vector", vector: { dimension: 2 } },
    ]);
    await fixture.createTable("notes", [{ name: "item", type: "link", link: { table: "items" } }]);
  });
  beforeEach(async () => {
    await fixture.engine.query(`DELETE FROM "test:main"."items"`);
    await insertRecords(fixture.engine, fixture.branch, fixture.table("items"), [
      { id: "a", name: "A", size: 1, code: "ca" },
      { id: "b", name: "B", size: 2 },
      { id: "c", name: "C", size: 3 },
    ]);
  });

  test("without operations do nothing", async () => {
    expect(await run()).toEqual([]);
  });

  test("of a caller that may only read consist of get operations, and run in a read-only transaction", async () => {
    const isReadOnly: unknown[] = [];
    const engine = {
      transaction: (work, options) => {
        isReadOnly.push(options?.readOnly);
        return fixture.engine.transaction(work, options);
      },
    } as Engine;
    const get = { get: { table: "items", id: "a", columns: ["name"] } };
    const runReadOnly = (...operations: TransactionOperation[]) => runTransaction(engine, fixture.branch, operations, { readOnly: true });
    expect(await runReadOnly(get, get)).toEqual([get, get].map(() => ({ operation: "get", columns: { name: "A" } })));
    const before = await contents();
    for (const write of [
      { insert: { table: "items", record: { id: "d" } } },
      { update: { table: "items", id: "a", fields: { name: "B" } } },
      { delete: { table: "items", id: "a" } },
    ]) {
      await expect(runReadOnly(get, write)).rejects.toMatchObject({ code: "FORBIDDEN" });
      await runTransaction(engine, fixture.branch, [get, { insert: { table: "notes", record: {} } }]);
    }
    expect(isReadOnly).toEqual([true, false, false, false]);
    expect(await contents()).toEqual(before);
  });

  test("answer a get of no columns with the id and the metadata", async () => {
    expect(await run({ get: { table: "items", id: "a", columns: [] } }, { get: { table: "items", id: "gone", columns: [] } })).toEqual([
      { operation: "get", columns: { id: "a", xata: expect.objectContaining({ version: 0 }) } },
      { operation: "get", columns: {} },
    ]);
  });

  test("return the result of each operation in order", async () => {
    const results = await run(
      { insert: { table: "items", record: { name: "made" } } },
      { insert: { table: "items", record: { id: "d", name: "D", vector: [0.5, -1] }, createOnly: true, columns: ["name", "vector"] } },
      { insert: { table: "items", record: { id: "a", name: "A2" } } },
      { insert: { table: "items", record: { id: "b", name: "B2" }, ifVersion: 0, columns: ["*"] } },
      { update: { table: "items", id: "c", fields: { size: { $increment: 10 } }, columns: ["size"] } },
      { update: { table: "items", id: "e", fields: { name: "E" }, upsert: true } },
      { get: { table: "items", id: "a", columns: ["name"] } },
      { get: { table: "items", id: "nope" } },
      { delete: { table: "items", id: "c" } },
      { delete: { table: "items", id: "nope" } },
      { delete: { table: "items", id: "d", columns: ["name"] } },
      { delete: { table: "items", id: "d", columns: ["name"] } },
      { get: { table: "items", id: "c", columns: ["name"] } },
    );
    const xata = (version: number) => expect.objectContaining({ version });
    expect(results).toEqual([
      { operation: "insert", id: expect.stringMatching(/^rec_/), rows: 1 },
      { operation: "insert", id: "d", rows: 1, columns: { name: "D", vector: [0.5, -1] } },
      { operation: "insert", id: "a", rows: 1, columns: {} },
      { operation: "insert", id: "b", rows: 1, columns: { id: "b", name: "B2", xata: xata(1) } },
      { operation: "update", id: "c", rows: 1, columns: { size: 13 } },
      { operation: "update", id: "e", rows: 1, columns: {} },
      { operation: "get", columns: { name: "A2" } },
      { operation: "get", columns: {} },
      { operation: "delete", rows: 1 },
      { operation: "delete", rows: 0 },
      { operation: "delete", rows: 1, columns: { name: "D" } },
      { operation: "delete", rows: 0, columns: {} },
      { operation: "get", columns: {} },
    ]);
    expect(await read("items", "a")).toMatchObject([{ id: "a", name: "A2" }]);
    expect((await read("items", "a"))[0]).not.toHaveProperty("code");
  });

  test("see one state, whoever else writes the same records at the same time", async () => {
    let release!: () => void;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let started!: () => void;
    const isStarted = new Promise<void>((resolve) => {
      started = resolve;
    });
    // Another client changes one of the records and adds another, without having committed yet.
    const other = fixture.engine.transaction(async (connection) => {
      await connection.query(`UPDATE "test:main"."items" SET "size" = 9 WHERE "id" = 'a'`);
      await connection.query(`INSERT INTO "test:main"."items" ("id") VALUES ('d')`);
      started();
      await released;
    });
    await isStarted;
    const removed = run(...["a", "b", "c", "d"].map((id) => ({ delete: { table: "items", id } })));
    if (!fixture.engine.isExclusive) {
      const isWaiting = async (): Promise<boolean> =>
        (await fixture.engine.query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%DELETE FROM%'")).rows
          .length > 0;
      await expect.poll(isWaiting).toBe(true);
    }
    release();
    await other;
    // After the other transaction, so it sees all that one wrote: not the changed record without the added
    // one.
    expect(await removed).toEqual([1, 1, 1, 1].map((rows) => ({ operation: "delete", rows })));
    expect(await contents()).toEqual([]);
  });

  test("mean in a batch what they mean one by one", async () => {
    const results = await run(
      { insert: { table: "items", record: { id: "x", name: "1" } } },
      { insert: { table: "items", record: { id: "x", name: "2" } } },
      { insert: { table: "items", record: { id: "y" } } },
      { insert: { table: "items", record: { id: "z", parent: "y", name: null } } },
    ).catch((error: unknown) => error);
    expect(results).toMatchObject({
      code: "INVALID",
      errors: [
        {
          index: 3,
          message: 'operations[3].insert.record.name (column "name" of type string) is null; it is notNull, so give it a value.',
        },
      ],
    });
    await run(
      { insert: { table: "items", record: { id: "x", name: "1" } } },
      { insert: { table: "items", record: { id: "x", name: "2" } } },
      { insert: { table: "items", record: { id: "y" } } },
      { insert: { table: "items", record: { id: "z", parent: "y", name: "named" } } },
      { delete: { table: "items", id: "x" } },
      { insert: { table: "items", record: { id: "x", name: "3" }, createOnly: true } },
    );
    expect(await read("items", "x", "y", "z")).toMatchObject([
      { name: "3", xata: { version: 0 } },
      { name: "unnamed", xata: { version: 0 } },
      { name: "named", parent: { id: "y" } },
    ]);
    const twice = await run(
      { delete: { table: "items", id: "x" } },
      { delete: { table: "items", id: "y" } },
      { delete: { table: "items", id: "x" } },
    );
    expect(twice.map((result) => (result as { rows: number }).rows)).toEqual([1, 1, 0]);
    expect((await read("items", "z"))[0]).not.toHaveProperty("parent");
  });

  test("refuse a link to a record that only a later operation creates", async () => {
    const before = await contents();
    await expect(
      run({ insert: { table: "items", record: { id: "child", parent: "late" } } }, { insert: { table: "items", record: { id: "late" } } }),
    ).rejects.toMatchObject({
      code: "INVALID",
      errors: [{ index: 0, message: 'Column "parent" links to table "items", which has no record with the id "late"; create that first.' }],
    });
    expect(await contents()).toEqual(before);
  });

  test.each<[string, TransactionOperation[], { index: number; message: string }[]]>([
    [
      "an id that is taken",
      [
        { delete: { table: "items", id: "c" } },
        ...["n", "b"].map((id) => ({ insert: { table: "items", record: { id }, createOnly: true } })),
      ],
      [{ index: 2, message: 'Table "items" has a record with the id "b" already; update or replace it, or choose another id.' }],
    ],
    [
      "a unique value that is taken",
      [{ insert: { table: "items", record: { id: "n" } } }, { insert: { table: "items", record: { id: "m", code: "ca" } } }],
      [{ index: 1, message: 'Column "code" is unique, and another record has "ca" already; choose another value.' }],
    ],
    [
      "another version",
      [
        { update: { table: "items", id: "b", fields: { size: 5 } } },
        { update: { table: "items", id: "b", fields: { size: 6 }, ifVersion: 0 } },
      ],
      [{ index: 1, message: 'Record "b" of table "items" has version 1, but ifVersion is 0; read it again, then write again.' }],
    ],
    [
      "another version of an insert",
      [{ insert: { table: "items", record: { id: "b", name: "x" }, ifVersion: 3 } }],
      [{ index: 0, message: 'Record "b" of table "items" has version 0, but ifVersion is 3; read it again, then write again.' }],
    ],
    [
      "an update of nothing",
      [{ delete: { table: "items", id: "a" } }, { update: { table: "items", id: "a", fields: { size: 5 } } }],
      [{ index: 1, message: 'Table "items" has no record with the id "a".' }],
    ],
    [
      "a delete of nothing with failIfMissing",
      [
        { delete: { table: "items", id: "a" } },
        { delete: { table: "items", id: "nope", failIfMissing: true } },
        { delete: { table: "items", id: "b" } },
      ],
      [{ index: 1, message: "table [items]: no rows deleted" }],
    ],
    [
      "all mistakes at once",
      [
        { delete: { table: "items", id: "a" } },
        { insert: { table: "nope", record: {} } },
        { update: { table: "items", id: "a", fields: { nope: 1 } } },
        { get: { table: "items", id: "a", columns: ["nope"] } },
        { insert: { table: "items", record: { vector: [1] } } },
      ],
      [
        { index: 1, message: 'operations[1].insert.table: there is no table "nope"; the branch has "items", "notes".' },
        {
          index: 2,
          message:
            'operations[2].update.fields: table "items" has no column "nope"; it has "id", "name", "code", "size", "parent", "vector"',
        },
        {
          index: 3,
          message:
            'operations[3].get.columns[0]: table "items" has no column "nope"; it has "id", "name", "code", "size", "parent", "vector"',
        },
        {
          index: 4,
          message: 'operations[4].insert.record.vector (column "vector" of type vector) has 1 element; the column has dimension 2.',
        },
      ],
    ],
  ])("apply nothing for %s, and say which operation it was", async (_name, operations, errors) => {
    const before = await contents();
    await expect(run(...operations)).rejects.toMatchObject({
      code: "INVALID",
      message: expect.stringContaining(`Nothing was applied: ${errors[0]!.message}`),
      errors: errors.map((error) => expect.objectContaining(error)),
    });
    expect(await contents()).toEqual(before);
  });

  test("take 1,000 operations", async () => {
    const inserts = Array.from({ length: 1000 }, (_, i) => ({
      insert: { table: "items", record: { id: `n${i}`, size: i, vector: [i, -i] } },
    }));
    expect(await run(...inserts)).toHaveLength(1000);
    expect((await read("items", "n999"))[0]).toMatchObject({ size: 999, vector: [999, -999] });
    const deletes = Array.from({ length: 1000 }, (_, i) => ({ delete: { table: "items", id: `n${i}` } }));
    expect((await run(...deletes)).every((result) => (result as { rows: number }).rows === 1)).toBe(true);
  });

  test("of several clients at once neither lose nor mix anything", async () => {
    const clients = Array.from({ length: 8 }, async (_, client) => {
      for (let round = 0; round < 5; round++) {
        await run(
          { update: { table: "items", id: "a", fields: { size: { $increment: 1 } } } },
          { update: { table: "items", id: "b", fields: { size: { $decrement: 1 } } } },
          { insert: { table: "items", record: { id: `r${client}-${round}` }, createOnly: true } },
        );
      }
    });
    await Promise.all(clients);
    const [a, b] = (await read("items", "a", "b")) as [JsonObject, JsonObject];
    expect([a.size, b.size]).toEqual([41, -38]);
    expect(await contents()).toHaveLength(43);
  });

  test("that lock records crosswise both succeed in the end", async () => {
    const touch = (id: string) => ({ update: { table: "items", id, fields: { size: { $increment: 1 } } } });
    await Promise.all(Array.from({ length: 6 }, (_, i) => (i % 2 === 0 ? run(touch("a"), touch("b")) : run(touch("b"), touch("a")))));
    expect(await read("items", "a", "b")).toMatchObject([{ size: 7 }, { size: 8 }]);
  });
});

describeOnBothEngines("bulk inserts", (fixture) => {
  const insert = (records: JsonObject[], columns?: string[]) =>
    insertRecords(fixture.engine, fixture.branch, fixture.table("things"), records, columns === undefined ? {} : { columns });
  const count = async () => (await fixture.engine.query<{ n: number }>(`SELECT count(*)::int4 AS n FROM "test:main"."things"`)).rows[0]!.n;

  beforeAll(async () => {
    await fixture.createTable("things", [
      { name: "name", type: "string" },
      { name: "code", type: "string", unique: true },
      { name: "plan", type: "string", defaultValue: "free" },
      { name: "at", type: "datetime", defaultValue: "now" },
      { name: "tags", type: "multiple" },
      { name: "json", type: "json" },
      { name: "float", type: "float" },
      { name: "bool", type: "bool" },
      { name: "email", type: "email" },
      { name: "next", type: "link", link: { table: "things" } },
      { name: "v", type: "vector", vector: { dimension: 1536 } },
    ]);
  });

  test("return all of each record, in order, with vectors in their places", async () => {
    const vector = Array.from({ length: 1536 }, (_, i) => Math.fround(Math.sin(i)) * (i % 2 === 0 ? 1 : 1e-20));
    const records = [
      { id: "one", name: "a", tags: ['x"', "y\\", "", "{}"], json: { a: ['"', "\\"] }, float: -0.1, bool: true, v: vector },
      { id: "two", name: 'quote " \\ {},', plan: null, at: "2026-01-01T00:00:00Z", next: "three" },
      { id: "three", email: "a@b", v: vector.map((x) => -x), next: "one" },
    ];
    const written = await insert(records, ["*"]);
    expect(written.map((record) => record.id)).toEqual(["one", "two", "three"]);
    expect(written[0]).toMatchObject({
      name: "a",
      tags: ['x"', "y\\", "", "{}"],
      json: { a: ['"', "\\"] },
      float: -0.1,
      bool: true,
      plan: "free",
      at: expect.any(String),
    });
    expect((written[0]!.v as number[]).map(Math.fround)).toEqual(vector.map(Math.fround));
    expect(written[1]).toMatchObject({ name: 'quote " \\ {},', at: "2026-01-01T00:00:00.000Z", next: { id: "three" } });
    expect(written[1]).not.toHaveProperty("v");
    expect(written[1]).not.toHaveProperty("plan");
    expect((written[2]!.v as number[]).map(Math.fround)).toEqual(vector.map((x) => Math.fround(-x)));
  });

  test("report the fault of every record, and insert none", async () => {
    const before = await count();
    await expect(insert([{ name: "fine" }, { name: 5 }, { nope: 1 }, { id: "same" }, { id: "same" }])).rejects.toMatchObject({
      code: "INVALID",
      message: 'records[1].name (column "name" of type string) is 5; expected a string. (and 2 more, see errors)',
      errors: [
        { index: 1, message: expect.stringContaining("expected a string") },
        { index: 2, message: expect.stringContaining('no column "nope"') },
        { index: 4, message: "records[4].id is the id of records[3] as well; give each record an id of its own, or none." },
      ],
    });
    expect(await count()).toBe(before);
  });

  test("name the record that breaks a rule of the table", async () => {
    await insert([{ id: "old", code: "taken" }]);
    const before = await count();
    await expect(insert([{ code: "new" }, { code: "taken" }])).rejects.toMatchObject({
      code: "INVALID",
      message: 'records[1]: Column "code" is unique, and another record has "taken" already; choose another value.',
      errors: [{ index: 1 }],
    });
    await expect(insert([{}, {}, { id: "old" }])).rejects.toMatchObject({ code: "CONFLICT", errors: [{ index: 2 }] });
    await expect(insert([{ next: "old" }, { next: "nowhere" }])).rejects.toMatchObject({
      code: "INVALID",
      errors: [{ index: 1, message: expect.stringContaining('no record with the id "nowhere"') }],
    });
    // Two statements (one with and one without `plan`), one outcome.
    await expect(insert([{ plan: "a" }, { next: "nowhere" }])).rejects.toMatchObject({ code: "INVALID", errors: [{ index: 1 }] });
    expect(await count()).toBe(before);
  });

  test("take 1,000 records", async () => {
    const written = await insert(Array.from({ length: 1000 }, (_, i) => ({ name: `n${i}` })));
    expect(written).toHaveLength(1000);
    expect(written.map((record) => record.id)).toEqual(written.map((record) => record.id as string).sort());
    expect(await insert([])).toEqual([]);
  });
});
