/** Many operations as one unit. */
import { MAX_OPERATIONS } from "../../records/request-limits.ts";
import type { TransactionOperation } from "../../records/requests.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { COLUMN_LIST, NAME, OPERATION_ERRORS, objectOf, RECORD_INPUT } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";

const ID: JsonSchema = { type: "string", minLength: 1 };
const IF_VERSION: JsonSchema = { type: "integer", minimum: 0, maximum: 0x7fffffff };

type Members<Kind extends string> = Extract<TransactionOperation, Record<Kind, unknown>>[Kind];

const OPERATION: JsonSchema = {
  ...objectOf({
    insert: objectOf<Members<"insert">>(
      { table: NAME, record: RECORD_INPUT, createOnly: { type: "boolean" }, ifVersion: IF_VERSION, columns: COLUMN_LIST },
      ["table", "record"],
    ),
    update: objectOf<Members<"update">>(
      { table: NAME, id: ID, fields: RECORD_INPUT, ifVersion: IF_VERSION, upsert: { type: "boolean" }, columns: COLUMN_LIST },
      ["table", "id", "fields"],
    ),
    delete: objectOf<Members<"delete">>({ table: NAME, id: ID, failIfMissing: { type: "boolean" }, columns: COLUMN_LIST }, ["table", "id"]),
    get: objectOf<Members<"get">>({ table: NAME, id: ID, columns: COLUMN_LIST }, ["table", "id"]),
  }),
  minProperties: 1,
  maxProperties: 1,
};

const RESULT: JsonSchema = {
  type: "object",
  properties: {
    operation: { enum: ["insert", "update", "delete", "get"] },
    id: { type: "string" },
    rows: { type: "integer" },
    columns: { type: "object" },
  },
  required: ["operation"],
};

export function transactionEndpoints(): Endpoint[] {
  return [
    endpoint<{ operations: TransactionOperation[] }>({
      method: "POST",
      path: "/db/{db}:{branch}/transaction",
      name: "runTransaction",
      summary: `Up to ${MAX_OPERATIONS} operations in order, all or none`,
      tag: "SQL and transactions",
      access: "read",
      mayWrite: true,
      indexedBy: "operations",
      body: {
        required: true,
        schema: objectOf({ operations: { type: "array", items: OPERATION, maxItems: MAX_OPERATIONS } }, ["operations"]),
      },
      responses: {
        200: {
          description: "All were applied: one result each.",
          schema: { type: "object", properties: { results: { type: "array", items: RESULT } }, required: ["results"] },
        },
        400: { description: "One failed; none was applied.", schema: OPERATION_ERRORS },
      },
      async handle({ records, ref, body, readOnly, isSdk }) {
        return { status: 200, body: { results: await records.transaction(ref, body.operations, { jsonText: isSdk, readOnly }) } };
      },
    }),
  ];
}
