/**
 * JSON Schemas that several endpoints share. Those in NAMED_SCHEMAS become components of /openapi.json and are
 * referred to by name there.
 */
import { MAX_DIMENSION, MIN_COLUMN_DIMENSION } from "../dimension.ts";
import { TYPES_NOT_OFFERED } from "../records/catalog/column-types.ts";
import { MAX_COLUMNS } from "../records/catalog/schema-editor.ts";
import { COLUMN_TYPES } from "../records/column-traits.ts";
import { COLUMN_NAME_PATTERN, NAME_PATTERN } from "../records/identifiers.ts";
import { MAX_SELECTED } from "../records/request-limits.ts";
import { LANGUAGES_OR_NONE } from "../text/languages.ts";
import { API_ERRORS } from "./status.ts";
import type { JsonSchema } from "./validation.ts";

/**
 * An object with exactly these members; those in `required` must be there. `objectOf<QueryRequest>` is refused by the
 * compiler when the type has other members than the schema.
 */
export function objectOf<T extends object>(
  properties: Readonly<Record<keyof T, JsonSchema>>,
  required: readonly (keyof T & string)[] = [],
): JsonSchema {
  return { type: "object", properties, required, additionalProperties: false };
}

export const NAME: JsonSchema = { type: "string", pattern: NAME_PATTERN };
export const COLUMN_NAME: JsonSchema = { type: "string", pattern: COLUMN_NAME_PATTERN };

const ERROR_CODE: JsonSchema = { enum: Object.keys(API_ERRORS) };

export const ERROR: JsonSchema = {
  type: "object",
  description: "What went wrong. `id` is the request's id, also in the header X-Request-Id and in the server's log.",
  properties: { id: { type: "string" }, code: ERROR_CODE, message: { type: "string" } },
  required: ["id", "code", "message"],
};

export const OPERATION_ERRORS: JsonSchema = {
  type: "object",
  description: "Which operations (or records) failed, by their index in the request. Nothing was applied.",
  properties: {
    id: { type: "string" },
    code: ERROR_CODE,
    errors: {
      type: "array",
      items: {
        type: "object",
        properties: { index: { type: "integer" }, code: ERROR_CODE, message: { type: "string" }, status: { type: "integer" } },
        required: ["index", "code", "message"],
      },
    },
  },
  required: ["id", "code", "errors"],
};

export const COLUMN_LANGUAGE: JsonSchema = {
  enum: LANGUAGES_OR_NONE,
  description: "Of the texts of a string, text, email or multiple column: searches find words of the same stem. Default: none.",
};

export const COLUMN: JsonSchema = {
  ...objectOf(
    {
      name: COLUMN_NAME,
      type: { enum: COLUMN_TYPES, "x-not-offered": TYPES_NOT_OFFERED },
      link: { description: "For the type link: the table that it points to.", ...objectOf({ table: NAME }, ["table"]) },
      vector: {
        description: "For the type vector: how many float32 elements each value has.",
        ...objectOf({ dimension: { type: "integer", minimum: MIN_COLUMN_DIMENSION, maximum: MAX_DIMENSION } }, ["dimension"]),
      },
      notNull: { type: "boolean" },
      unique: { type: "boolean" },
      defaultValue: {
        type: "string",
        description: `As text, whatever the type; "now" for datetime. Also as PostgreSQL prints it: now(), '5'::bigint.`,
      },
      comment: { type: "string", description: "Kept, without effect." },
      language: COLUMN_LANGUAGE,
    },
    ["name", "type"],
  ),
  // Columns of these types have a member of that name.
  "x-not-offered": TYPES_NOT_OFFERED,
};

export const COLUMNS: JsonSchema = { type: "array", items: COLUMN, maxItems: MAX_COLUMNS };

const TABLE: JsonSchema = objectOf(
  {
    name: NAME,
    columns: COLUMNS,
    revLinks: {
      description: "Columns of other tables that link here.",
      type: "array",
      items: objectOf({ table: NAME, column: COLUMN_NAME }, ["table", "column"]),
    },
  },
  ["name", "columns"],
);

export const SCHEMA: JsonSchema = objectOf({ tables: { type: "array", items: TABLE } }, ["tables"]);

/** What a write endpoint takes as the values of a record; the record store checks columns and their types. */
export const RECORD_INPUT: JsonSchema = { type: "object", description: "Values by column name." };

export const RECORD: JsonSchema = {
  type: "object",
  description: "A record: its id, its metadata, and the requested columns.",
  properties: {
    id: { type: "string" },
    xata: {
      type: "object",
      properties: {
        version: { type: "integer" },
        createdAt: { type: "string", format: "date-time" },
        updatedAt: { type: "string", format: "date-time" },
      },
      required: ["version", "createdAt", "updatedAt"],
    },
  },
  required: ["id", "xata"],
};

/** Columns to return: names, `*`, paths into links and json, or objects for links, forward and reverse. */
export const SELECTION: JsonSchema = { type: "array", items: { type: ["string", "object"] }, maxItems: MAX_SELECTED };

export const COLUMN_LIST: JsonSchema = { type: "array", items: { type: "string" }, maxItems: MAX_SELECTED };

export const FILTER: JsonSchema = {
  type: "object",
  description: "A filter expression. Its members are ANDed; see the documentation for the operators.",
};

export const CONSISTENCY: JsonSchema = { enum: ["strong", "eventual"] };

export const MIGRATION_STATUS: JsonSchema = {
  type: "object",
  properties: { status: { enum: ["completed"] } },
  required: ["status"],
};

export const SCHEMA_UPDATE: JsonSchema = {
  type: "object",
  properties: { migrationID: { type: "string" }, parentMigrationID: { type: "string" }, status: { enum: ["completed"] } },
  required: ["migrationID", "parentMigrationID", "status"],
};

export const NAMED_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  Error: ERROR,
  OperationErrors: OPERATION_ERRORS,
  Column: COLUMN,
  Table: TABLE,
  Schema: SCHEMA,
  RecordInput: RECORD_INPUT,
  Record: RECORD,
  Selection: SELECTION,
  Filter: FILTER,
  SchemaUpdate: SCHEMA_UPDATE,
};
