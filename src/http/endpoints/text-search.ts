/**
 * Free text search in a table and in a branch. What targets and boosters may hold depends on the table, so the
 * record store checks it.
 */
import { MAX_COLUMNS } from "../../records/catalog/schema-editor.ts";
import {
  DEFAULT_FOUND,
  MAX_BOOSTERS,
  MAX_FOUND,
  MAX_FOUND_OFFSET,
  MAX_SEARCHED_TABLES,
} from "../../records/data/text-search/text-search-request.ts";
import type { BranchSearchRequest, TextQuery, TextSearchRequest, TextSearchScope } from "../../records/requests.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { FILTER, objectOf, RECORD } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";

const QUERY: Readonly<Record<keyof TextQuery, JsonSchema>> = {
  query: {
    type: "string",
    description: "Words: a record is found if it has any of them, and ranks higher with more. An empty query finds every record.",
  },
  fuzziness: { type: "integer", minimum: 0, maximum: 2, description: "How many letters of a word may differ. Default 1." },
  prefix: { enum: ["phrase", "disabled"], description: '"phrase": the last word may be the beginning of one. Default "disabled".' },
  highlight: {
    ...objectOf({ enabled: { type: "boolean" }, encodeHTML: { type: "boolean" } }),
    description: "Marks what was found with <em>, in xata.highlight. Both are on by default.",
  },
  page: objectOf({
    size: { type: "integer", minimum: 0, maximum: MAX_FOUND, description: `Default ${DEFAULT_FOUND}. With 0 only totalCount is found.` },
    offset: { type: "integer", minimum: 0, maximum: MAX_FOUND_OFFSET },
  }),
};

const SCOPE: Readonly<Record<keyof TextSearchScope, JsonSchema>> = {
  filter: FILTER,
  target: {
    type: "array",
    description: 'Columns to look in: `"name"`, or `{"column": "name", "weight": 5}` with a weight of 1 to 10.',
    maxItems: MAX_COLUMNS,
  },
  boosters: {
    type: "array",
    description: "What boosts a record: `valueBooster`, `numericBooster` or `dateBooster`.",
    maxItems: MAX_BOOSTERS,
  },
};

const FOUND: JsonSchema = {
  type: "object",
  properties: { records: { type: "array", items: RECORD }, totalCount: { type: "integer" } },
  required: ["records", "totalCount"],
};

export function textSearchEndpoints(): Endpoint[] {
  const tag = "Search and query";
  const responses = { 200: { description: "Records, best first, with xata.score, xata.table and xata.highlight.", schema: FOUND } };
  return [
    endpoint<TextSearchRequest>({
      method: "POST",
      path: "/db/{db}:{branch}/tables/{table}/search",
      name: "searchTable",
      summary: "Free text search in a table",
      tag,
      access: "read",
      body: { required: true, schema: objectOf<TextSearchRequest>({ ...QUERY, ...SCOPE }) },
      responses,
      async handle({ records, ref, path, body, isSdk }) {
        return { status: 200, body: await records.searchTable(ref, path.table as string, body, { jsonText: isSdk }) };
      },
    }),
    endpoint<BranchSearchRequest>({
      method: "POST",
      path: "/db/{db}:{branch}/search",
      name: "searchBranch",
      summary: "Free text search in several tables",
      tag,
      access: "read",
      body: {
        required: true,
        schema: objectOf<BranchSearchRequest>(
          {
            ...QUERY,
            tables: {
              type: "array",
              maxItems: MAX_SEARCHED_TABLES,
              items: {
                anyOf: [{ type: "string", minLength: 1 }, objectOf({ table: { type: "string", minLength: 1 }, ...SCOPE }, ["table"])],
              },
              description: "Default: all.",
            },
          },
          ["query"],
        ),
      },
      responses,
      async handle({ records, ref, body, isSdk }) {
        return { status: 200, body: await records.searchBranch(ref, body, { jsonText: isSdk }) };
      },
    }),
  ];
}
