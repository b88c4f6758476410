/** The API over real HTTP: tables and columns. Run on both databases. */
import { beforeAll, describe, expect, it } from "vitest";
import { type Api, REQUEST_ID } from "./api.ts";

export function describeTables(api: Api): void {
  describe("tables and columns", () => {
    beforeAll(async () => {
      await api.put("/db/schemas:main");
    });
    const base = "/db/schemas:main/tables";

    it("a table is created (201) with columns of every type", async () => {
      const columns = [
        { name: "a", type: "string" },
        { name: "b", type: "text" },
        { name: "c", type: "email" },
        { name: "d", type: "int", notNull: true, defaultValue: "7" },
        { name: "e", type: "float" },
        { name: "f", type: "bool" },
        { name: "g", type: "datetime" },
        { name: "h", type: "multiple" },
        { name: "i", type: "json" },
        { name: "j", type: "link", link: { table: "every" } },
        { name: "k", type: "vector", vector: { dimension: 3 } },
        { name: "l", type: "string", unique: true },
      ];
      const created = await api.put(`${base}/every`, { columns });
      expect(created).toMatchObject({ status: 201, body: { branchName: "schemas:main", tableName: "every", status: "completed" } });
      const schema = await api.get(`${base}/every/schema`);
      expect(schema.body.columns).toMatchObject(columns);
      expect((await api.get(`${base}/every/columns`)).body).toEqual(schema.body);
    });

    it("a table that exists is not created again (422)", async () => {
      await api.put(`${base}/twice`);
      expect(await api.put(`${base}/twice`)).toMatchObject({
        status: 422,
        body: { id: REQUEST_ID, message: expect.stringContaining("twice") },
      });
    });

    it("a table is renamed, and dropped", async () => {
      await api.put(`${base}/old`);
      expect(await api.patch(`${base}/old`, { name: "new" })).toMatchObject({
        status: 200,
        body: { status: "completed", migrationID: expect.any(String) },
      });
      expect((await api.get(`${base}/old/schema`)).status).toBe(404);
      expect((await api.get(`${base}/new/schema`)).status).toBe(200);
      expect(await api.delete(`${base}/new`)).toMatchObject({ status: 200, body: { status: "completed" } });
      expect((await api.get(`${base}/new/schema`)).status).toBe(404);
      expect((await api.delete(`${base}/new`)).status).toBe(404);
    });

    it("a column is added, read, renamed with its values, and dropped", async () => {
      await api.put(`${base}/cols`);
      expect((await api.post(`${base}/cols/columns`, { name: "n", type: "int" })).status).toBe(200);
      await api.put(`${base}/cols/data/x`, { n: 5 });
      expect((await api.get(`${base}/cols/columns/n`)).body).toMatchObject({ name: "n", type: "int" });
      expect((await api.patch(`${base}/cols/columns/n`, { name: "m" })).status).toBe(200);
      expect((await api.get(`${base}/cols/data/x`)).body).toMatchObject({ id: "x", m: 5 });
      expect((await api.delete(`${base}/cols/columns/m`)).status).toBe(200);
      expect((await api.get(`${base}/cols/columns/m`)).status).toBe(404);
      expect((await api.get(`${base}/cols/data/x`)).body).not.toHaveProperty("m");
    });

    it("a table's columns are set as a whole: missing ones are added, surplus ones dropped, a change of type is refused", async () => {
      await api.put(`${base}/set`, {
        columns: [
          { name: "a", type: "int" },
          { name: "b", type: "int" },
        ],
      });
      const columns = [
        { name: "b", type: "int" },
        { name: "c", type: "text" },
      ];
      expect((await api.put(`${base}/set/schema`, { columns })).status).toBe(200);
      expect((await api.get(`${base}/set/schema`)).body.columns).toMatchObject(columns);
      const refused = await api.put(`${base}/set/schema`, { columns: [{ name: "b", type: "text" }] });
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expect(refused.status).toBeLessThan(500);
      expect((await api.get(`${base}/set/schema`)).body.columns).toMatchObject(columns);
    });

    it.each([
      ["a type that there is not", { name: "x", type: "blob" }, 'type: expected "string", "text"'],
      ["a vector without dimension", { name: "x", type: "vector" }, "vector"],
      [
        "a vector of dimension 1",
        { name: "x", type: "vector", vector: { dimension: 1 } },
        "vector.dimension: expected an integer from 2 to 10,000, got 1",
      ],
      [
        "a vector of dimension 10,001",
        { name: "x", type: "vector", vector: { dimension: 10_001 } },
        "vector.dimension: expected an integer from 2 to 10,000, got 10001",
      ],
      ["a link without table", { name: "x", type: "link" }, "link"],
      ["a name with a quote", { name: 'x"y', type: "int" }, "name: expected a string that matches"],
      ["a member that there is not", { name: "x", type: "int", size: 3 }, "size: is not known here"],
    ])("%s is refused (400), and no column comes of it", async (_what, column, message) => {
      await api.put(`${base}/faulty`);
      expect(await api.post(`${base}/faulty/columns`, column)).toMatchObject({
        status: 400,
        body: { id: REQUEST_ID, message: expect.stringContaining(message) },
      });
      expect((await api.get(`${base}/faulty/schema`)).body.columns).toEqual([]);
    });
  });
}
