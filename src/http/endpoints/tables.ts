/** Tables and their columns: the schema of a branch, changed in place. */
import { formatBranchRef } from "../../records/identifiers.ts";
import type { BranchRef, ColumnSchema } from "../../records/schema.ts";
import type { LanguageOrNone } from "../../text/languages.ts";
import { type ApiResponse, type Endpoint, endpoint } from "../endpoint.ts";
import { COLUMN, COLUMN_LANGUAGE, COLUMN_NAME, COLUMNS, MIGRATION_STATUS, NAME, objectOf, SCHEMA_UPDATE } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";
import { schemaUpdate } from "./schema-edits.ts";
import type { Services } from "./services.ts";

const TABLE_COLUMNS: JsonSchema = objectOf({ columns: COLUMNS }, ["columns"]);
const UPDATED = { 200: { description: "The schema has been changed.", schema: SCHEMA_UPDATE } };

export function tableEndpoints({ records }: Services): Endpoint[] {
  const path = "/db/{db}:{branch}/tables/{table}";
  const tag = "Schema";

  const updated = (ref: BranchRef): Promise<ApiResponse> => schemaUpdate({ records }, ref);

  const columnsAt = (path: string, name: string): Endpoint =>
    endpoint({
      method: "GET",
      path,
      name,
      summary: "The columns of a table",
      tag,
      access: "read",
      responses: { 200: { description: "The columns.", schema: TABLE_COLUMNS } },
      async handle({ ref, path: { table } }) {
        const { columns } = await records.tableSchema(ref, table as string);
        return { status: 200, body: { columns } };
      },
    });

  return [
    endpoint<{ columns?: ColumnSchema[] } | undefined>({
      method: "PUT",
      path,
      name: "createTable",
      summary: "Create a table, with columns if given",
      tag,
      access: "admin",
      body: { required: false, schema: objectOf({ columns: COLUMNS }) },
      responses: {
        201: {
          description: "The table was created.",
          schema: {
            type: "object",
            properties: { branchName: { type: "string" }, tableName: { type: "string" }, status: { enum: ["completed"] } },
            required: ["branchName", "tableName", "status"],
          },
        },
      },
      async handle({ ref, path: { table }, body }) {
        await records.createTable(ref, table as string, body?.columns ?? []);
        return { status: 201, body: { branchName: formatBranchRef(ref), tableName: table, status: "completed" } };
      },
    }),
    endpoint<{ name: string }>({
      method: "PATCH",
      path,
      name: "renameTable",
      summary: "Rename a table",
      tag,
      access: "admin",
      body: { required: true, schema: objectOf({ name: NAME }, ["name"]) },
      responses: UPDATED,
      async handle({ ref, path: { table }, body }) {
        await records.renameTable(ref, table as string, body.name);
        return updated(ref);
      },
    }),
    endpoint({
      method: "DELETE",
      path,
      name: "dropTable",
      summary: "Drop a table with all its records",
      tag,
      access: "admin",
      responses: { 200: { description: "The table was dropped.", schema: MIGRATION_STATUS } },
      async handle({ ref, path: { table } }) {
        await records.dropTable(ref, table as string);
        return { status: 200, body: { status: "completed" } };
      },
    }),
    columnsAt(`${path}/schema`, "getTableSchema"),
    endpoint<{ columns: ColumnSchema[] }>({
      method: "PUT",
      path: `${path}/schema`,
      name: "setTableSchema",
      summary: "Give the table exactly these columns: adds and drops columns, rejects a change of type",
      tag,
      access: "admin",
      body: { required: true, schema: TABLE_COLUMNS },
      responses: UPDATED,
      async handle({ ref, path: { table }, body }) {
        await records.setTableSchema(ref, table as string, body.columns);
        return updated(ref);
      },
    }),
    columnsAt(`${path}/columns`, "listColumns"),
    endpoint<ColumnSchema>({
      method: "POST",
      path: `${path}/columns`,
      name: "addColumn",
      summary: "Add a column",
      tag,
      access: "admin",
      body: { required: true, schema: COLUMN },
      responses: UPDATED,
      async handle({ ref, path: { table }, body }) {
        await records.addColumn(ref, table as string, body);
        return updated(ref);
      },
    }),
    endpoint({
      method: "GET",
      path: `${path}/columns/{column}`,
      name: "getColumn",
      summary: "One column",
      tag,
      access: "read",
      responses: { 200: { description: "The column.", schema: COLUMN } },
      async handle({ ref, path: { table, column } }) {
        return { status: 200, body: await records.column(ref, table as string, column as string) };
      },
    }),
    endpoint<{ name?: string; language?: LanguageOrNone }>({
      method: "PATCH",
      path: `${path}/columns/{column}`,
      name: "renameColumn",
      summary: "Rename a column, or set the language of its texts",
      tag,
      access: "admin",
      body: {
        required: true,
        schema: { ...objectOf({ name: COLUMN_NAME, language: COLUMN_LANGUAGE }), minProperties: 1, maxProperties: 1 },
      },
      responses: UPDATED,
      async handle({ ref, path: { table, column }, body: { name, language } }) {
        if (language !== undefined) await records.setColumnLanguage(ref, table as string, column as string, language);
        if (name !== undefined) await records.renameColumn(ref, table as string, column as string, name);
        return updated(ref);
      },
    }),
    endpoint({
      method: "DELETE",
      path: `${path}/columns/{column}`,
      name: "dropColumn",
      summary: "Drop a column with its values",
      tag,
      access: "admin",
      responses: UPDATED,
      async handle({ ref, path: { table, column } }) {
        await records.dropColumn(ref, table as string, column as string);
        return updated(ref);
      },
    }),
  ];
}
