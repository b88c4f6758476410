/** Lists databases, and the branches of one. A database is created with its first branch. */
import { type Endpoint, endpoint } from "../endpoint.ts";
import type { JsonSchema } from "../validation.ts";
import type { Services } from "./services.ts";

const NAMED_LIST: JsonSchema = {
  type: "array",
  items: {
    type: "object",
    properties: { name: { type: "string" }, createdAt: { type: "string", format: "date-time" } },
    required: ["name", "createdAt"],
  },
};

export function databaseEndpoints({ records }: Services): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/dbs",
      name: "listDatabases",
      summary: "List the databases",
      tag: "Databases and branches",
      access: "read",
      responses: {
        200: {
          description: "The databases, by name.",
          schema: { type: "object", properties: { databases: NAMED_LIST }, required: ["databases"] },
        },
      },
      async handle({ databases: allowed }) {
        const databases = await records.listDatabases();
        return { status: 200, body: { databases: databases.filter(({ name }) => allowed === undefined || allowed.includes(name)) } };
      },
    }),
    endpoint({
      method: "GET",
      path: "/dbs/{db}",
      name: "listBranches",
      summary: "List the branches of a database",
      tag: "Databases and branches",
      access: "read",
      responses: {
        200: {
          description: "The branches, by name.",
          schema: {
            type: "object",
            properties: { databaseName: { type: "string" }, branches: NAMED_LIST },
            required: ["databaseName", "branches"],
          },
        },
      },
      async handle({ path }) {
        const databaseName = path.database as string;
        const branches = await records.listBranches(databaseName);
        return { status: 200, body: { databaseName, branches: branches.map((branch) => ({ ...branch, state: "active" })) } };
      },
    }),
  ];
}
