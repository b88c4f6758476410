/**
 * Free text search in a table and in a branch. What targets and boosters may hold depends on the table, so the
 * record store checks it.
 */
import { SIMILARITIES } from "../../core/similarity.ts";
import { FUSION_METHODS } from "../../full-text/fusion.ts";
import { SYNTAXES } from "../../full-text/query.ts";
import { MAX_COLUMNS } from "../../records/catalog/schema-editor.ts";
import { searchBranch, searchTable } from "../../search/text/text-answer.ts";
import {
  type BranchSearchRequest,
  DEFAULT_FOUND,
  MAX_BOOSTERS,
  MAX_FOUND,
  MAX_FOUND_OFFSET,
  MAX_SEARCHED_TABLES,
  type TextQuery,
  type TextSearchRequest,
  type TextSearchScope,
} from "../../search/text/text-request.ts";
import { LANGUAGES_OR_NONE } from "../../text/languages.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { COLUMN_NAME, CONSISTENCY, FILTER, objectOf, RECORD } from "../schemas.ts";
import { type JsonSchema, VECTOR } from "../validation.ts";
import type { Services } from "./services.ts";

const QUERY: Readonly<Record<keyof TextQuery, JsonSchema>> = {
  query: {
    type: "string",
    description: "Words: a record is found if it has any of them, and ranks higher with more. An empty query finds every record.",
  },
  fuzziness: {
    type: "integer",
    minimum: 0,
    maximum: 2,
    description: "How many edits a word may be away: a letter more, less or another one, or two neighbours transposed. Default 1.",
  },
  prefix: { enum: ["phrase", "disabled"], description: '"phrase": the last word may be the beginning of one. Default "disabled".' },
  syntax: {
    enum: SYNTAXES,
    description: 'websearch: "phrases in quotes" must be in a record, -words must not. Default words: the query is words and nothing else.',
  },
  language: {
    enum: LANGUAGES_OR_NONE,
    description: "Words with the same stem match as well, for less than the same word. Default: for each column its own.",
  },
  highlight: {
    ...objectOf({ enabled: { type: "boolean" }, encodeHTML: { type: "boolean" } }),
    description: "Marks what was found with <em>, in xata.highlight. Both are on by default.",
  },
  page: objectOf({
    size: { type: "integer", minimum: 0, maximum: MAX_FOUND, description: `Default ${DEFAULT_FOUND}. With 0 only totalCount is found.` },
    offset: { type: "integer", minimum: 0, maximum: MAX_FOUND_OFFSET },
  }),
  minScore: { type: "number", description: "Leave out results below this score; totalCount counts them." },
  explain: { type: "boolean", description: "What each word adds to the score in each column, in xata.explain." },
  consistency: {
    ...CONSISTENCY,
    description: "strong, the default: the answer reflects every write acknowledged before the request.",
  },
};

const SCOPE: Readonly<Record<keyof TextSearchScope, JsonSchema>> = {
  filter: FILTER,
  target: {
    type: "array",
    description:
      'Columns to look in: `"name"`, or `{"column": "name", "weight": 5}` with a weight of 1 to 10; `"*"` is all others with text.',
    maxItems: MAX_COLUMNS,
  },
  boosters: {
    type: "array",
    description: "What boosts a record: `valueBooster`, `numericBooster` or `dateBooster`.",
    maxItems: MAX_BOOSTERS,
  },
};

const HYBRID: Readonly<Record<"vector" | "fusion", JsonSchema>> = {
  vector: {
    ...objectOf(
      {
        column: { ...COLUMN_NAME, description: "A column of type vector." },
        queryVector: { ...VECTOR, description: "As many finite numbers as the column's dimension." },
        similarityFunction: { enum: SIMILARITIES },
      },
      ["column", "queryVector"],
    ),
    description: "Words and vectors in one search: records near this vector are found, too, and both scores are made one.",
  },
  fusion: {
    ...objectOf({
      method: { enum: FUSION_METHODS },
      vectorWeight: { type: "number", minimum: 0, maximum: 1 },
      k: { type: "integer", minimum: 1, maximum: 10_000 },
    }),
    description:
      'How: "standardized" adds the z-scores of both (the default), "rrf" 1 / (k + rank) of each, "linear" the scores. Default vectorWeight 0.5, k 60.',
  },
};

const FOUND: JsonSchema = {
  type: "object",
  properties: {
    records: { type: "array", items: RECORD },
    totalCount: { type: "integer" },
    position: { type: "string", description: "With vector: pages with the same position are of the same state of the records." },
  },
  required: ["records", "totalCount"],
};

export function textSearchEndpoints({ search }: Pick<Services, "search">): Endpoint[] {
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
      body: { required: true, schema: objectOf<TextSearchRequest>({ ...QUERY, ...SCOPE, ...HYBRID }) },
      responses,
      async handle({ records, ref, path, body, signal, budget, isSdk }) {
        const context = { records, search, ref, signal, budget, options: { jsonText: isSdk } };
        return { status: 200, body: await searchTable(context, path.table as string, body) };
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
      async handle({ records, ref, body, signal, budget, isSdk }) {
        return { status: 200, body: await searchBranch({ records, search, ref, signal, budget, options: { jsonText: isSdk } }, body) };
      },
    }),
  ];
}
