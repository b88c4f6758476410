/** Records of a table by filter, sort and page. */
import { DEFAULT_PAGE_SIZE, OFFSET_EXCEEDED, PAGE_SIZE_EXCEEDED } from "../../records/data/read/page-request.ts";
import { MAX_PAGE_OFFSET, MAX_PAGE_SIZE } from "../../records/request-limits.ts";
import type { QueryRequest } from "../../records/requests.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { CONSISTENCY, FILTER, objectOf, RECORD, SELECTION } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";

/** The record store checks its content, and names errors better than the alternatives of a schema can. */
export const SORT: JsonSchema = {
  description: 'A column by direction, or a list: `{"name": "desc"}`, `["name"]`, `[{"a": "asc"}, {"*": "random"}]`.',
  type: ["object", "array", "string"],
};

const PAGE: JsonSchema = objectOf({
  size: {
    type: "integer",
    minimum: 1,
    maximum: MAX_PAGE_SIZE,
    "x-beyond-maximum": PAGE_SIZE_EXCEEDED,
    description: `Default ${DEFAULT_PAGE_SIZE}.`,
  },
  offset: { type: "integer", minimum: 0, maximum: MAX_PAGE_OFFSET, "x-beyond-maximum": OFFSET_EXCEEDED },
  after: { type: "string", description: "The page after this cursor." },
  before: { type: "string", description: "The page before this cursor." },
  start: { type: "string", description: "The first page of this cursor's query." },
  end: { type: "string", description: "The last page of this cursor's query." },
});

export function queryEndpoints(): Endpoint[] {
  return [
    endpoint<QueryRequest | undefined>({
      method: "POST",
      path: "/db/{db}:{branch}/tables/{table}/query",
      name: "queryRecords",
      summary: "Records by filter, sort and page",
      tag: "Search and query",
      access: "read",
      body: {
        required: false,
        schema: objectOf({ filter: FILTER, sort: SORT, page: PAGE, columns: SELECTION, consistency: CONSISTENCY }),
      },
      responses: {
        200: {
          description: "One page. `meta.page.cursor` leads to the next, and to the first, the last and the one before.",
          schema: {
            type: "object",
            properties: {
              records: { type: "array", items: RECORD },
              meta: {
                type: "object",
                properties: {
                  page: {
                    type: "object",
                    properties: { cursor: { type: "string" }, more: { type: "boolean" }, size: { type: "integer" } },
                    required: ["cursor", "more", "size"],
                  },
                },
                required: ["page"],
              },
            },
            required: ["records", "meta"],
          },
        },
      },
      async handle({ records, ref, path, body, isSdk }) {
        return { status: 200, body: await records.query(ref, path.table as string, body ?? {}, { jsonText: isSdk }) };
      },
    }),
  ];
}
