/**
 * Records of a table by filter, sort and page, and groups of them: aggregate and summarize. What the members of those
 * may hold depends on the table, so the record store checks it.
 */

import { DEFAULT_PAGE_SIZE, MAX_PAGE_OFFSET, MAX_PAGE_SIZE } from "../../records/request-limits.ts";
import type { AggregateRequest, PageRequest, QueryRequest, SummarizeRequest } from "../../records/requests.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { COLUMN_LIST, CONSISTENCY, FILTER, objectOf, RECORD, SELECTION } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";

/** The record store checks its content, and names errors better than the alternatives of a schema can. */
const SORT: JsonSchema = {
  description: 'A column by direction, or a list: `{"name": "desc"}`, `["name"]`, `[{"a": "asc"}, {"*": "random"}]`.',
  type: ["object", "array", "string"],
};

/** Beyond a maximum: the retired service's texts, which clients compare. */
const PAGE: JsonSchema = objectOf<PageRequest>({
  size: {
    type: "integer",
    minimum: 1,
    maximum: MAX_PAGE_SIZE,
    "x-beyond-maximum": `page size exceeds max limit of ${MAX_PAGE_SIZE}`,
    description: `Default ${DEFAULT_PAGE_SIZE}.`,
  },
  offset: { type: "integer", minimum: 0, maximum: MAX_PAGE_OFFSET, "x-beyond-maximum": `page offset must not exceed ${MAX_PAGE_OFFSET}` },
  after: { type: "string", description: "The page after this cursor." },
  before: { type: "string", description: "The page before this cursor." },
  start: { type: "string", description: "The first page of this cursor's query." },
  end: { type: "string", description: "The last page of this cursor's query." },
});

const AGGREGATIONS: JsonSchema = {
  type: "object",
  description:
    'Aggregations by name: `{"count": "*"}`, `{"count": {"filter": …}}`, `{"sum": {"column": …}}`, `min`, `max`, `average`, `uniqueCount`, `percentiles`, ' +
    "and, with `aggs` of their own, `topValues`, `dateHistogram`, `numericHistogram`.",
};

const SUMMARIES: JsonSchema = {
  type: "object",
  description: 'Summaries by name: `{"count": "*"}`, `{"count": "column"}`, `{"min": …}`, `{"max": …}`, `{"sum": …}`, `{"average": …}`.',
};

export function queryEndpoints(): Endpoint[] {
  const path = "/db/{db}:{branch}/tables/{table}";
  const tag = "Search and query";
  return [
    endpoint<QueryRequest | undefined>({
      method: "POST",
      path: `${path}/query`,
      name: "queryRecords",
      summary: "Records by filter, sort and page",
      tag,
      access: "read",
      body: {
        required: false,
        schema: objectOf<QueryRequest>({ filter: FILTER, sort: SORT, page: PAGE, columns: SELECTION, consistency: CONSISTENCY }),
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
    endpoint<AggregateRequest | undefined>({
      method: "POST",
      path: `${path}/aggregate`,
      name: "aggregateRecords",
      summary: "Counts, sums, percentiles and histograms over the records",
      tag,
      access: "read",
      body: { required: false, schema: objectOf<AggregateRequest>({ filter: FILTER, aggs: AGGREGATIONS }) },
      responses: {
        200: {
          description: "The values, by the names of the request. Without `aggs`: the number of records as `count`.",
          schema: { type: "object", properties: { aggs: { type: "object" } }, required: ["aggs"] },
        },
      },
      async handle({ records, ref, path, body }) {
        return { status: 200, body: await records.aggregate(ref, path.table as string, body ?? {}) };
      },
    }),
    endpoint<SummarizeRequest | undefined>({
      method: "POST",
      path: `${path}/summarize`,
      name: "summarizeRecords",
      summary: "One row per group of equal columns, with summaries",
      tag,
      access: "read",
      body: {
        required: false,
        schema: objectOf<SummarizeRequest>({
          filter: FILTER,
          columns: COLUMN_LIST,
          summaries: SUMMARIES,
          summariesFilter: FILTER,
          sort: SORT,
          page: objectOf({ size: { type: "integer", minimum: 1, maximum: MAX_PAGE_SIZE, description: `Default ${DEFAULT_PAGE_SIZE}.` } }),
          consistency: CONSISTENCY,
        }),
      },
      responses: {
        200: {
          description: "The groups.",
          schema: { type: "object", properties: { summaries: { type: "array", items: { type: "object" } } }, required: ["summaries"] },
        },
      },
      async handle({ records, ref, path, body, isSdk }) {
        return { status: 200, body: await records.summarize(ref, path.table as string, body ?? {}, { jsonText: isSdk }) };
      },
    }),
  ];
}
