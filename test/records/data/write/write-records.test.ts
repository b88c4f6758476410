import { randomBytes } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { getRecords } from "../../../../src/records/data/read/read-records.ts";
import { newRecordId } from "../../../../src/records/data/values/record-metadata.ts";
import { ExactJson } from "../../../../src/records/exact-json.ts";
import type { JsonObject } from "../../../../src/records/requests.ts";
import { describeOnBothEngines } from "../../../support/record-engines.ts";
import { recordsOf } from "./records-of.ts";

describeOnBothEngines("records", (fixture) => {
  const teams = recordsOf(fixture, "teams");
  const users = recordsOf(fixture, "users");

  beforeAll(async () => {
    await fixture.createTable("teams", [
      { name: "name", type: "string", notNull: true },
      { name: "code", type: "string", unique: true },
      { name: "plan", type: "string", defaultValue: "free" },
      { name: "size", type: "int", defaultValue: "7" },
    ]);
    await fixture.createTable("users", [
      { name: "name", type: "string" },
      { name: "team", type: "link", link: { table: "teams" } },
      { name: "boss", type: "link", link: { table: "users" } },
    ]);
  });

  test("pass over xata, which the SDK sends back", async () => {
    const written = await teams.insert({ name: "a", xata: { version: 9 } });
    expect(written.xata).toMatchObject({ version: 0 });
  });

  test("without columns answer id and xata alone", async () => {
    const written = await teams.insert({ name: "a" }, {});
    expect(Object.keys(written)).toEqual(["id", "xata"]);
  });

  test("use defaults for what is left out, and null for null", async () => {
    expect(await teams.insert({ name: "a" })).toMatchObject({ plan: "free", size: 7 });
    expect(await teams.insert({ name: "a", plan: null })).not.toHaveProperty("plan");
  });

  test("refuse a missing or null value of a notNull column", async () => {
    await expect(teams.insert({})).rejects.toMatchObject({
      code: "INVALID",
      message: 'record has no value for column "name", which is notNull and has no default; give it one.',
    });
    await expect(teams.insert({ name: null })).rejects.toMatchObject({
      message: 'record.name (column "name" of type string) is null; it is notNull, so give it a value.',
    });
  });

  test("refuse a second record with a unique value, and name the column", async () => {
    await teams.insert({ name: "a", code: "(x)=(y)" });
    await expect(teams.insert({ name: "b", code: "(x)=(y)" })).rejects.toMatchObject({
      code: "INVALID",
      message: 'Column "code" is unique, and another record has "(x)=(y)" already; choose another value.',
    });
  });

  test("refuse a unique value that its index cannot hold", async () => {
    // Random, since PostgreSQL compresses what repeats before it measures it.
    const code = randomBytes(6_000).toString("base64");
    await expect(teams.insert({ name: "long", code })).rejects.toMatchObject({
      code: "INVALID",
      message: expect.stringContaining("A value is too long for the index of a unique or link column (about 2,700 bytes)"),
    });
  });

  test("refuse an id that is taken when inserted or with createOnly", async () => {
    await teams.insert({ id: "taken", name: "a" });
    const message = 'Table "teams" has a record with the id "taken" already; update or replace it, or choose another id.';
    await expect(teams.insert({ id: "taken", name: "b" })).rejects.toMatchObject({ code: "CONFLICT", message });
    await expect(teams.replace("taken", { name: "b" }, { createOnly: true })).rejects.toMatchObject({ code: "CONFLICT", message });
    expect((await teams.get("taken")).name).toBe("a");
  });

  test("are replaced whole, with the defaults of what is left out", async () => {
    const created = await teams.replace("whole", { name: "a", plan: "paid", size: 3, code: "w" });
    expect(created).toMatchObject({ created: true, record: { id: "whole", xata: { version: 0 } } });
    const replaced = await teams.replace("whole", { id: "whole", name: "b" });
    expect(replaced.created).toBe(false);
    expect(replaced.record).toEqual({ id: "whole", name: "b", plan: "free", size: 7, xata: expect.objectContaining({ version: 1 }) });
    expect((replaced.record.xata as JsonObject).createdAt).toBe((created.record.xata as JsonObject).createdAt);
    await expect(teams.replace("whole", { id: "other", name: "b" })).rejects.toMatchObject({
      code: "INVALID",
      message: 'record.id is "other", but the request is about the record "whole"; leave it out, or make them equal.',
    });
  });

  test("are replaced and updated only at the version of ifVersion", async () => {
    await teams.replace("versioned", { name: "a" });
    expect((await teams.replace("versioned", { name: "b" }, { ifVersion: 0, columns: ["*"] })).record).toMatchObject({
      name: "b",
      size: 7,
      xata: { version: 1 },
    });
    const message = 'Record "versioned" of table "teams" has version 1, but ifVersion is 0; read it again, then write again.';
    await expect(teams.replace("versioned", { name: "c" }, { ifVersion: 0 })).rejects.toMatchObject({ code: "CONFLICT", message });
    await expect(teams.update("versioned", { name: "c" }, { ifVersion: 0 })).rejects.toMatchObject({ code: "CONFLICT", message });
    await expect(teams.upsert("versioned", { name: "c" }, { ifVersion: 0 })).rejects.toMatchObject({ code: "CONFLICT", message });
    expect(await teams.update("versioned", { name: "c" }, { ifVersion: 1 })).toMatchObject({ xata: { version: 2 } });
    await expect(teams.replace("absent", { name: "c" }, { ifVersion: 0 })).rejects.toMatchObject({
      code: "CONFLICT",
      message: 'Record "absent" of table "teams" does not exist, but ifVersion is 0; read it again, then write again.',
    });
  });

  test("are updated in part, and every update makes a version", async () => {
    await teams.replace("part", { name: "a", plan: "paid" });
    expect(await teams.update("part", { name: "b" })).toMatchObject({ name: "b", plan: "paid", xata: { version: 1 } });
    expect(await teams.update("part", {})).toMatchObject({ name: "b", xata: { version: 2 } });
    await expect(teams.update("absent", { name: "b" })).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: 'Table "teams" has no record with the id "absent".',
    });
  });

  test("count in the database: no increment of two at once is lost", async () => {
    await teams.replace("counter", { name: "a", size: 0 });
    await Promise.all(Array.from({ length: 20 }, () => teams.update("counter", { size: { $increment: 2 } })));
    expect(await teams.get("counter")).toMatchObject({ size: 40, xata: { version: 20 } });
    expect(await teams.update("counter", { size: { $decrement: 1 } })).toMatchObject({ size: 39 });
    expect(await teams.update("counter", { size: { $multiply: 2 } })).toMatchObject({ size: 78 });
    expect(await teams.update("counter", { size: { $divide: 4 } })).toMatchObject({ size: 19 });
  });

  test("count beyond 2^53 with every digit, in answers and in the database, up to the largest int", async () => {
    const big = 2n ** 53n - 1n;
    await teams.replace("beyond", { name: "a", size: Number(big) });
    // As it is written into the answer.
    const digits = (value: unknown): string => (value instanceof ExactJson ? value.text : String(value));
    const text = async (record: Promise<JsonObject>): Promise<string> => digits((await record).size);
    expect(await text(teams.update("beyond", { size: { $increment: 2 } }))).toBe(String(big + 2n));
    expect(await text(teams.get("beyond"))).toBe("9007199254740993");
    expect(await text(teams.update("beyond", { size: { $multiply: 1000 } }))).toBe("9007199254740993000");
    await expect(teams.update("beyond", { size: { $multiply: 2 } })).rejects.toMatchObject({ code: "INVALID" });
    expect(await text(teams.get("beyond"))).toBe("9007199254740993000");
    // From the column's default, which is 7.
    const made = async (id: string, size: JsonObject) => text(teams.upsert(id, { name: "a", size }).then(({ record }) => record));
    expect(await made("beyond2", { $increment: Number(big) })).toBe(String(7n + big));
    expect(await made("beyond3", { $decrement: Number(big) })).toBe(String(7n - big));
    expect(await made("beyond4", { $multiply: Number(big) })).toBe(String(7n * big));
    expect(await made("beyond5", { $divide: -2 })).toBe("-3");
  });

  test("take arithmetic on numbers only", async () => {
    await teams.replace("arithmetic", { name: "a", size: null });
    for (const [fields, message] of [
      [{ name: { $increment: 1 } }, 'record.name: $increment is for int and float columns; column "name" is of type string.'],
      [{ size: { $increment: 1.5 } }, 'record.size.$increment (column "size" of type int) is 1.5; expected a whole number.'],
      [{ size: { $increment: null } }, "record.size.$increment is null; expected a number."],
      [{ size: { $divide: 0 } }, "record.size.$divide is 0; divide by another number."],
      [{ size: { $power: 2 } }, "expected one of $increment, $decrement, $multiply and $divide alone."],
      [{ size: { $increment: 1, $divide: 2 } }, "expected one of $increment, $decrement, $multiply and $divide alone."],
    ] as const) {
      await expect(teams.update("arithmetic", fields)).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringContaining(message),
      });
    }
    expect(await teams.update("arithmetic", { size: { $multiply: 3 } })).not.toHaveProperty("size");
    expect(await teams.update("arithmetic", { size: { $increment: 3 } })).toMatchObject({ size: 3 });
  });

  test("are created by an upsert, or updated though notNull columns are left out", async () => {
    expect(await teams.upsert("up", { name: "a", size: { $increment: 1 } })).toMatchObject({
      created: true,
      record: { name: "a", size: 8, xata: { version: 0 } },
    });
    expect(await teams.upsert("up", { size: { $increment: 1 } })).toMatchObject({
      created: false,
      record: { name: "a", size: 9, xata: { version: 1 } },
    });
    await expect(teams.upsert("up2", { size: 1 })).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining('"name"') });
    await expect(teams.upsert("up2", { name: "x" }, { ifVersion: 0 })).rejects.toMatchObject({ code: "CONFLICT" });
  });

  test("created by many upserts at once are one record", async () => {
    const results = await Promise.all(Array.from({ length: 10 }, () => teams.upsert("race", { name: "a", size: { $increment: 1 } })));
    expect(results.filter((result) => result.created)).toHaveLength(1);
    expect(await teams.get("race")).toMatchObject({ size: 17, xata: { version: 9 } });
  });

  test("win only once when many replace the same version", async () => {
    await teams.replace("contended", { name: "a" });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, i) => teams.replace("contended", { name: `n${i}` }, { ifVersion: 0 })),
    );
    expect(outcomes.filter((outcome) => outcome.status === "fulfilled")).toHaveLength(1);
    expect(await teams.get("contended")).toMatchObject({ xata: { version: 1 } });
  });

  test("link by id or by object, and refuse a link to nothing", async () => {
    await teams.replace("linked", { name: "L" });
    const user = await users.insert({ name: "u", team: { id: "linked", name: "ignored" } });
    expect(user.team).toEqual({ id: "linked" });
    expect((await users.update(user.id as string, { team: "linked" })).team).toEqual({ id: "linked" });
    await expect(users.insert({ team: "nowhere" })).rejects.toMatchObject({
      code: "INVALID",
      message: 'Column "team" links to table "teams", which has no record with the id "nowhere"; create that first.',
    });
    await expect(users.insert({ team: { name: "x" } })).rejects.toMatchObject({
      message: expect.stringContaining('expected the id of a record of table "teams", or an object with that id.'),
    });
    await teams.remove("linked");
    expect(await users.get(user.id as string)).not.toHaveProperty("team");
  });

  test("answer what lies behind links, of the very record that was written too", async () => {
    await teams.replace("behind", { name: "B" });
    const user = await users.insert({ id: "self", name: "u", team: "behind", boss: "self" }, { columns: ["name", "team.name", "boss.*"] });
    expect(user).toEqual({
      id: "self",
      name: "u",
      team: { id: "behind", name: "B", xata: expect.any(Object) },
      boss: { id: "self", name: "u", team: { id: "behind" }, boss: { id: "self" }, xata: expect.objectContaining({ version: 0 }) },
      xata: expect.objectContaining({ version: 0 }),
    });
    expect(await users.remove("self", ["boss.name"])).toEqual({
      id: "self",
      boss: { id: "self", name: "u", xata: expect.any(Object) },
      xata: expect.any(Object),
    });
  });

  test("are removed, once", async () => {
    await teams.replace("gone", { name: "a" });
    expect(await teams.remove("gone")).toBeUndefined();
    await expect(teams.remove("gone")).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: 'Table "teams" has no record with the id "gone".',
    });
    await expect(teams.get("gone")).rejects.toMatchObject({ code: "NOT_FOUND" });
    await teams.replace("gone", { name: "again" });
    expect(await teams.remove("gone", ["name"])).toEqual({ id: "gone", name: "again", xata: expect.objectContaining({ version: 0 }) });
    await expect(teams.remove("gone", ["name"])).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(teams.remove("a\u0000b")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("come in the order asked for, without those that are gone", async () => {
    for (const id of ["m1", "m2", "m3"]) await teams.replace(id, { name: id });
    const records = await getRecords(fixture.engine, fixture.branch, fixture.table("teams"), ["m3", "nope", "m1", "m3"], {
      columns: ["name"],
    });
    expect(records.map((record) => record.name)).toEqual(["m3", "m1", "m3"]);
  });

  test("that SQL wrote under an odd id are found, updated and removed", async () => {
    await fixture.engine.query(`INSERT INTO "test:main"."teams" ("id", "name") VALUES ('a/b "c" é', 'odd')`);
    expect((await teams.get('a/b "c" é')).name).toBe("odd");
    expect((await teams.update('a/b "c" é', { name: "even" })).name).toBe("even");
    expect(await teams.remove('a/b "c" é', ["name"])).toMatchObject({ name: "even" });
    await expect(teams.replace('a/b "c" é', { name: "x" })).rejects.toMatchObject({ code: "INVALID" });
    await expect(teams.update("a\u0000b", { name: "x" })).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("have ids that sort by time, whether SQL or the API made them", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 6; i++) {
      if (i % 2 === 0) ids.push(newRecordId());
      else ids.push((await fixture.engine.query<{ id: string }>("SELECT lodestone.record_id() AS id")).rows[0]!.id);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect([...ids].sort()).toEqual(ids);
    for (const id of ids) expect(id).toMatch(/^rec_[0-9a-v]{20}$/);
    const many = Array.from({ length: 10_000 }, () => newRecordId());
    expect(new Set(many).size).toBe(10_000);
    expect([...many].sort()).toEqual(many);
  });

  test("have ids made by the service that sort as they were made", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 50; i++) ids.push((await teams.insert({ name: "a" })).id as string);
    expect([...ids].sort()).toEqual(ids);
  });
});
