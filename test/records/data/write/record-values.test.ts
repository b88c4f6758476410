import { beforeAll, expect, test } from "vitest";
import { runTransaction } from "../../../../src/records/data/transaction/record-transaction.ts";
import { insertRecords } from "../../../../src/records/data/write/bulk-insert.ts";
import { ExactJson } from "../../../../src/records/exact-json.ts";
import { describeOnBothEngines } from "../../../support/record-engines.ts";
import { recordsOf } from "./records-of.ts";

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:\d{3})?Z$/;

describeOnBothEngines("the values of records", (fixture) => {
  const everything = recordsOf(fixture, "everything");

  beforeAll(async () => {
    await fixture.createTable("everything", [
      { name: "string", type: "string" },
      { name: "text", type: "text" },
      { name: "email", type: "email" },
      { name: "int", type: "int" },
      { name: "float", type: "float" },
      { name: "bool", type: "bool" },
      { name: "datetime", type: "datetime" },
      { name: "multiple", type: "multiple" },
      { name: "json", type: "json" },
      { name: "vector", type: "vector", vector: { dimension: 3 } },
      { name: "address.city", type: "string" },
      { name: "address.geo.lat", type: "float" },
    ]);
  });

  test("give back every type as it was sent", async () => {
    const record = {
      string: "a \"quote\", a \\ and a 'tick' — 👀",
      text: "",
      email: "name@example.com",
      int: -9007199254740991,
      float: 1.0e-300,
      bool: false,
      datetime: "2026-02-28T12:00:00.000Z",
      multiple: ["a", 'b"c', "d\\e", "", "{x,y}", "NULL"],
      json: { a: [1, 2, { b: null }] },
      vector: [0.1, -2.5, 3.4028234663852886e38],
      address: { city: "Berlin", geo: { lat: 52.5 } },
    };
    const written = await everything.insert(record);
    expect(written).toEqual({
      ...record,
      vector: [0.1, -2.5, 3.4028235e38],
      id: expect.stringMatching(/^rec_[0-9a-v]{20}$/),
      xata: { version: 0, createdAt: expect.stringMatching(TIME), updatedAt: expect.stringMatching(TIME) },
    });
    expect(await everything.get(written.id as string)).toEqual(written);
  });

  test("leave null columns out", async () => {
    const nothing = { string: null, int: null, vector: null, json: null, address: null };
    const written = await everything.insert(nothing);
    expect(Object.keys(written).sort()).toEqual(["id", "xata"]);
  });

  test("take long values of json columns by every way of writing", async () => {
    const long = (n: number) => ({ n, lists: Array.from({ length: 100_000 }, () => []), text: "ä\\u0000".repeat(50_000) });
    const { id } = await everything.insert({ json: long(0) });
    const stored = async (of: unknown) => JSON.parse((await everything.get(of as string, { jsonText: true })).json as string);
    expect(await stored(id)).toEqual(long(0));
    await everything.replace(id as string, { json: JSON.stringify(long(1)) });
    expect(await stored(id)).toEqual(long(1));
    await everything.update(id as string, { json: long(2), int: 1 });
    expect(await stored(id)).toEqual(long(2));
    await everything.upsert("new", { json: long(3) });
    expect(await stored("new")).toEqual(long(3));
    await insertRecords(fixture.engine, fixture.branch, fixture.table("everything"), [{ int: 1 }, { id: "bulk", json: long(4) }]);
    expect(await stored("bulk")).toEqual(long(4));
    await runTransaction(fixture.engine, fixture.branch, [
      { insert: { table: "everything", record: { id: "inserted", json: long(5) } } },
      { update: { table: "everything", id: "bulk", fields: { json: long(6) } } },
    ]);
    expect(await stored("inserted")).toEqual(long(5));
    expect(await stored("bulk")).toEqual(long(6));
    for (const wrong of [`["\\u0000", "${"x".repeat(300_000)}"]`, { a: ["\u0000", "x".repeat(300_000)] }]) {
      await expect(everything.insert({ json: wrong })).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringMatching(
          /^record\.json \(column "json" of type json\) is .*: it holds the character U\+0000, which jsonb cannot/s,
        ),
      });
    }
  });

  test("take vectors as base64 of float32 by every way of writing, to the last bit", async () => {
    const bits = [0x80000000, 0x00000001, 0x7f7fffff];
    const base64 = Buffer.from(Uint32Array.from(bits).buffer).toString("base64");
    const stored = async (id: unknown) =>
      (await fixture.engine.query('SELECT encode(array_send("vector"), $1) AS hex FROM "test:main".everything WHERE id = $2', ["hex", id]))
        .rows[0];
    const { id } = await everything.insert({ vector: base64 });
    // As a list of numbers is stored, by PostgreSQL's own array_send.
    const { hex } = (await stored((await everything.insert({ vector: [-0, 2 ** -149, 3.4028234663852886e38] })).id)) as { hex: string };
    expect(hex.match(/00000004(.{8})/g)?.map((element) => Number.parseInt(element.slice(8), 16))).toEqual(bits);
    await everything.update((await everything.insert({ id: "base64-updated" })).id as string, { vector: base64 });
    await everything.replace("base64-replaced", { vector: base64 });
    await everything.upsert("base64-upserted", { vector: base64 });
    const some = [{ id: "base64-bulk", vector: base64 }, { id: "base64-none" }, { id: "base64-list", vector: [1, 2, 3] }];
    await insertRecords(fixture.engine, fixture.branch, fixture.table("everything"), some);
    await runTransaction(fixture.engine, fixture.branch, [
      { insert: { table: "everything", record: { id: "base64-inserted", vector: base64 } } },
    ]);
    for (const of of [id, "base64-updated", "base64-replaced", "base64-upserted", "base64-bulk", "base64-inserted"])
      expect(await stored(of)).toEqual({ hex });
    expect(await stored("base64-none")).toEqual({ hex: null });
    expect((await everything.get("base64-list")).vector).toEqual([1, 2, 3]);
    expect((await everything.get("base64-bulk")).vector).toEqual([-0, 1e-45, 3.4028235e38]);
  });

  test("take json as a value or as JSON text, and give it back as either", async () => {
    for (const [sent, value, text] of [
      [{ b: 1, a: ["x"] }, { a: ["x"], b: 1 }, '{"a": ["x"], "b": 1}'],
      ["[5]", [5], "[5]"],
      [[5], [5], "[5]"],
      ['"hello"', "hello", '"hello"'],
      ["null", undefined, "null"],
      [12.5, 12.5, "12.5"],
      [false, false, "false"],
      ["123456789012345678901234567890", new ExactJson("123456789012345678901234567890"), "123456789012345678901234567890"],
    ] as const) {
      const { id, json } = await everything.insert({ json: sent });
      expect(json).toEqual(value);
      expect((await everything.get(id as string)).json).toEqual(value);
      expect((await everything.get(id as string, { jsonText: true })).json).toBe(text);
    }
  });

  test("keep times to the microsecond and give them in UTC", async () => {
    for (const [sent, given] of [
      ["2026-02-28T13:00:00+01:00", "2026-02-28T12:00:00.000Z"],
      ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"],
      ["1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"],
      ["9999-12-31T23:59:59.5Z", "9999-12-31T23:59:59.500Z"],
      ["2026-06-30T23:59:60Z", "2026-07-01T00:00:00.000Z"],
    ] as const) {
      const { id } = await everything.insert({ datetime: sent });
      expect((await everything.get(id as string)).datetime).toBe(given);
    }
  });

  test("take objects nested or flat, but not twice", async () => {
    const flat = await everything.insert({ "address.city": "Oslo", "address.geo.lat": 59.9 });
    expect(flat.address).toEqual({ city: "Oslo", geo: { lat: 59.9 } });
    expect((await everything.update(flat.id as string, { address: { city: "Rome" } })).address).toEqual({
      city: "Rome",
      geo: { lat: 59.9 },
    });
    expect((await everything.update(flat.id as string, { address: null })).address).toBeUndefined();
    await expect(everything.insert({ "address.city": "a", address: { city: "b" } })).rejects.toMatchObject({
      code: "INVALID",
      message: 'record gives column "address.city" twice; give it once.',
    });
  });

  test.each([
    [{ nope: 1 }, 'record: table "everything" has no column "nope"; it has "id", "string", "text", '],
    [JSON.parse('{"__proto__": {"a": 1}}'), 'record: table "everything" has no column "__proto__"'],
    [{ constructor: 1 }, 'record: table "everything" has no column "constructor"'],
    [{ string: 5 }, 'record.string (column "string" of type string) is 5; expected a string.'],
    [{ string: "a\u0000b" }, 'record.string (column "string" of type string) holds the character U+0000, which text cannot; remove it.'],
    [{ string: "\ud800" }, "holds a lone surrogate"],
    [{ email: "nobody" }, 'record.email (column "email" of type email) is "nobody"; expected an address like "name@example.com".'],
    [{ int: 1.5 }, 'record.int (column "int" of type int) is 1.5; expected a whole number.'],
    [{ int: "1" }, 'is "1"; expected a whole number.'],
    [{ int: 2 ** 53 }, "JSON numbers are exact only from -9007199254740991 to 9007199254740991"],
    [{ float: "x" }, "expected a finite number."],
    [{ bool: 1 }, "expected true or false."],
    [{ datetime: "yesterday" }, 'expected an RFC 3339 time with its offset such as "2026-02-28T12:00:00Z".'],
    [{ datetime: "2026-02-30T00:00:00Z" }, "which is not a date and time of the years 0001 to 9999."],
    [{ datetime: "2026-02-28T12:00:00" }, "expected an RFC 3339 time"],
    [{ multiple: "a" }, "expected an array of strings."],
    [{ multiple: ["a", null] }, "record.multiple[1]"],
    [{ json: "{" }, "it is not JSON"],
    [{ json: "hello" }, "a string sent to a json column is JSON text"],
    [{ json: '"\\u0000"' }, "it holds the character U+0000, which jsonb cannot"],
    [{ json: '"\\ud800"' }, "it holds a lone surrogate"],
    [{ json: "[".repeat(200) + "]".repeat(200) }, "it is nested deeper than 128 levels"],
    [{ vector: [1, 2] }, 'record.vector (column "vector" of type vector) has 2 elements; the column has dimension 3.'],
    [{ vector: [1, 2, null] }, 'record.vector[2] is null; every element of vector column "vector" is a finite number.'],
    [
      { vector: [1, 2, 1e39] },
      'record.vector[2] is 1e+39; elements of vector column "vector" are float32, whose largest value is about 3.4e38.',
    ],
    [{ vector: [1e300, 2, 3] }, "record.vector[0] is 1e+300"],
    [{ vector: "123" }, 'is "123"; expected an array of 3 numbers, or base64 of 12 bytes: float32, little-endian, 3 of them.'],
    [{ vector: 123 }, "is 123; expected an array of numbers, or base64 of float32."],
    [{ vector: "AAAAAAAAAAAAAAA" }, "or base64 of 12 bytes"],
    [{ vector: "AAAAAAAAAAAAAAAAAAAA" }, "or base64 of 12 bytes"],
    [{ vector: "AAAAAAAA AAAAAAA" }, "or base64 of 12 bytes"],
    [{ vector: "AAAAAAAAAAAAAAA_" }, "or base64 of 12 bytes"],
    [{ vector: "AAAAAAAAAAAAAIB/" }, 'record.vector[2] is Infinity; every element of vector column "vector" is a finite number.'],
    [{ vector: "AADAfwAAAAAAAAAA" }, "record.vector[0] is NaN"],
    [{ vector: [1, 2, "3"] }, 'record.vector[2] is "3"; every element'],
    [{ address: 5 }, 'record.address is 5; expected an object, since the table has the columns "address.city", "address.geo.lat".'],
    [{ id: "a b" }, 'record.id is "a b"; a record id is 1 to 255 characters'],
    [{ id: "" }, "a record id is 1 to 255 characters"],
    [{ "xata.version": 7 }, 'record: "xata.version" is kept by the service and cannot be written; leave it out.'],
  ])("refuse %j and change nothing", async (record, message) => {
    const before = await fixture.engine.query('SELECT count(*)::int4 AS n FROM "test:main".everything');
    await expect(everything.insert(record)).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining(message as string) });
    expect((await fixture.engine.query('SELECT count(*)::int4 AS n FROM "test:main".everything')).rows).toEqual(before.rows);
  });
});
