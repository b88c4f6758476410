/** Setup by code: databases and branches through the published SDK's XataApiClient. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiClient, openWorld, REGION, sdkClient, WORKSPACE, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("shaping");
});
afterAll(() => world?.stop());

const at = (database: string, branch = "main") => ({ workspace: WORKSPACE, region: REGION, dbBranchName: `${database}:${branch}` });
const databases = async () =>
  (await world.api.databases.getDatabaseList({ pathParams: { workspaceId: WORKSPACE } })).databases.map(({ name }) => name);
const create = (dbName: string, body: object = {}) =>
  world.api.databases.createDatabase({ pathParams: { workspaceId: WORKSPACE, dbName }, body: { region: REGION, ...body } });
const drop = (dbName: string) => world.api.databases.deleteDatabase({ pathParams: { workspaceId: WORKSPACE, dbName } });

describe("databases of a workspace", () => {
  test("create with its first branch, list, inspect, delete", async () => {
    expect(await create("shop")).toMatchObject({ databaseName: "shop", branchName: "main", status: "completed" });
    expect(await databases()).toEqual(["shaping", "shop"]);
    const list = await world.api.databases.getDatabaseList({ pathParams: { workspaceId: WORKSPACE } });
    expect(list.databases[1]).toMatchObject({ name: "shop", region: expect.any(String), createdAt: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect(await world.api.databases.getDatabaseMetadata({ pathParams: { workspaceId: WORKSPACE, dbName: "shop" } })).toMatchObject({
      name: "shop",
    });
    expect(await drop("shop")).toEqual({ status: "completed" });
    expect(await databases()).toEqual(["shaping"]);
  });

  test("the first branch may have another name", async () => {
    await create("named", { branchName: "trunk" });
    const { branches } = await world.api.branch.getBranchList({ pathParams: { workspace: WORKSPACE, region: REGION, dbName: "named" } });
    expect(branches.map(({ name }) => name)).toEqual(["trunk"]);
    await drop("named");
  });

  test("a name in use is a 422, an invalid name a 400, a missing one a 404", async () => {
    await expect(create("shaping")).rejects.toMatchObject({ status: 422, message: expect.stringContaining("shaping") });
    await expect(create("no spaces")).rejects.toMatchObject({ status: 400 });
    await expect(drop("missing")).rejects.toMatchObject({ status: 404, message: expect.stringContaining("missing") });
  });

  test("regions and workspaces are answered", async () => {
    expect((await world.api.databases.listRegions({ pathParams: { workspaceId: WORKSPACE } })).regions).toEqual([
      { id: expect.any(String), name: expect.any(String) },
    ]);
    expect((await world.api.workspaces.getWorkspacesList({})).workspaces).toEqual([
      expect.objectContaining({ id: expect.any(String), name: expect.any(String), slug: expect.any(String) }),
    ]);
  });
});

describe("branches", () => {
  test("create empty, create from another with its records, list, inspect, delete", async () => {
    await create("tree");
    await world.api.table.createTable({ pathParams: { ...at("tree"), tableName: "leaves" } });
    await world.api.table.addTableColumn({ pathParams: { ...at("tree"), tableName: "leaves" }, body: { name: "colour", type: "string" } });
    await world.api.records.insertRecordWithID({
      pathParams: { ...at("tree"), tableName: "leaves", recordId: "l1" },
      body: { colour: "green" },
    });

    expect(await world.api.branch.createBranch({ pathParams: at("tree", "autumn"), body: { from: "main" } })).toMatchObject({
      databaseName: "tree",
      branchName: "autumn",
      status: "completed",
    });
    expect(await world.api.branch.createBranch({ pathParams: at("tree", "winter"), queryParams: { from: "autumn" } })).toMatchObject({
      branchName: "winter",
    });
    await world.api.branch.createBranch({ pathParams: at("tree", "bare"), body: {} });

    const { databaseName, branches } = await world.api.branch.getBranchList({
      pathParams: { workspace: WORKSPACE, region: REGION, dbName: "tree" },
    });
    expect(databaseName).toBe("tree");
    expect(branches.map(({ name }) => name).sort()).toEqual(["autumn", "bare", "main", "winter"]);
    expect(branches[0]).toMatchObject({ state: "active", createdAt: expect.any(String) });

    const details = await world.api.branch.getBranchDetails({ pathParams: at("tree", "winter") });
    expect(details).toMatchObject({
      databaseName: "tree",
      branchName: "winter",
      state: "active",
      schema: { tables: [{ name: "leaves", columns: [{ name: "colour", type: "string" }] }] },
    });

    await world.api.records.updateRecordWithID({
      pathParams: { ...at("tree", "winter"), tableName: "leaves", recordId: "l1" },
      body: { colour: "none" },
    });
    const colour = async (branch: string) =>
      (
        (await world.api.records.getRecord({ pathParams: { ...at("tree", branch), tableName: "leaves", recordId: "l1" } })) as {
          colour?: string;
        }
      ).colour;
    expect([await colour("main"), await colour("autumn"), await colour("winter")]).toEqual(["green", "green", "none"]);

    expect(await world.api.branch.deleteBranch({ pathParams: at("tree", "autumn") })).toEqual({ status: "completed" });
    await expect(world.api.branch.getBranchDetails({ pathParams: at("tree", "autumn") })).rejects.toMatchObject({
      status: 404,
      message: expect.stringContaining("autumn"),
    });
    await drop("tree");
  });

  test("a branch name resolves: exact, fallback, default", async () => {
    await world.api.branch.createBranch({ pathParams: at("shaping", "feature"), body: {} });
    const resolve = async (queryParams: object) =>
      world.api.branch.resolveBranch({ pathParams: { workspace: WORKSPACE, region: REGION, dbName: "shaping" }, queryParams });
    expect(await resolve({ gitBranch: "feature" })).toMatchObject({ branch: "feature", reason: { code: "BRANCH_EXISTS" } });
    expect(await resolve({ gitBranch: "gone", fallbackBranch: "feature" })).toMatchObject({
      branch: "feature",
      reason: { code: "FALLBACK_BRANCH" },
    });
    expect(await resolve({ gitBranch: "gone" })).toMatchObject({ branch: "main", reason: { code: "DEFAULT_BRANCH" } });
    await world.api.branch.deleteBranch({ pathParams: at("shaping", "feature") });
  });

  test("a client on another branch sees only that branch", async () => {
    await world.api.branch.createBranch({ pathParams: at("shaping", "side"), body: { from: "main" } });
    const side = sdkClient(world.port, "shaping", "side");
    await side.db.users.create("only-here", { name: "Side" });
    expect((await side.db.users.read("only-here"))?.name).toBe("Side");
    expect(await world.client.db.users.read("only-here")).toBeNull();
    await world.api.branch.deleteBranch({ pathParams: at("shaping", "side") });
  });
});

test("127.0.0.1 works for XataApiClient as it is", async () => {
  const { XataApiClient } = await import("@xata.io/client");
  const main = `http://127.0.0.1:${world.port}`;
  const api = new XataApiClient({ apiKey: "k", host: { main, workspaces: main } });
  expect((await api.branch.getBranchDetails({ pathParams: at("shaping") })).branchName).toBe("main");
  expect((await apiClient(world.port).branch.getBranchDetails({ pathParams: at("shaping") })).branchName).toBe("main");
});
