/** SQL over HTTP. The record store decides what a statement may do. */
import type { SqlBatchRequest, SqlRequest, SqlStatement } from "../../records/requests.ts";
import { MAX_BATCH_STATEMENTS } from "../../records/sql/run-sql.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { CONSISTENCY, objectOf } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";

const PARAMS: JsonSchema = { type: ["array", "null"], description: "Values for $1, $2 … in their order." };
const RESPONSE_TYPE: JsonSchema = {
  enum: ["json", "array"],
  description: "Rows as objects in `records` (default), or as lists in `rows`.",
};

const BODY: JsonSchema = objectOf<SqlRequest>(
  {
    statement: { type: "string", minLength: 1 },
    params: PARAMS,
    consistency: CONSISTENCY,
    responseType: RESPONSE_TYPE,
    readOnly: { type: "boolean", description: "true: only SELECT and EXPLAIN, in a read-only transaction, whatever the key may do." },
  },
  ["statement"],
);

const BATCH: JsonSchema = objectOf<Omit<SqlBatchRequest, "readOnly">>(
  {
    statements: {
      type: "array",
      items: objectOf<SqlStatement>({ statement: { type: "string", minLength: 1 }, params: PARAMS }, ["statement"]),
      maxItems: MAX_BATCH_STATEMENTS,
    },
    consistency: CONSISTENCY,
    responseType: RESPONSE_TYPE,
  },
  ["statements"],
);

const ANSWER: JsonSchema = {
  type: "object",
  properties: {
    records: { type: "array", items: { type: "object" } },
    rows: { type: "array", items: { type: "array" } },
    columns: {
      type: "array",
      items: {
        type: "object",
        properties: { name: { type: "string" }, type: { type: "string", description: "The PostgreSQL type: text, int8, _text …" } },
        required: ["name", "type"],
      },
    },
    total: { type: "integer", description: "Rows returned." },
    rowCount: { type: "integer", description: "Rows returned or changed." },
    warning: { type: "string" },
  },
  required: ["columns", "total", "rowCount"],
};

export function sqlEndpoints(): Endpoint[] {
  return [
    endpoint<SqlRequest>({
      method: "POST",
      path: "/db/{db}:{branch}/sql",
      name: "runSql",
      summary: "Run one SELECT, INSERT, UPDATE or DELETE in PostgreSQL's dialect, or EXPLAIN it",
      tag: "SQL and transactions",
      access: "read",
      mayWrite: true,
      body: { required: true, schema: BODY },
      responses: { 200: { description: "Its rows, at most 1,000.", schema: ANSWER } },
      async handle({ records, ref, body, readOnly }) {
        return { status: 200, body: await records.sql(ref, { ...body, readOnly: readOnly || body.readOnly }) };
      },
    }),
    endpoint<SqlBatchRequest>({
      method: "POST",
      path: "/db/{db}:{branch}/sql/batch",
      name: "runSqlBatch",
      summary: "Run several statements in their order as one transaction",
      tag: "SQL and transactions",
      access: "read",
      mayWrite: true,
      body: { required: true, schema: BATCH },
      responses: {
        200: {
          description: "One answer for each statement.",
          schema: { type: "object", properties: { results: { type: "array", items: ANSWER } }, required: ["results"] },
        },
      },
      async handle({ records, ref, body, readOnly }) {
        return { status: 200, body: { results: await records.sqlBatch(ref, { ...body, readOnly }) } };
      },
    }),
  ];
}
