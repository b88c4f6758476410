/**
 * What an agent can do: each tool is one or two requests of the public HTTP API, which checks names, columns, filters and
 * rights. Descriptions are written for models: what a tool is for, and what to look up first.
 */
import type { ToolAnnotations } from "@modelcontextprotocol/server";
import { type Api, type ApiAnswer, pathOf } from "./api.ts";

export interface Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly input: { readonly properties: Readonly<Record<string, object>>; readonly required: readonly string[] };
  readonly annotations: ToolAnnotations;
  /** @param asked  fits `input`. */
  readonly run: (api: Api, asked: ToolArguments) => Promise<ApiAnswer>;
}

/** Arguments of all tools, by their names. */
export interface ToolArguments {
  readonly database: string;
  readonly branch?: string;
  readonly table: string;
  readonly id: string;
  readonly ids: readonly string[];
  readonly columns?: readonly string[];
  readonly size?: number;
  readonly offset?: number;
  readonly cursor?: string;
  readonly filter?: object;
  readonly column: string;
  readonly queryVector?: readonly number[];
  readonly likeRecord?: string;
  readonly [option: string]: unknown;
}

const DEFAULT_SIZE = 10;
const MAX_SIZE = 100;
/** More are made or deleted by calling the tool again: one mistake of a model should not cost more. */
const MAX_WRITTEN = 100;

const READS: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };

const DATABASE = { type: "string", description: "Its name, as list_databases gives it." };
const BRANCH = { type: "string", description: 'Default: "main".' };
const TABLE = { type: "string", description: "Its name, as describe_tables gives it." };
const COLUMNS = {
  type: "array",
  items: { type: "string" },
  description: "Columns to return. Default: all. Fewer make room for more records.",
};
const SIZE = { type: "integer", minimum: 1, maximum: MAX_SIZE, description: `How many records. Default ${DEFAULT_SIZE}.` };
const OFFSET = { type: "integer", minimum: 0, description: "Leave out that many of the first." };
const FILTER = {
  type: "object",
  description:
    'Members are ANDed. {"price": {"$lt": 20}, "tags": {"$includes": "new"}}. Operators: $is $isNot $any $lt $le $gt $ge $contains ' +
    '$iContains $startsWith $endsWith $pattern (* and ?) $includes; {"$any": [f, g]}, {"$not": f}, {"$exists": "column"}.',
};
const VECTOR = { type: "array", items: { type: "number" }, description: "As many numbers as the column's dimension." };
const SIMILARITY = { type: "string", description: "cosineSimilarity (default), l1, l2 or dotProduct." };

const IN_BRANCH = { database: DATABASE, branch: BRANCH };
const IN_TABLE = { ...IN_BRANCH, table: TABLE };

const branchPath = ({ database, branch = "main" }: ToolArguments): string => pathOf("db", `${database}:${branch}`);
const tablePath = (asked: ToolArguments): string => branchPath(asked) + pathOf("tables", asked.table);

