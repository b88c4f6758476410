/**
 * Groups of records: aggregate and summarize. What their members may hold depends on the table, so the record
 * store checks it.
 */
import { DEFAULT_PAGE_SIZE } from "../../records/data/read/page-request.ts";
import { MAX_PAGE_SIZE } from "../../records/request-limits.ts";
import type { AggregateRequest, SummarizeRequest } from "../../records/requests.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { COLUMN_LIST, CONSISTENCY, FILTER, objectOf } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";
import { SORT } from "./query.ts";

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

export function aggregateEndpoints(): Endpoint[] {
  const path = "/db/{db}:{branch}/tables/{table}";
  const tag = "Search and query";
  return [
    endpoint<AggregateRequest | undefined>({
      method: "POST",
      path: `${path}/aggregate`,
      name: "aggregateRecords",
      summary: "Counts, sums, percentiles and histograms over the records",
      tag,
      access: "read",
      body: { required: false, schema: objectOf({ filter: FILTER, aggs: AGGREGATIONS }) },
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
        schema: objectOf({
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
