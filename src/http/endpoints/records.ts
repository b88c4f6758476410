/** Single records, and many inserted at once. */
import { recordIdOf } from "../../records/data/values/record-metadata.ts";
import { MAX_BULK } from "../../records/request-limits.ts";
import type { JsonObject } from "../../records/requests.ts";
import { type Endpoint, endpoint, type QueryParameter } from "../endpoint.ts";
import { OPERATION_ERRORS, objectOf, RECORD, RECORD_INPUT } from "../schemas.ts";

const COLUMNS: QueryParameter = {
  name: "columns",
  kind: "columns",
  description: 'Columns to return, separated by commas; "*" for all. Default: the id and the metadata.',
};
const CREATE_ONLY: QueryParameter = { name: "createOnly", kind: "boolean", description: "Fail (422) when the record exists." };
const IF_VERSION: QueryParameter = {
  name: "ifVersion",
  kind: "integer",
  description: "Fail (422) unless the record has this version.",
};

const CONFLICT = { description: "The record exists (createOnly), or has another version (ifVersion). Nothing was changed." };

export function recordEndpoints(): Endpoint[] {
  const table = "/db/{db}:{branch}/tables/{table}";
  const record = `${table}/data/{id}`;
  const tag = "Records";
  return [
    endpoint<JsonObject | undefined>({
      method: "POST",
      path: `${table}/data`,
      name: "insertRecord",
      summary: "Insert a record; the service generates its id",
      tag,
      access: "write",
      query: [COLUMNS],
      body: { required: false, schema: RECORD_INPUT },
      responses: { 201: { description: "The record was inserted.", schema: RECORD } },
      async handle({ records, ref, path, query, body, isSdk }) {
        return { status: 201, body: await records.insertRecord(ref, path.table as string, body ?? {}, { ...query, jsonText: isSdk }) };
      },
    }),
    endpoint<{ records: JsonObject[] }>({
      method: "POST",
      path: `${table}/bulk`,
      name: "insertRecords",
      summary: "Insert up to 1,000 records, all or none",
      tag,
      access: "write",
      indexedBy: "records",
      query: [COLUMNS],
      body: {
        required: true,
        schema: objectOf({ records: { type: "array", items: RECORD_INPUT, maxItems: MAX_BULK } }, ["records"]),
      },
      responses: {
        200: {
          description: "All records were inserted: their ids in the order of the request, or the records when `columns` is given.",
          schema: {
            type: "object",
            properties: {
              recordIDs: { type: "array", items: { type: "string" } },
              records: { type: "array", items: RECORD },
            },
          },
        },
        400: { description: "One of the records cannot be inserted; none was inserted.", schema: OPERATION_ERRORS },
      },
      async handle({ records, ref, path, query, body, isSdk }) {
        const inserted = await records.insertRecords(ref, path.table as string, body.records, { ...query, jsonText: isSdk });
        const { systemNaming } = await records.branch(ref);
        const recordIDs = inserted.map((record) => recordIdOf(record, systemNaming));
        const answer = query.columns === undefined ? { recordIDs } : { records: inserted };
        return { status: 200, body: answer };
      },
    }),
    endpoint({
      method: "GET",
      path: record,
      name: "getRecord",
      summary: "Read a record",
      tag,
      access: "read",
      query: [{ ...COLUMNS, description: 'Columns to return, separated by commas. Default: "*", all.' }],
      responses: { 200: { description: "The record.", schema: RECORD } },
      async handle({ records, ref, path, query, isSdk }) {
        const columns = query.columns ?? ["*"];
        return { status: 200, body: await records.getRecord(ref, path.table as string, path.id as string, { columns, jsonText: isSdk }) };
      },
    }),
    endpoint<JsonObject | undefined>({
      method: "PUT",
      path: record,
      name: "replaceRecord",
      summary: "Create a record with this id, or replace the existing one",
      tag,
      access: "write",
      query: [COLUMNS, CREATE_ONLY, IF_VERSION],
      body: { required: false, schema: RECORD_INPUT },
      responses: {
        201: { description: "The record was created.", schema: RECORD },
        200: { description: "The record was replaced.", schema: RECORD },
        422: CONFLICT,
      },
      async handle({ records, ref, path, query, body, isSdk }) {
        const result = await records.replaceRecord(ref, path.table as string, path.id as string, body ?? {}, { ...query, jsonText: isSdk });
        return { status: result.created ? 201 : 200, body: result.record };
      },
    }),
    endpoint<JsonObject | undefined>({
      method: "PATCH",
      path: record,
      name: "updateRecord",
      summary: "Change the given columns of an existing record",
      tag,
      access: "write",
      query: [COLUMNS, IF_VERSION],
      body: { required: false, schema: RECORD_INPUT },
      responses: { 200: { description: "The record was updated.", schema: RECORD }, 422: CONFLICT },
      async handle({ records, ref, path, query, body, isSdk }) {
        const updated = await records.updateRecord(ref, path.table as string, path.id as string, body ?? {}, { ...query, jsonText: isSdk });
        return { status: 200, body: updated };
      },
    }),
    endpoint<JsonObject | undefined>({
      method: "POST",
      path: record,
      name: "upsertRecord",
      summary: "Change the given columns, or create the record",
      tag,
      access: "write",
      query: [COLUMNS, IF_VERSION],
      body: { required: false, schema: RECORD_INPUT },
      responses: {
        201: { description: "The record was created.", schema: RECORD },
        200: { description: "The record was updated.", schema: RECORD },
        422: CONFLICT,
      },
      async handle({ records, ref, path, query, body, isSdk }) {
        const result = await records.upsertRecord(ref, path.table as string, path.id as string, body ?? {}, { ...query, jsonText: isSdk });
        return { status: result.created ? 201 : 200, body: result.record };
      },
    }),
    endpoint({
      method: "DELETE",
      path: record,
      name: "deleteRecord",
      summary: "Delete a record",
      tag,
      access: "write",
      query: [{ ...COLUMNS, description: 'Columns of the deleted record to return; "*" for all. Without it: 204.' }],
      responses: {
        204: { description: "The record was deleted." },
        200: { description: "The record was deleted; this is what it held.", schema: RECORD },
      },
      async handle({ records, ref, path, query, isSdk }) {
        const removed = await records.deleteRecord(ref, path.table as string, path.id as string, { ...query, jsonText: isSdk });
        return query.columns === undefined ? { status: 204 } : { status: 200, body: removed };
      },
    }),
  ];
}
