/**
 * The control plane of the SDK's XataApiClient: what set-up scripts call to create, list and delete databases.
 * There are no workspaces and no regions here; any workspace id is accepted, and means all databases.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { MIGRATION_STATUS, NAME, objectOf } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";
import type { Services } from "./services.ts";

const REGION = "local";

const DATABASE: JsonSchema = {
  type: "object",
  properties: { name: { type: "string" }, region: { type: "string" }, createdAt: { type: "string", format: "date-time" } },
  required: ["name", "region", "createdAt"],
};

const WORKSPACE = { id: "lodestone", unique_id: "lodestone", name: "Lodestone", slug: "lodestone", role: "owner", plan: "pro" };

const listOf = (name: string, items: JsonSchema): JsonSchema => ({
  type: "object",
  properties: { [name]: { type: "array", items } },
  required: [name],
});

export function workspaceEndpoints({ records }: Services): Endpoint[] {
  const list = "/workspaces/{workspace}/dbs";
  const tag = "Workspaces (for the SDK)";

  async function databases(allowed: readonly string[] | undefined): Promise<{ name: string; region: string; createdAt: string }[]> {
    const all = await records.listDatabases();
    return all
      .filter(({ name }) => allowed === undefined || allowed.includes(name))
      .map(({ name, createdAt }) => ({ name, region: REGION, createdAt }));
  }

  return [
    endpoint({
      method: "GET",
      path: "/workspaces",
      name: "listWorkspaces",
      summary: "The one workspace",
      tag,
      access: "read",
      responses: { 200: { description: "One.", schema: listOf("workspaces", { type: "object" }) } },
      handle: async () => ({ status: 200, body: { workspaces: [WORKSPACE] } }),
    }),
    endpoint({
      method: "GET",
      path: "/workspaces/{workspace}/regions",
      name: "listRegions",
      summary: "The one region",
      tag,
      access: "read",
      responses: { 200: { description: "One.", schema: listOf("regions", { type: "object" }) } },
      handle: async () => ({ status: 200, body: { regions: [{ id: REGION, name: REGION }] } }),
    }),
    endpoint({
      method: "GET",
      path: list,
      name: "listWorkspaceDatabases",
      summary: "List the databases",
      tag,
      access: "read",
      responses: { 200: { description: "The databases, by name.", schema: listOf("databases", DATABASE) } },
      handle: async ({ databases: allowed }) => ({ status: 200, body: { databases: await databases(allowed) } }),
    }),
    endpoint({
      method: "GET",
      path: `${list}/{db}`,
      name: "getDatabase",
      summary: "One database",
      tag,
      access: "read",
      responses: { 200: { description: "The database.", schema: DATABASE } },
      async handle({ path, databases: allowed }) {
        const found = (await databases(allowed)).find(({ name }) => name === path.database);
        if (found === undefined) throw new LodestoneError("NOT_FOUND", `Database "${path.database}" does not exist.`);
        return { status: 200, body: found };
      },
    }),
    endpoint<{ branchName?: string; postgresEnabled?: boolean } | undefined>({
      method: "PUT",
      path: `${list}/{db}`,
      name: "createDatabase",
      summary: "Create a database with its first branch",
      tag,
      access: "admin",
      body: {
        required: false,
        schema: objectOf({
          branchName: { ...NAME, description: "The first branch; main by default." },
          region: { type: "string", description: "Accepted for the SDK, like everything that follows; all databases are in one place." },
          postgresEnabled: { type: "boolean", description: "The branch calls its metadata xata_id, xata_version and so on." },
          defaultClusterID: { type: "string" },
          ui: { type: "object" },
          metadata: { type: "object" },
        }),
      },
      responses: {
        201: {
          description: "The database was created.",
          schema: {
            type: "object",
            properties: { databaseName: { type: "string" }, branchName: { type: "string" }, status: { enum: ["completed"] } },
            required: ["databaseName", "branchName", "status"],
          },
        },
        422: { description: "A database of this name exists." },
      },
      async handle({ path, body }) {
        const database = path.database as string;
        const branch = body?.branchName ?? "main";
        const taken = (await records.listDatabases()).some(({ name }) => name === database);
        if (taken || !(await records.createBranch({ database, branch })).created) {
          throw new LodestoneError("CONFLICT", `Database "${database}" exists already.`);
        }
        if (body?.postgresEnabled === true) await records.setSystemNaming({ database, branch }, "underscored");
        return { status: 201, body: { databaseName: database, branchName: branch, status: "completed" } };
      },
    }),
    endpoint<{ newName: string }>({
      method: "POST",
      path: `${list}/{db}/rename`,
      name: "renameDatabase",
      summary: "Rename a database; its branches move with it",
      tag,
      access: "admin",
      body: { required: true, schema: objectOf({ newName: NAME }, ["newName"]) },
      responses: {
        200: { description: "The database under its new name.", schema: DATABASE },
        422: { description: "A database of the new name exists." },
      },
      async handle({ path, body: { newName }, databases: allowed }) {
        if (allowed !== undefined && !allowed.includes(newName)) {
          throw new LodestoneError("FORBIDDEN", `The key is not for a database "${newName}".`);
        }
        await records.renameDatabase(path.database as string, newName);
        return { status: 200, body: (await databases(undefined)).find(({ name }) => name === newName) };
      },
    }),
    endpoint({
      method: "DELETE",
      path: `${list}/{db}`,
      name: "dropDatabase",
      summary: "Drop a database with all its branches and records",
      tag,
      access: "admin",
      responses: { 200: { description: "The database was dropped.", schema: MIGRATION_STATUS } },
      async handle({ path }) {
        await records.dropDatabase(path.database as string);
        return { status: 200, body: { status: "completed" } };
      },
    }),
    endpoint({
      method: "GET",
      path: "/dbs/{db}/resolveBranch",
      name: "resolveBranch",
      summary: "The branch that belongs to a Git branch: the one with its name, else the fallback, else main or the first",
      tag,
      access: "read",
      query: [
        { name: "gitBranch", kind: "text", description: "The name of the Git branch." },
        { name: "fallbackBranch", kind: "text", description: "The branch to use when there is none of that name." },
      ],
      responses: { 200: { description: "The branch, and why it was chosen.", schema: { type: "object" } } },
      async handle({ path, query }) {
        const database = path.database as string;
        const names = (await records.listBranches(database)).map(({ name }) => name);
        const answer = (branch: string, code: string, message: string) => ({ status: 200, body: { branch, reason: { code, message } } });
        const { gitBranch, fallbackBranch } = query;
        if (gitBranch !== undefined && names.includes(gitBranch)) {
          return answer(gitBranch, "BRANCH_EXISTS", `A branch ${gitBranch} exists.`);
        }
        if (fallbackBranch !== undefined && names.includes(fallbackBranch)) {
          return answer(fallbackBranch, "FALLBACK_BRANCH", `Fallback branch (${fallbackBranch}).`);
        }
        const branch = names.includes("main") ? "main" : names[0];
        if (branch === undefined) throw new LodestoneError("NOT_FOUND", `Database "${database}" has no branch.`);
        return answer(branch, "DEFAULT_BRANCH", `Default branch for this database (${branch}).`);
      },
    }),
  ];
}
