/** The API over real HTTP: query. Run on both databases. */
import { beforeAll, describe, expect, it } from "vitest";
import { type Api, REQUEST_ID } from "./api.ts";

export function describeQueries(api: Api): void {
  describe("query", () => {
    const query = (body?: unknown) => api.post("/db/queries:main/tables/t/query", body);
    beforeAll(async () => {
      await api.put("/db/queries:main");
      await api.put("/db/queries:main/tables/t", {
        columns: [
          { name: "n", type: "int" },
          { name: "s", type: "string" },
        ],
      });
      await api.post("/db/queries:main/tables/t/bulk", {
        records: Array.from({ length: 50 }, (_, n) => ({ n, s: n % 2 === 0 ? "even" : "odd" })),
      });
    });

    it("returns 20 records with all columns by default, and a cursor to the next page", async () => {
      const first = await query();
      expect(first.status).toBe(200);
      expect(first.body.records).toHaveLength(20);
      expect(first.body.records[0]).toMatchObject({
        id: expect.any(String),
        n: expect.any(Number),
        s: expect.any(String),
        xata: { version: 0 },
      });
      expect(first.body.meta.page).toEqual({ cursor: expect.any(String), more: true, size: 20 });
    });

    it("filters, sorts, selects and pages", async () => {
      const request = { filter: { s: "odd", n: { $ge: 10, $lt: 20 } }, sort: { n: "desc" }, columns: ["n"], page: { size: 3 } };
      const first = await query(request);
      expect(first.body.records.map(({ n }: { n: number }) => n)).toEqual([19, 17, 15]);
      expect(first.body.records[0]).not.toHaveProperty("s");
      const second = await query({ columns: ["n"], page: { size: 3, after: first.body.meta.page.cursor } });
      expect(second.body.records.map(({ n }: { n: number }) => n)).toEqual([13, 11]);
      expect(second.body.meta.page.more).toBe(false);
    });

    it.each([
      [{ filter: { n: { $near: 1 } } }, "$near"],
      [{ filter: { nothing: 1 } }, "nothing"],
      [{ filter: 5 }, "filter: expected an object, got 5"],
      [{ sort: { n: "up" } }, "sort"],
      [{ page: { size: 0 } }, "page.size: expected an integer from 1 to 1,000, got 0"],
      [{ page: { size: 1001 } }, "page size exceeds max limit of 1000"],
      [{ page: { after: "nonsense" } }, "after"],
      [{ columns: ["nothing"] }, "nothing"],
      [{ limit: 5 }, 'limit: is not known here; expected "filter", "sort", "page", "columns" or "consistency"'],
    ])("%j is refused (400) with the place of the fault", async (body, message) => {
      expect(await query(body)).toMatchObject({ status: 400, body: { id: REQUEST_ID, message: expect.stringContaining(message) } });
    });
  });
}