export const READ_TOOLS: readonly Tool[] = [
  {
    name: "list_databases",
    description: "Lists the databases; with a database, its branches. Begin here.",
    input: { properties: { database: { type: "string", description: "List the branches of this one." } }, required: [] },
    annotations: READS,
    run: (api, { database }) => api("GET", database === undefined ? "/dbs" : pathOf("dbs", database)),
  },
  {
    name: "describe_tables",
    description:
      "The tables of a database with their columns, types, links, and the dimensions of vectors. Look here before you search or filter.",
    input: { properties: { ...IN_BRANCH, table: { type: "string", description: "Only this one." } }, required: ["database"] },
    annotations: READS,
    run: (api, asked) => (asked.table === undefined ? api("GET", `${branchPath(asked)}/schema`) : api("GET", `${tablePath(asked)}/schema`)),
  },
  {
    name: "search",
    description:
      "Finds records by words, best first (BM25): in one table, or without `table` in all tables of the database. With `vector` and a " +
      "table it is a hybrid search, which finds by words and by meaning. Use vector_search for meaning alone.",
    input: {
      properties: {
        ...IN_TABLE,
        query: { type: "string", description: "Words. A record needs one of them; more rank it higher." },
        syntax: { enum: ["words", "websearch"], description: 'websearch: "phrases" must occur, -words must not.' },
        fuzziness: { type: "integer", minimum: 0, maximum: 2, description: "Typing errors in a word. Default 1." },
        language: { type: "string", description: 'Match words with the same stem, too: "english", "german" …' },
        filter: FILTER,
        vector: {
          type: "object",
          properties: { column: { type: "string" }, queryVector: VECTOR, similarityFunction: SIMILARITY },
          required: ["column", "queryVector"],
          description: "Also find records near this vector of a vector column.",
        },
        fusion: { type: "object", description: 'With vector: {"method": "standardized" or "rrf" or "linear", "vectorWeight": 0 to 1}.' },
        columns: COLUMNS,
        size: SIZE,
        offset: OFFSET,
      },
      required: ["database", "query"],
    },
    annotations: READS,
    async run(api, asked) {
      const { query, syntax, fuzziness, language, filter, vector, fusion, columns, size = DEFAULT_SIZE, offset } = asked;
      const where = asked.table === undefined ? branchPath(asked) : tablePath(asked);
      const page = given({ size, offset });
      const highlight = { enabled: false };
      const found = await api(
        "POST",
        `${where}/search`,
        given({ query, syntax, fuzziness, language, filter, vector, fusion, page, highlight }),
      );
      return columns === undefined ? found : { ...found, body: withColumns(found.body, columns) };
    },
  },
  {
    name: "vector_search",
    description:
      "The nearest vectors, exactly, best first: to `queryVector` (an embedding by the model that made the column's), or to the record " +
      "`likeRecord`, which finds what is similar to it without an embedding.",
    input: {
      properties: {
        ...IN_TABLE,
        column: { type: "string", description: "A column of type vector." },
        queryVector: VECTOR,
        likeRecord: {
          type: "string",
          description: "Instead of queryVector: the id of a record whose vector is the query. It is not among the results.",
        },
        similarityFunction: SIMILARITY,
        filter: FILTER,
        columns: COLUMNS,
        size: SIZE,
        offset: OFFSET,
      },
      required: ["database", "table", "column"],
    },
    annotations: READS,
    async run(api, asked) {
      const { column, similarityFunction, offset, columns = ["*"], size = DEFAULT_SIZE, likeRecord } = asked;
      let { queryVector, filter } = asked;
      if ((queryVector === undefined) === (likeRecord === undefined)) return badInput("queryVector: give it or likeRecord, and not both.");
      if (likeRecord !== undefined) {
        const record = await api("GET", `${tablePath(asked)}${pathOf("data", likeRecord)}?columns=${encodeURIComponent(column)}`);
        if (record.status !== 200) return record;
        queryVector = (record.body as Record<string, readonly number[] | undefined>)[column];
        if (!Array.isArray(queryVector)) return badInput(`likeRecord: the record has no vector in "${column}".`);
        filter = { $all: [{ id: { $isNot: likeRecord } }, ...(filter === undefined ? [] : [filter])] };
      }
      return api(
        "POST",
        `${tablePath(asked)}/vectorSearch`,
        given({ column, queryVector, similarityFunction, filter, columns, size, offset }),
      );
    },
  },
  {
    name: "query_records",
    description: "Records by filter and sort, page by page. For words use search; for counts, sums and joins run_sql.",
    input: {
      properties: {
        ...IN_TABLE,
        filter: FILTER,
        sort: { type: ["object", "array"], description: '{"price": "desc"}, or a list of such.' },
        columns: COLUMNS,
        size: SIZE,
        cursor: { type: "string", description: "meta.page.cursor of the page before, for the next; without filter and sort." },
      },
      required: ["database", "table"],
    },
    annotations: READS,
    run: (api, asked) => {
      const { filter, sort, columns = ["*"], size = DEFAULT_SIZE, cursor } = asked;
      return api("POST", `${tablePath(asked)}/query`, given({ filter, sort, columns, page: given({ size, after: cursor }) }));
    },
  },
  {
    name: "get_record",
    description: "One record by its id. Name a column to see more of a long value.",
    input: { properties: { ...IN_TABLE, id: { type: "string" }, columns: COLUMNS }, required: ["database", "table", "id"] },
    annotations: READS,
    run: (api, asked) => {
      const columns = (asked.columns ?? ["*"]).map(encodeURIComponent).join(",");
      return api("GET", `${tablePath(asked)}${pathOf("data", asked.id)}?columns=${columns}`);
    },
  },
  {
    name: "run_sql",
    description:
      'One SELECT in PostgreSQL\'s dialect, read-only: for counts, groups and joins. Quote names: SELECT count(*) FROM "products" WHERE ' +
      '"price" < $1. Use LIMIT; no more than 1,000 rows come back.',
    input: {
      properties: { ...IN_BRANCH, statement: { type: "string" }, params: { type: "array", description: "Values for $1, $2 …" } },
      required: ["database", "statement"],
    },
    annotations: READS,
    run: (api, asked) =>
      api("POST", `${branchPath(asked)}/sql`, { statement: asked.statement, params: asked.params ?? [], readOnly: true }),
  },
];

