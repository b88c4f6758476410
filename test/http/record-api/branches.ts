/** The API over real HTTP: databases and branches. Run on both databases. */
import { describe, expect, it } from "vitest";
import { type Api, TIMESTAMP } from "./api.ts";

export function describeBranches(api: Api): void {
  describe("databases and branches", () => {
    it("a branch is created with its database (201), and refused the second time (422)", async () => {
      const created = await api.put("/db/shop:main", {});
      expect(created).toMatchObject({ status: 201, body: { databaseName: "shop", branchName: "main", status: "completed" } });
      expect((await api.put("/db/shop:main")).status).toBe(422);
    });

    it("databases and their branches are listed", async () => {
      await api.put("/db/lists:main");
      await api.put("/db/lists:dev");
      const databases = await api.get("/dbs");
      expect(databases.status).toBe(200);
      expect(databases.body.databases).toContainEqual({ name: "lists", createdAt: expect.stringMatching(TIMESTAMP) });
      const branches = await api.get("/dbs/lists");
      expect(branches.status).toBe(200);
      expect(branches.body.databaseName).toBe("lists");
      expect(branches.body.branches.map((branch: { name: string }) => branch.name).toSorted()).toEqual(["dev", "main"]);
    });

    it("a branch made from another has its tables and records, and is independent of it", async () => {
      await api.put("/db/copies:main");
      await api.put("/db/copies:main/tables/t", { columns: [{ name: "n", type: "int" }] });
      await api.put("/db/copies:main/tables/t/data/a", { n: 1 });
      expect((await api.put("/db/copies:dev", { from: "main" })).status).toBe(201);
      expect((await api.put("/db/copies:test?from=main")).status).toBe(201);
      await api.patch("/db/copies:dev/tables/t/data/a", { n: 2 });
      expect((await api.get("/db/copies:dev/tables/t/data/a")).body.n).toBe(2);
      expect((await api.get("/db/copies:main/tables/t/data/a")).body.n).toBe(1);
      expect((await api.get("/db/copies:test/tables/t/data/a")).body.n).toBe(1);
    });

    it("a copy onto an existing branch is refused (422), and so is one of a branch that does not exist (400)", async () => {
      await api.put("/db/copyfail:main");
      await api.put("/db/copyfail:dev");
      expect(await api.put("/db/copyfail:dev", { from: "main" })).toMatchObject({
        status: 422,
        body: { message: expect.stringContaining("dev") },
      });
      expect(await api.put("/db/copyfail:new", { from: "nothing" })).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining("nothing") },
      });
    });

    it("a branch returns its schema and state", async () => {
      await api.put("/db/state:main");
      await api.put("/db/state:main/tables/t", { columns: [{ name: "s", type: "string" }] });
      const { status, body } = await api.get("/db/state:main");
      expect(status).toBe(200);
      expect(body).toMatchObject({
        databaseName: "state",
        branchName: "main",
        createdAt: expect.stringMatching(TIMESTAMP),
        state: "active",
        schema: { tables: [{ name: "t", columns: [{ name: "s", type: "string" }] }] },
      });
      expect((await api.get("/db/state:main/schema")).body).toEqual({ schema: body.schema });
    });

    it("a dropped branch is gone, with its tables", async () => {
      await api.put("/db/drops:main");
      await api.put("/db/drops:dev");
      await api.put("/db/drops:dev/tables/t");
      expect(await api.delete("/db/drops:dev")).toMatchObject({ status: 200, body: { status: "completed" } });
      expect((await api.get("/db/drops:dev/tables/t/schema")).status).toBe(404);
      expect((await api.get("/db/drops:dev")).status).toBe(404);
      expect((await api.delete("/db/drops:dev")).status).toBe(404);
    });
  });
}
