/** Branches: create (also as a copy), read, drop. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { SYSTEM_NAMINGS, type SystemNaming } from "../../filter/system-columns.ts";
import { toBranchSchema } from "../../records/catalog/document.ts";
import type { BranchSchema } from "../../records/schema.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { MIGRATION_STATUS, NAME, objectOf, SCHEMA } from "../schemas.ts";
import type { Services } from "./services.ts";

interface CreateBranchBody {
  from?: string;
}

const CREATED = {
  type: "object",
  properties: { databaseName: { type: "string" }, branchName: { type: "string" }, status: { enum: ["completed"] } },
  required: ["databaseName", "branchName", "status"],
};

const TABLE_STATISTICS = {
  type: "object",
  properties: {
    name: { type: "string" },
    sizeBytes: { type: "integer", description: "On disk, including indexes, large values, and space left by deleted records." },
    estimatedRows: { type: "integer", description: "The database's own estimate of the number of records; `aggregate` counts them." },
  },
  required: ["name", "sizeBytes", "estimatedRows"],
};

const BRANCH_SEARCH = {
  type: "object",
  properties: {
    ready: { type: "boolean", description: "Its records have been read, and changes are followed. Until then searches wait." },
    lagMs: {
      type: "number",
      description: "Age of the oldest change that searches on this server do not see yet; 0: they see all changes.",
    },
    vectors: { type: "integer", description: "Held by this server." },
    memoryBytes: { type: "integer", description: "Memory that they take in this server." },
    fileBytes: { type: "integer", description: "Disk that those of them take which are not in memory." },
  },
  required: ["ready", "lagMs", "vectors", "memoryBytes", "fileBytes"],
};

export function branchEndpoints({ records, search }: Services): Endpoint[] {
  const path = "/db/{db}:{branch}";
  const tag = "Databases and branches";
  return [
    endpoint<CreateBranchBody | undefined>({
      method: "PUT",
      path,
      name: "createBranch",
      summary: "Create a branch, and its database with the first one",
      tag,
      access: "admin",
      query: [{ name: "from", kind: "name", description: "The branch of the same database to copy, records included." }],
      body: {
        required: false,
        schema: objectOf({
          from: { ...NAME, description: "The branch of the same database to copy, records included." },
          clusterID: { type: "string", description: "Accepted for the SDK; all branches are in one place." },
          metadata: { type: "object", description: "Accepted for the SDK, and ignored." },
        }),
      },
      responses: {
        201: { description: "The branch was created.", schema: CREATED },
        400: { description: "The branch to copy does not exist." },
        422: { description: "A branch of this name exists." },
      },
      async handle({ ref, body, query }) {
        const from = query.from ?? body?.from;
        const { created } = await records.createBranch(ref, from === undefined ? {} : { from });
        if (!created) throw new LodestoneError("CONFLICT", `Branch "${ref.branch}" of database "${ref.database}" exists already.`);
        return { status: 201, body: { databaseName: ref.database, branchName: ref.branch, status: "completed" } };
      },
    }),
    endpoint({
      method: "GET",
      path,
      name: "getBranch",
      summary: "The schema and the state of a branch",
      tag,
      access: "read",
      responses: {
        200: {
          description: "The branch.",
          schema: {
            type: "object",
            properties: {
              databaseName: { type: "string" },
              branchName: { type: "string" },
              createdAt: { type: "string", format: "date-time" },
              id: { type: "string" },
              version: { type: "integer", description: "Grows by one with each change of the schema." },
              state: { enum: ["active"] },
              lastMigrationID: { type: "string" },
              schema: SCHEMA,
            },
            required: ["databaseName", "branchName", "createdAt", "id", "version", "state", "lastMigrationID", "schema"],
          },
        },
      },
      async handle({ ref }) {
        const branch = await records.currentBranch(ref);
        const schema = toBranchSchema(branch);
        const lastMigrationID = (await records.migrations.last(ref)) ?? "";
        return {
          status: 200,
          body: {
            databaseName: ref.database,
            branchName: ref.branch,
            createdAt: branch.createdAt,
            id: branch.incarnation,
            version: branch.version,
            state: "active",
            lastMigrationID,
            schema: withReverseLinks(schema),
          },
        };
      },
    }),
    endpoint({
      method: "GET",
      path: `${path}/statistics`,
      name: "getBranchStatistics",
      summary: "The size of each table of a branch, and how far searches see its changes",
      tag,
      access: "read",
      responses: {
        200: {
          description: "Cheap: reads no table.",
          schema: {
            type: "object",
            properties: { tables: { type: "array", items: TABLE_STATISTICS }, search: BRANCH_SEARCH },
            required: ["tables", "search"],
          },
        },
      },
      async handle({ ref, records: ofCaller }) {
        const tables = await ofCaller.tableStatistics(ref);
        return { status: 200, body: { tables, search: search.branchStatus(ref) } };
      },
    }),
    endpoint<{ name?: string; systemColumns?: SystemNaming }>({
      method: "PATCH",
      path,
      name: "updateBranch",
      summary: "Rename a branch, or change what its answers and SQL call the columns that every table has",
      tag,
      access: "admin",
      body: {
        required: true,
        schema: objectOf({
          name: { ...NAME, description: "The new name; everything in the branch moves with it." },
          systemColumns: {
            enum: SYSTEM_NAMINGS,
            description:
              "dotted: id and xata.version …; underscored: xata_id, xata_version …, as in the SDK for databases with Postgres enabled.",
          },
        }),
      },
      responses: {
        200: { description: "The change was made.", schema: MIGRATION_STATUS },
        422: { description: "A branch of the new name exists." },
      },
      async handle({ ref, body }) {
        // Each is a transaction of its own: of both the first would be done when the second fails.
        if (body.systemColumns !== undefined && body.name !== undefined) {
          throw new LodestoneError("INVALID", "name and systemColumns are two changes; send them in two requests.");
        }
        if (body.systemColumns !== undefined) await records.setSystemNaming(ref, body.systemColumns);
        if (body.name !== undefined) await records.renameBranch(ref, body.name);
        return { status: 200, body: { status: "completed" } };
      },
    }),
    endpoint({
      method: "DELETE",
      path,
      name: "dropBranch",
      summary: "Drop a branch with all its records; a database is dropped with its last branch",
      tag,
      access: "admin",
      responses: { 200: { description: "The branch was dropped.", schema: MIGRATION_STATUS } },
      async handle({ ref }) {
        await records.dropBranch(ref);
        return { status: 200, body: { status: "completed" } };
      },
    }),
    endpoint({
      method: "GET",
      path: `${path}/schema`,
      name: "getSchema",
      summary: "The tables and columns of a branch",
      tag: "Schema",
      access: "read",
      responses: {
        200: { description: "The schema.", schema: { type: "object", properties: { schema: SCHEMA }, required: ["schema"] } },
      },
      async handle({ ref }) {
        return { status: 200, body: { schema: withReverseLinks(await records.schema(ref)) } };
      },
    }),
  ];
}

/** With the columns of other tables that link to each, which the SDK's code generator writes into its files. */
function withReverseLinks({ tables }: BranchSchema): object {
  return {
    tables: tables.map((table) => {
      const revLinks = tables.flatMap((other) =>
        other.columns.filter(({ link }) => link?.table === table.name).map(({ name }) => ({ table: other.name, column: name })),
      );
      return revLinks.length === 0 ? table : { ...table, revLinks };
    }),
  };
}
