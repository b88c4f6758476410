/** Schema changes as operations: what the SDK's migrations calls speak (`schema/compare`, `schema/apply` and their neighbours). */
import type { Migration } from "../../records/catalog/history/history.ts";
import { requireOperations } from "../../records/catalog/history/schema-operations.ts";
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from "../../records/request-limits.ts";
import type { BranchRef } from "../../records/schema.ts";
import { type ApiResponse, type Endpoint, endpoint } from "../endpoint.ts";
import { objectOf, SCHEMA, SCHEMA_UPDATE } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";
import type { Services } from "./services.ts";

const OPERATIONS: JsonSchema = {
  type: "array",
  description: "Each an object with one of addTable, removeTable, renameTable, addColumn, removeColumn, renameColumn.",
};
const EDITS: JsonSchema = {
  type: "object",
  properties: { operations: OPERATIONS, sourceMigrationID: { type: "string" }, targetMigrationID: { type: "string" } },
  required: ["operations"],
};
const COMPARISON: JsonSchema = {
  type: "object",
  properties: { source: SCHEMA, target: SCHEMA, edits: EDITS },
  required: ["source", "target", "edits"],
};
/** As other calls answer them: tables may carry more than a name and columns. */
const GIVEN_SCHEMA: JsonSchema = { type: "object", properties: { tables: { type: "array" } }, required: ["tables"] };
const UPDATED = { 200: { description: "The schema has been changed.", schema: SCHEMA_UPDATE } };

interface GivenEdits {
  operations: unknown;
}

interface PushedBody {
  migrations: { id: string; parentID?: string; title?: string; message?: string; checksum: string; operations: unknown }[];
}

