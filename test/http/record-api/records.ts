/** The API over real HTTP: records. Run on both databases. */
import { beforeAll, describe, expect, it } from "vitest";
import { type Api, NEW_METADATA, REQUEST_ID } from "./api.ts";

export function describeRecords(api: Api): void {
  describe("records", () => {
    const data = "/db/records:main/tables/people/data";
    beforeAll(async () => {
      await api.put("/db/records:main");
      const columns = [
        { name: "name", type: "string" },
        { name: "age", type: "int" },
        { name: "code", type: "string", unique: true },
        { name: "email", type: "email" },
        { name: "lab", type: "vector", vector: { dimension: 2 } },
      ];
      await api.put("/db/records:main/tables/people", { columns });
    });

    it("an insert is 201 with the new id and metadata, or, with columns, the record", async () => {
      const { status, body } = await api.post(data, { name: "Ada", age: 36 });
      expect(status).toBe(201);
      expect(body).toEqual({ id: expect.stringMatching(/^rec_[0-9a-v]{20}$/), xata: NEW_METADATA });
      const full = await api.post(`${data}?columns=*`, { name: "Ada", lab: [1, 0.5] });
      expect(full.body).toMatchObject({ name: "Ada", lab: [1, 0.5], xata: { version: 0 } });
      const some = await api.post(`${data}?columns=name,age`, { name: "Ada", age: 1, code: "only" });
      expect(some.body).toEqual({ id: expect.any(String), name: "Ada", age: 1, xata: NEW_METADATA });
    });

    it("a record is read with the requested columns", async () => {
      await api.put(`${data}/read`, { name: "Grace", age: 85 });
      expect((await api.get(`${data}/read`)).body).toMatchObject({ id: "read", name: "Grace", age: 85, xata: NEW_METADATA });
      expect((await api.get(`${data}/read?columns=name`)).body).toEqual({ id: "read", name: "Grace", xata: NEW_METADATA });
    });

    it("PUT creates (201), then replaces (200), and drops what is not given", async () => {
      expect((await api.put(`${data}/put`, { name: "a", age: 1 })).status).toBe(201);
      const replaced = await api.put(`${data}/put?columns=*`, { name: "b" });
      expect(replaced).toMatchObject({ status: 200, body: { id: "put", name: "b", xata: { version: 1 } } });
      expect(replaced.body.age ?? null).toBeNull();
    });

    it("PATCH changes what is given (200), and is 404 if there is no such record", async () => {
      await api.put(`${data}/patch`, { name: "a", age: 1 });
      expect(await api.patch(`${data}/patch?columns=*`, { age: 2 })).toMatchObject({
        status: 200,
        body: { name: "a", age: 2, xata: { version: 1 } },
      });
      expect(await api.patch(`${data}/nobody`, { age: 2 })).toMatchObject({
        status: 404,
        body: { id: REQUEST_ID, message: expect.stringContaining("nobody") },
      });
      expect((await api.get(`${data}/nobody`)).status).toBe(404);
    });

    it("POST with an id creates (201), then updates (200)", async () => {
      expect((await api.post(`${data}/upsert`, { name: "a", age: 1 })).status).toBe(201);
      expect((await api.post(`${data}/upsert`, { age: 2 })).status).toBe(200);
      expect((await api.get(`${data}/upsert`)).body).toMatchObject({ name: "a", age: 2, xata: { version: 1 } });
    });

    it("createOnly and ifVersion conflicts are 422 and change nothing", async () => {
      await api.put(`${data}/conflict`, { name: "first" });
      expect((await api.put(`${data}/conflict?createOnly=true`, { name: "second" })).status).toBe(422);
      expect((await api.put(`${data}/conflict?ifVersion=3`, { name: "second" })).status).toBe(422);
      expect((await api.patch(`${data}/conflict?ifVersion=3`, { name: "second" })).status).toBe(422);
      expect((await api.post(`${data}/conflict?ifVersion=3`, { name: "second" })).status).toBe(422);
      expect((await api.get(`${data}/conflict`)).body).toMatchObject({ name: "first", xata: { version: 0 } });
      expect((await api.patch(`${data}/conflict?ifVersion=0`, { name: "second" })).status).toBe(200);
      expect((await api.get(`${data}/conflict`)).body).toMatchObject({ name: "second", xata: { version: 1 } });
    });

    it("DELETE is 204 without a body, with columns 200 and the removed record, and then 404", async () => {
      await api.put(`${data}/delete`, { name: "gone" });
      const removed = await api.delete(`${data}/delete`);
      expect(removed.status).toBe(204);
      expect(removed.text).toBe("");
      await api.put(`${data}/delete2`, { name: "gone", age: 3 });
      expect(await api.delete(`${data}/delete2?columns=name`)).toMatchObject({ status: 200, body: { id: "delete2", name: "gone" } });
      await api.put(`${data}/delete3`, { name: "gone", age: 3 });
      expect(await api.delete(`${data}/delete3?columns=*`)).toMatchObject({ status: 200, body: { id: "delete3", name: "gone", age: 3 } });
      for (const id of ["delete", "delete2", "delete3"]) {
        expect(await api.delete(`${data}/${id}`)).toMatchObject({
          status: 404,
          body: { id: REQUEST_ID, message: expect.stringContaining(id) },
        });
        expect((await api.get(`${data}/${id}`)).status).toBe(404);
      }
    });

    it.each([
      ["/db/nodb:main/tables/people/data/x", "nodb"],
      ["/db/records:nobranch/tables/people/data/x", "nobranch"],
      ["/db/records:main/tables/notable/data/x", "notable"],
    ])("what is missing is 404 and named: %s", async (path, missing) => {
      for (const answer of [
        await api.get(path),
        await api.delete(path),
        await api.put(path, {}),
        await api.patch(path, {}),
        await api.post(path, {}),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { id: REQUEST_ID, message: expect.stringContaining(missing) } });
      }
    });

    it("ids with dots, tildes, colons and percent-encoding are kept as they are", async () => {
      for (const id of ["a.b", "a~b", "a:b", "A-b_c"]) {
        expect((await api.put(`${data}/${encodeURIComponent(id)}`, { name: id })).status).toBe(201);
        expect((await api.get(`${data}/${encodeURIComponent(id)}`)).body).toMatchObject({ id, name: id });
      }
    });

    it("bulk inserts up to 1,000 records at once", async () => {
      const records = Array.from({ length: 1000 }, (_, i) => ({ name: `bulk ${i}`, age: i }));
      const { status, body } = await api.post("/db/records:main/tables/people/bulk", { records });
      expect(status).toBe(200);
      expect(body.recordIDs).toHaveLength(1000);
      expect(new Set(body.recordIDs).size).toBe(1000);
      expect((await api.get(`${data}/${body.recordIDs[999]}`)).body).toMatchObject({ name: "bulk 999", age: 999 });
      const full = await api.post("/db/records:main/tables/people/bulk?columns=name", { records: [{ name: "one" }] });
      expect(full.body.records).toMatchObject([{ id: expect.any(String), name: "one", xata: NEW_METADATA }]);
    });

    it("bulk refuses all records when one is faulty", async () => {
      const count = async () =>
        (await api.post("/db/records:main/sql", { statement: 'SELECT count(*)::int AS n FROM "people"' })).body.records[0].n;
      const before = await count();
      const faulty = await api.post("/db/records:main/tables/people/bulk", { records: [{ name: "ok" }, { age: "old" }] });
      expect(faulty).toMatchObject({
        status: 400,
        body: { id: REQUEST_ID, errors: [{ index: 1, message: expect.stringContaining("age") }] },
      });
      const notObject = await api.post("/db/records:main/tables/people/bulk", { records: [{ name: "ok" }, 5] });
      expect(notObject).toMatchObject({
        status: 400,
        body: { id: REQUEST_ID, errors: [{ index: 1, message: expect.stringContaining("records[1]: expected an object, got 5") }] },
      });
      expect(await count()).toBe(before);
    });

    it.each([
      ["an unknown column", { nothing: 1 }, "nothing"],
      ["a fraction for an int", { age: 1.5 }, "age"],
      ["a list for a record", [], "expected an object"],
    ])("%s is refused (400), and nothing is inserted", async (_what, record, message) => {
      for (const answer of [
        await api.post(data, record),
        await api.put(`${data}/refused`, record),
        await api.post(`${data}/refused`, record),
      ]) {
        expect(answer).toMatchObject({ status: 400, body: { id: REQUEST_ID, message: expect.stringContaining(message) } });
      }
      expect((await api.get(`${data}/refused`)).status).toBe(404);
    });
  });
}
