/** Whole tables of a server are read as binary COPY. Whatever the values are, they are those that text gives. */
import { beforeAll, expect, test } from "vitest";
import type { TransactionConnection } from "../../../src/records/engine/engine.ts";
import { RecordReader } from "../../../src/records/feed/record-reader.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";

const RECORDS = 5_000;

describeOnBothEngines("Records of a whole table", (fixture, kind) => {
  beforeAll(async () => {
    const { physicalName } = await fixture.createTable("t", [
      { name: "body", type: "text" },
      { name: "tags", type: "multiple" },
      { name: "config", type: "json" },
      { name: "n", type: "int" },
      { name: "x", type: "float" },
      { name: "isOn", type: "bool" },
      { name: "at", type: "datetime" },
      { name: "v", type: "vector", vector: { dimension: 3 } },
    ]);
    // Ids that have to be quoted: each may be the one after which the next page begins.
    await fixture.engine.query(
      `INSERT INTO "${fixture.branch.schemaName}"."${physicalName}" (id, body, tags, config, n, x, "isOn", at, v)
       SELECT E'\\\\' || lpad(n::text, 6, '0') || E'''é\\\\"𝄞', 'tëxt ' || n, ARRAY['a', NULL, 'ü' || n], jsonb_build_object('n', n), n - 2500,
         CASE n % 4 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-Infinity' WHEN 2 THEN -0.0 ELSE n / 7.0 END, n % 2 = 0,
         CASE n % 3 WHEN 0 THEN 'infinity'::timestamptz WHEN 1 THEN '-infinity' ELSE '1969-07-20T20:17:40.123456Z' END, ARRAY[n, -n / 3.0, 1e-42]
       FROM generate_series(1, ${RECORDS}) AS n`,
    );
    await fixture.engine.query(
      `INSERT INTO "${fixture.branch.schemaName}"."${physicalName}" (id, n) VALUES ('', 9223372036854775807), ('null', NULL)`,
    );
  });

  /** All pieces; `copies` counts the copies. */
  async function readAll(withCopies: boolean, part?: { index: number; of: number }) {
    const reader = new RecordReader(fixture.engine.vectors, fixture.branch.schemaName, fixture.table("t"), { part });
    return fixture.engine.transaction(async (own) => {
      let copies = 0;
      const copyOut = own.copyOut && {
        copyOut: (select: string) => {
          copies++;
          return own.copyOut!(select);
        },
      };
      const connection: TransactionConnection = {
        vectors: own.vectors,
        query: (...args) => own.query(...args),
        queryBounded: (query) => own.queryBounded(query),
        ...(withCopies && copyOut),
      };
      const pieces = [];
      let after: string | undefined;
      do {
        const piece = await reader.read(connection, after);
        pieces.push(piece);
        after = piece.last;
      } while (after !== undefined);
      return { pieces, copies };
    });
  }

  test("are the same, copied or as text, page by page", async () => {
    const [copied, asText] = [await readAll(true), await readAll(false)];
    expect(copied.pieces.flatMap(({ batch }) => batch.ids)).toHaveLength(RECORDS + 2);
    expect(copied.pieces.length).toBeGreaterThan(1);
    expect(copied.pieces).toEqual(asText.pieces);
    expect([copied.copies, asText.copies]).toEqual([kind === "server" ? copied.pieces.length : 0, 0]);
  });

  test("of a part are the same too", async () => {
    const [copied, asText] = [await readAll(true, { index: 1, of: 3 }), await readAll(false, { index: 1, of: 3 })];
    expect(copied.pieces.flatMap(({ batch }) => batch.ids).length).toBeGreaterThan(RECORDS / 4);
    expect(copied.pieces).toEqual(asText.pieces);
  });

  test("that are long come as text, which is decoded in slices", async () => {
    const table = `"${fixture.branch.schemaName}"."${fixture.table("t").physicalName}"`;
    await fixture.engine.query(`UPDATE ${table} SET body = repeat('é', 600000) WHERE id = 'null'`);
    const { pieces, copies } = await readAll(true);
    expect(pieces).toEqual((await readAll(false)).pieces);
    const bodies = pieces.flatMap(({ batch }) => (batch.columns.get("body") as { values: (string | null)[] }).values);
    expect(bodies.filter((body) => body === "é".repeat(600_000))).toHaveLength(1);
    // The pages before it are copied, and so is the one behind it.
    expect(copies).toBe(kind === "server" ? pieces.length : 0);
  });
});
