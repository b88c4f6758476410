/**
 * Two more forms of schema changes that the SDK can send: plans (the older) and pgroll's operations (the
 * newer). Both are complete when they are answered.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Migration } from "../../records/catalog/history/history.ts";
import { operationsOfPgroll } from "../../records/migrations/pgroll.ts";
import { operationsOf, planMigration } from "../../records/migrations/table-migrations.ts";
import type { BranchRef } from "../../records/schema.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { MAX_LISTED } from "../http-limits.ts";
import { objectOf, SCHEMA_UPDATE } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";
import { updated } from "./schema-edits.ts";
import type { Services } from "./services.ts";

const JOB: JsonSchema = {
  type: "object",
  properties: { jobID: { type: "string" }, type: { enum: ["apply"] }, status: { enum: ["completed"] }, completedAt: { type: "string" } },
  required: ["jobID", "type", "status"],
};

export function migrationEndpoints({ records }: Services): Endpoint[] {
  const path = "/db/{db}:{branch}/migrations";
  const tag = "Schema edits";
  const { migrations } = records;
  const recent = (ref: BranchRef): Promise<Migration[]> => migrations.list(ref, { limit: MAX_LISTED });

  return [
    endpoint({
      method: "GET",
      path,
      name: "listMigrations",
      summary: "The changes of the schema, newest first",
      tag,
      access: "read",
      responses: { 200: { description: `The newest ${MAX_LISTED}.`, schema: { type: "object" } } },
      async handle({ ref }) {
        const { tables } = await records.schema(ref);
        const newTableOrder = tables.map(({ name }) => name);
        const list = (await recent(ref)).map(({ id, parentId, title, createdAt }) => ({
          id,
          ...(parentId === undefined ? {} : { parentID: parentId }),
          ...(title === undefined ? {} : { title }),
          status: "completed",
          localChanges: false,
          createdAt,
          newTableOrder,
        }));
        return { status: 200, body: { migrations: list } };
      },
    }),
    endpoint<{ tables: unknown }>({
      method: "POST",
      path: `${path}/plan`,
      name: "planMigration",
      summary: "What would have to change for the schema given",
      tag,
      access: "read",
      body: { required: true, schema: { type: "object", properties: { tables: { type: "array" } }, required: ["tables"] } },
      responses: { 200: { description: "The plan, to be executed.", schema: { type: "object" } } },
      async handle({ ref, body }) {
        const { version } = await records.currentBranch(ref);
        const { source, target } = await migrations.compareWithSchema(ref, body);
        return { status: 200, body: { version, migration: await planMigration(source, target) } };
      },
    }),
    endpoint<{ migration: unknown }>({
      method: "POST",
      path: `${path}/execute`,
      name: "executeMigration",
      summary: "Carry out a plan, all or nothing",
      tag,
      access: "admin",
      body: { required: true, schema: objectOf({ version: { type: "integer" }, migration: { type: "object" } }, ["version", "migration"]) },
      responses: { 200: { description: "The schema has been changed.", schema: SCHEMA_UPDATE } },
      async handle({ ref, body }) {
        return updated(await migrations.apply(ref, operationsOf(body.migration), "migration"));
      },
    }),
    endpoint<{ name?: string; operations: unknown }>({
      method: "POST",
      path: `${path}/apply`,
      name: "applyMigration",
      summary: "Change the schema by pgroll's operations, all or nothing",
      tag,
      access: "admin",
      body: {
        required: true,
        schema: objectOf(
          {
            name: { type: "string", maxLength: 255 },
            operations: { type: "array", description: "create_table, drop_table, rename_table, add_column, drop_column, rename_column." },
            schema: { type: "string", description: "Accepted for the SDK; a branch is its own schema." },
            adaptTables: { type: "boolean", description: "Accepted for the SDK; every table is one of the API." },
          },
          ["operations"],
        ),
      },
      responses: { 200: { description: "It is done.", schema: objectOf({ jobID: { type: "string" } }, ["jobID"]) } },
      async handle({ ref, body }) {
        const note = body.name === undefined ? {} : { title: body.name };
        const { id } = await migrations.apply(ref, operationsOfPgroll(body.operations, "operations"), "operations", note);
        return { status: 200, body: { jobID: id ?? "" } };
      },
    }),
    endpoint({
      method: "GET",
      path: `${path}/status`,
      name: "getMigrationStatus",
      summary: "The newest change; a change is never in progress",
      tag,
      access: "read",
      responses: { 200: { description: "The newest change.", schema: JOB } },
      async handle({ ref }) {
        const [last] = await migrations.list(ref, { limit: 1 });
        if (last === undefined) throw new LodestoneError("NOT_FOUND", "The schema of this branch was never changed.");
        return { status: 200, body: toJob(last) };
      },
    }),
    endpoint({
      method: "GET",
      path: `${path}/jobs`,
      name: "listMigrationJobs",
      summary: "The changes of the schema, newest first",
      tag,
      access: "read",
      responses: { 200: { description: `The newest ${MAX_LISTED}.`, schema: objectOf({ jobs: { type: "array", items: JOB } }, ["jobs"]) } },
      handle: async ({ ref }) => ({ status: 200, body: { jobs: (await recent(ref)).map(toJob) } }),
    }),
    endpoint({
      method: "GET",
      path: `${path}/jobs/{job}`,
      name: "getMigrationJob",
      summary: "One change of the schema",
      tag,
      access: "read",
      responses: { 200: { description: "The change.", schema: JOB } },
      async handle({ ref, path: { job } }) {
        const found = (await recent(ref)).find(({ id }) => id === job);
        if (found === undefined) throw new LodestoneError("NOT_FOUND", `Migration "${job}" does not exist.`);
        return { status: 200, body: toJob(found) };
      },
    }),
    endpoint({
      method: "GET",
      path: `${path}/history`,
      name: "getMigrationHistory",
      summary: "The changes of the schema, newest first, with their operations",
      tag,
      access: "read",
      responses: { 200: { description: `The newest ${MAX_LISTED}.`, schema: { type: "object" } } },
      async handle({ ref }) {
        const list = (await recent(ref)).map(({ id, parentId, title, createdAt, operations }) => ({
          name: title ?? id,
          schema: "public",
          migration: JSON.stringify({ name: title ?? id, operations }),
          startedAt: createdAt,
          ...(parentId === undefined ? {} : { parent: parentId }),
          done: true,
          migrationType: "pgroll",
        }));
        return { status: 200, body: { migrations: list } };
      },
    }),
  ];
}

const toJob = ({ id, createdAt, operations }: Migration): object => ({
  jobID: id,
  type: "apply",
  status: "completed",
  migration: JSON.stringify({ operations }),
  enqueuedAt: createdAt,
  completedAt: createdAt,
});
