/** The API over real HTTP: transactions. Run on both databases. */
import { beforeAll, describe, expect, it } from "vitest";
import { type Api, REQUEST_ID } from "./api.ts";

export function describeTransactions(api: Api): void {
  describe("transactions", () => {
    const run = (operations: unknown) => api.post("/db/transactions:main/transaction", { operations });
    const data = "/db/transactions:main/tables/t/data";
    beforeAll(async () => {
      await api.put("/db/transactions:main");
      await api.put("/db/transactions:main/tables/t", { columns: [{ name: "n", type: "int" }] });
    });

    it("applies its operations in order, later ones seeing earlier ones", async () => {
      const { status, body } = await run([
        { insert: { table: "t", record: { id: "a", n: 1 } } },
        { update: { table: "t", id: "a", fields: { n: 2 }, columns: ["n"] } },
        { get: { table: "t", id: "a", columns: ["n"] } },
        { delete: { table: "t", id: "a", columns: ["n"] } },
        { get: { table: "t", id: "a" } },
        { delete: { table: "t", id: "a" } },
        { insert: { table: "t", record: { n: 9 } } },
      ]);
      expect(status).toBe(200);
      expect(body.results).toMatchObject([
        { operation: "insert", id: "a", rows: 1 },
        { operation: "update", id: "a", rows: 1, columns: { n: 2 } },
        { operation: "get", columns: { n: 2 } },
        { operation: "delete", rows: 1, columns: { n: 2 } },
        { operation: "get", columns: {} },
        { operation: "delete", rows: 0 },
        { operation: "insert", id: expect.stringMatching(/^rec_/), rows: 1 },
      ]);
      expect(body.results[4].columns).toEqual({});
    });

    it("an empty list gives no results", async () => {
      expect(await run([])).toMatchObject({ status: 200, body: { results: [] } });
    });

    it.each([
      ["a delete of nothing with failIfMissing", { delete: { table: "t", id: "none", failIfMissing: true } }, "table [t]: no rows deleted"],
      ["an update of nothing", { update: { table: "t", id: "none", fields: { n: 1 } } }, "none"],
      ["an insert with createOnly onto a record", { insert: { table: "t", record: { id: "there" }, createOnly: true } }, "there"],
      ["an insert with another version", { insert: { table: "t", record: { id: "there" }, ifVersion: 5 } }, "version"],
      ["an update with another version", { update: { table: "t", id: "there", fields: {}, ifVersion: 5 } }, "version"],
      ["an unknown table", { insert: { table: "nothing", record: {} } }, "nothing"],
      ["an unknown column", { insert: { table: "t", record: { nothing: 1 } } }, "nothing"],
      ["an operation that there is not", { drop: { table: "t" } }, "operations[1].drop: is not known here"],
      [
        "two operations in one",
        { get: { table: "t", id: "a" }, delete: { table: "t", id: "a" } },
        "operations[1]: expected an object with exactly one of",
      ],
      ["no operation", {}, "operations[1]: expected an object with exactly one of"],
      ["an operation without table", { delete: { id: "a" } }, "operations[1].delete.table: is required"],
    ])("%s undoes everything (400) and is named by its index", async (_what, operation, message) => {
      await api.put(`${data}/there`, { n: 1 });
      const answer = await run([{ insert: { table: "t", record: { id: "undone", n: 1 } } }, operation]);
      expect(answer).toMatchObject({
        status: 400,
        body: { id: REQUEST_ID, errors: [{ index: 1, message: expect.stringContaining(message) }] },
      });
      expect((await api.get(`${data}/undone`)).status).toBe(404);
    });

    it("an update with upsert creates, an insert onto a record replaces it", async () => {
      const { body } = await run([
        { update: { table: "t", id: "up", fields: { n: 1 }, upsert: true } },
        { insert: { table: "t", record: { id: "up" } } },
        { get: { table: "t", id: "up", columns: ["n", "xata.version"] } },
      ]);
      expect(body.results[2].columns.n ?? null).toBeNull();
    });

    it("deletes 1,000 records in one", async () => {
      const { body } = await api.post("/db/transactions:main/tables/t/bulk", { records: Array.from({ length: 1000 }, (_, n) => ({ n })) });
      const deleted = await run(body.recordIDs.map((id: string) => ({ delete: { table: "t", id, failIfMissing: true } })));
      expect(deleted.status).toBe(200);
      expect(deleted.body.results.every(({ rows }: { rows: number }) => rows === 1)).toBe(true);
      expect((await api.get(`${data}/${body.recordIDs[500]}`)).status).toBe(404);
    });
  });
}