export function schemaEditEndpoints({ records }: Services): Endpoint[] {
  const path = "/db/{db}:{branch}/schema";
  const tag = "Schema edits";
  const { migrations } = records;

  return [
    endpoint<{ schema: unknown; branchOperations?: unknown; schemaOperations?: unknown }>({
      method: "POST",
      path: `${path}/compare`,
      name: "compareWithSchema",
      summary: "The operations that turn the branch's schema into the given one",
      tag,
      access: "read",
      body: {
        required: true,
        schema: objectOf({ schema: GIVEN_SCHEMA, branchOperations: OPERATIONS, schemaOperations: OPERATIONS }, ["schema"]),
      },
      responses: { 200: { description: "Both schemas, and the way from the first to the second.", schema: COMPARISON } },
      async handle({ ref, body }) {
        const given = { source: body.branchOperations, target: body.schemaOperations };
        return comparison(await migrations.compareWithSchema(ref, body.schema, given));
      },
    }),
    endpoint<{ sourceBranchOperations?: unknown; targetBranchOperations?: unknown } | undefined>({
      method: "POST",
      path: `${path}/compare/{other}`,
      name: "compareBranches",
      summary: "The operations that turn the branch's schema into another branch's",
      tag,
      access: "read",
      body: { required: false, schema: objectOf({ sourceBranchOperations: OPERATIONS, targetBranchOperations: OPERATIONS }) },
      responses: { 200: { description: "Both schemas, and the way from the first to the second.", schema: COMPARISON } },
      async handle({ ref, path: { other }, body }) {
        const given = { source: body?.sourceBranchOperations, target: body?.targetBranchOperations };
        return comparison(await migrations.compareBranches(ref, other as string, given));
      },
    }),
    endpoint<{ edits?: GivenEdits } | undefined>({
      method: "POST",
      path: `${path}/preview`,
      name: "previewSchemaEdit",
      summary: "The schema as it would be after operations; changes nothing",
      tag,
      access: "read",
      body: { required: false, schema: objectOf({ edits: EDITS }) },
      responses: {
        200: {
          description: "The schema as it is, and as it would be.",
          schema: { type: "object", properties: { original: SCHEMA, updated: SCHEMA }, required: ["original", "updated"] },
        },
      },
      async handle({ ref, body }) {
        return { status: 200, body: await migrations.preview(ref, body?.edits?.operations ?? [], "edits.operations") };
      },
    }),
    endpoint<{ edits: GivenEdits }>({
      method: "POST",
      path: `${path}/apply`,
      name: "applySchemaEdit",
      summary: "Change the schema by operations, all or none",
      tag,
      access: "admin",
      body: { required: true, schema: objectOf({ edits: EDITS }, ["edits"]) },
      responses: UPDATED,
      async handle({ ref, body }) {
        return updated(await migrations.apply(ref, body.edits.operations, "edits.operations"));
      },
    }),
    endpoint<{ operations: unknown }>({
      method: "POST",
      path: `${path}/update`,
      name: "updateSchema",
      summary: "Change the schema by operations, all or none",
      tag,
      access: "admin",
      body: {
        required: true,
        schema: objectOf({ operations: OPERATIONS, parentID: { type: "string", description: "Accepted for the SDK." } }, ["operations"]),
      },
      responses: UPDATED,
      async handle({ ref, body }) {
        return updated(await migrations.apply(ref, body.operations, "operations"));
      },
    }),
    endpoint<{ page?: { size?: number; after?: string }; since?: string } | undefined>({
      method: "POST",
      path: `${path}/history`,
      name: "getSchemaHistory",
      summary: "What was done to the schema, newest first",
      tag,
      access: "read",
      body: {
        required: false,
        schema: objectOf({
          page: objectOf({
            size: { type: "integer", minimum: 1, maximum: MAX_PAGE_SIZE, description: `Default ${DEFAULT_PAGE_SIZE}.` },
            after: { type: "string", description: "The cursor of the page before." },
          }),
          since: { type: "string", description: "Only what came after the change with this id." },
        }),
      },
      responses: {
        200: {
          description: "One page of changes.",
          schema: {
            type: "object",
            properties: {
              meta: { type: "object", properties: { cursor: { type: "string" }, more: { type: "boolean" } }, required: ["cursor", "more"] },
              logs: { type: "array", items: { type: "object" } },
            },
            required: ["meta", "logs"],
          },
        },
      },
      async handle({ ref, body }) {
        const size = body?.page?.size ?? DEFAULT_PAGE_SIZE;
        const after = body?.page?.after;
        const found = await migrations.list(ref, {
          limit: size + 1,
          ...(after === undefined ? {} : { before: after }),
          ...(body?.since === undefined ? {} : { since: body.since }),
        });
        const logs = found.slice(0, size);
        return {
          status: 200,
          body: { meta: { cursor: logs.at(-1)?.id ?? after ?? "", more: found.length > size }, logs: logs.map(toCommit) },
        };
      },
    }),
    endpoint<PushedBody>({
      method: "POST",
      path: `${path}/push`,
      name: "pushSchemaHistory",
      summary: "Apply changes from another branch's history, oldest first, all or none; those that are already here are skipped",
      tag,
      access: "admin",
      body: { required: true, schema: PUSHED },
      responses: UPDATED,
      async handle({ ref, body }) {
        const pushed = body.migrations.map(({ id, parentID, title, message, checksum, operations }, i) => ({
          id,
          parentId: parentID === "" ? undefined : parentID,
          title,
          message,
          checksum,
          operations: requireOperations(operations, `migrations[${i}].operations`),
        }));
        return updated(await migrations.push(ref, pushed));
      },
    }),
  ];
}

const PUSHED: JsonSchema = objectOf(
  {
    migrations: {
      type: "array",
      items: {
        type: "object",
        properties: {
          id: { type: "string", minLength: 1, maxLength: 255 },
          parentID: { type: "string" },
          title: { type: "string" },
          message: { type: "string" },
          checksum: { type: "string" },
          operations: OPERATIONS,
        },
        required: ["id", "checksum", "operations"],
      },
    },
  },
  ["migrations"],
);

/** The ids of the newest change and the one before it, as every call answers that changes a schema. */
export async function schemaUpdate({ records }: Pick<Services, "records">, ref: BranchRef): Promise<ApiResponse> {
  const [last] = await records.migrations.list(ref, { limit: 1 });
  return updated({ id: last?.id, parentId: last?.parentId });
}

export const updated = ({ id, parentId }: { id: string | undefined; parentId: string | undefined }): ApiResponse => ({
  status: 200,
  body: { migrationID: id ?? "", parentMigrationID: parentId ?? "", status: "completed" },
});

const comparison = ({ operations, ...schemas }: { operations: unknown }): ApiResponse => ({
  status: 200,
  body: { ...schemas, edits: { operations } },
});

function toCommit({ id, parentId, title, message, checksum, createdAt, operations }: Migration): object {
  return {
    id,
    ...(parentId === undefined ? {} : { parentID: parentId }),
    ...(title === undefined ? {} : { title }),
    ...(message === undefined ? {} : { message }),
    checksum,
    createdAt,
    operations,
  };
}
