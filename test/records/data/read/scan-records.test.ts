import { expect, test } from "vitest";
import { scanRecords } from "../../../../src/records/data/read/read-records.ts";
import type { JsonObject } from "../../../../src/records/requests.ts";
import { describeOnBothEngines } from "../../../support/record-engines.ts";

describeOnBothEngines("Scanning a table", (fixture) => {
  test("returns every record once, in order of ids, in pages limited in records and bytes", async () => {
    const table = await fixture.createTable("t", [
      { name: "n", type: "int" },
      { name: "body", type: "text" },
    ]);
    await fixture.engine.query(
      `INSERT INTO "test:main".t (id, n, body) SELECT lpad(i::text, 5, '0'), i, CASE WHEN i BETWEEN 2101 AND 2110 THEN repeat('x', 500000) END FROM generate_series(1, 3020) AS i`,
    );
    const pages: JsonObject[][] = [];
    for await (const page of scanRecords(fixture.engine, fixture.branch, table)) pages.push(page);
    const records = pages.flat();
    expect(records.map((record) => record.n)).toEqual(Array.from({ length: 3020 }, (_, i) => i + 1));
    expect(records[0]).toEqual({
      id: "00001",
      n: 1,
      xata: { version: 0, createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    expect((records[2105]!.body as string).length).toBe(500_000);
    // Four of the large ones exceed two megabytes; the hundred small ones before them count too.
    expect(pages.map((page) => page.length)).toEqual([2000, 104, 4, 912]);
  });

  test("reads no further than asked, and returns what is there when it gets to it", async () => {
    const table = await fixture.createTable("u", [{ name: "n", type: "int" }]);
    await fixture.engine.query(`INSERT INTO "test:main".u (id, n) SELECT lpad(i::text, 5, '0'), 0 FROM generate_series(1, 2100) AS i`);
    const scan = scanRecords(fixture.engine, fixture.branch, table, { columns: ["n"] });
    const first = (await scan.next()).value as JsonObject[];
    expect(first).toHaveLength(2000);
    await fixture.engine.query(`DELETE FROM "test:main".u WHERE id = '02050'`);
    await fixture.engine.query(`UPDATE "test:main".u SET n = 1`);
    const rest: JsonObject[] = [];
    for await (const page of scan) rest.push(...page);
    expect(rest).toHaveLength(99);
    expect(new Set(rest.map((record) => record.n))).toEqual(new Set([1]));
  });

  test("of an empty table returns no page", async () => {
    const table = await fixture.createTable("empty");
    expect(await scanRecords(fixture.engine, fixture.branch, table).next()).toEqual({ done: true, value: undefined });
  });
});
