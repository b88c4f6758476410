import { expect, it } from "vitest";
import { queryRecords } from "../../src/records/data/read/query-records.ts";
import { insertRecord } from "../../src/records/data/write/write-record.ts";
import { describeOnBothEngines } from "../support/record-engines.ts";

/** One rule for times wherever a request contains one: in a record, in a filter and as a column's default. */
const REAL: readonly (readonly [given: string, stored: string])[] = [
  ["2026-02-28T12:00:00Z", "2026-02-28T12:00:00.000Z"],
  ["2024-02-29t23:59:59.1234567+01:00", "2024-02-29T22:59:59.123457Z"],
  ["2026-01-01T00:00:00+23:59", "2025-12-31T00:01:00.000Z"],
  ["2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"],
  ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"],
  ["9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"],
];

const UNREAL = [
  "2026-02-30T12:00:00Z",
  "2025-02-29T12:00:00Z",
  "2026-01-01T24:00:00Z",
  "2026-01-01T00:60:00Z",
  "2026-01-01T00:00:00+24:00",
  "2026-01-01T00:00:00",
  "0000-01-01T00:00:00Z",
  "0001-01-01T00:00:00+01:00",
  "9999-12-31T23:59:59.9999999Z",
  "yesterday",
  "",
];

describeOnBothEngines("a time", (fixture) => {
  let tables = 0;
  const tableWith = (defaultValue?: string) =>
    fixture.createTable(`t${tables++}`, [{ name: "at", type: "datetime", ...(defaultValue === undefined ? {} : { defaultValue }) }]);

  it.each(REAL)("%s is accepted in a record, as a default and in a filter, and is %s", async (given, stored) => {
    const table = await tableWith(given);
    const options = { columns: ["at"] };
    await insertRecord(fixture.engine, fixture.branch, table, { id: "sent", at: given });
    await insertRecord(fixture.engine, fixture.branch, table, { id: "default" });
    const { records } = await queryRecords(fixture.engine, fixture.branch, table, {
      ...options,
      filter: { at: given },
      sort: { id: "asc" },
    });
    expect(records.map(({ id, at }) => [id, at])).toEqual([
      ["default", stored],
      ["sent", stored],
    ]);
  });

  it.each(UNREAL)("%j is refused in a record, as a default and in a filter", async (given) => {
    const table = await tableWith();
    await expect(insertRecord(fixture.engine, fixture.branch, table, { at: given })).rejects.toMatchObject({ code: "INVALID" });
    await expect(tableWith(given)).rejects.toMatchObject({ code: "INVALID" });
    await expect(queryRecords(fixture.engine, fixture.branch, table, { filter: { at: given } })).rejects.toMatchObject({ code: "INVALID" });
  });
});