/** Only where the operator asked for them. */
export const WRITE_TOOLS: readonly Tool[] = [
  {
    name: "insert_records",
    description: "Inserts records, all or none. An `id` is made where none is given; an id that exists is refused.",
    input: {
      properties: {
        ...IN_TABLE,
        records: { type: "array", items: { type: "object" }, minItems: 1, maxItems: MAX_WRITTEN, description: "Values by column." },
      },
      required: ["database", "table", "records"],
    },
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    async run(api, asked) {
      const operations = (asked.records as readonly object[]).map((record) => ({
        insert: { table: asked.table, record, createOnly: true },
      }));
      const { status, body } = await api("POST", `${branchPath(asked)}/transaction`, { operations });
      if (status !== 200) return { status, body };
      return { status, body: { ids: (body as { results: readonly { id: string }[] }).results.map(({ id }) => id) } };
    },
  },
  {
    name: "delete_records",
    description: "Deletes records by their ids, for good: all or none. Ids that do not exist are no error; `deleted` is how many did.",
    input: {
      properties: { ...IN_TABLE, ids: { type: "array", items: { type: "string" }, minItems: 1, maxItems: MAX_WRITTEN } },
      required: ["database", "table", "ids"],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    async run(api, asked) {
      const operations = asked.ids.map((id) => ({ delete: { table: asked.table, id } }));
      const { status, body } = await api("POST", `${branchPath(asked)}/transaction`, { operations });
      if (status !== 200) return { status, body };
      return {
        status,
        body: { deleted: (body as { results: readonly { rows: number }[] }).results.reduce((sum, { rows }) => sum + rows, 0) },
      };
    },
  },
];

/** What was given: the API counts a member that is undefined as one that it does not know. */
const given = (members: object): object => Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

const badInput = (message: string): ApiAnswer => ({ status: 400, body: { message } });

/** Searches for words answer whole records: of each only its id, its metadata and these columns. */
function withColumns(body: unknown, columns: readonly string[]): unknown {
  const { records, ...rest } = body as { records?: readonly Readonly<Record<string, unknown>>[] };
  if (records === undefined || columns.includes("*")) return body;
  const kept = new Set(["id", "xata", ...columns]);
  return { ...rest, records: records.map((record) => Object.fromEntries(Object.entries(record).filter(([name]) => kept.has(name)))) };
}
