/** The nearest vectors of a column: one query or many, with records on request. */
import { SIMILARITIES } from "../../core/similarity.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { recordIdOf, withMetadata } from "../../records/data/values/record-metadata.ts";
import type { JsonObject, Selection } from "../../records/requests.ts";
import { DEFAULT_SIZE, MAX_OFFSET, MAX_QUERY_VECTORS, MAX_SIZE } from "../../search/request-check.ts";
import type { VectorSearchRequest, VectorSearchResponse } from "../../search/search-store.ts";
import { type ApiRequest, type Endpoint, endpoint } from "../endpoint.ts";
import { COLUMN_NAME, CONSISTENCY, FILTER, objectOf, RECORD, SELECTION } from "../schemas.ts";
import { type JsonSchema, VECTOR } from "../validation.ts";
import type { Services } from "./services.ts";

interface VectorSearchBody extends Omit<VectorSearchRequest, "queryVector"> {
  queryVector?: Float32Array;
  queryVectors?: Float32Array[];
  columns?: Selection;
  cosine?: boolean;
}

const BODY: JsonSchema = objectOf<VectorSearchBody>(
  {
    column: { ...COLUMN_NAME, description: "A column of type vector." },
    queryVector: { ...VECTOR, description: "As many finite numbers as the column's dimension." },
    queryVectors: {
      type: "array",
      items: VECTOR,
      minItems: 1,
      maxItems: MAX_QUERY_VECTORS,
      description: `Instead of queryVector: up to ${MAX_QUERY_VECTORS} queries, answered one by one in \`answers\`.`,
    },
    similarityFunction: {
      enum: SIMILARITIES,
      description: "Score: 1 + cos; 1 / (1 + Σ|x−y|); 1 / (1 + Σ(x−y)²); Σ x·y, which may be negative. Default: cosineSimilarity.",
    },
    size: { type: "integer", minimum: 1, maximum: MAX_SIZE, description: `Default ${DEFAULT_SIZE}.` },
    offset: { type: "integer", minimum: 0, maximum: MAX_OFFSET, description: "Leave out the first results." },
    minScore: { type: "number", description: "Leave out results below this score." },
    filter: { ...FILTER, description: "Applied first; totalCount counts the records that pass it." },
    columns: { ...SELECTION, description: "Columns of the `record` to return with each result." },
    cosine: {
      type: "boolean",
      description: "Return the `cosine` itself, score − 1, with each result. For cosineSimilarity alone.",
    },
    consistency: {
      ...CONSISTENCY,
      description:
        "strong: the answer reflects every write acknowledged before the request. Default: eventual, within milliseconds; strong for SDK clients.",
    },
  },
  ["column"],
);

const ANSWER: JsonSchema = {
  type: "object",
  properties: {
    totalCount: { type: "integer", description: "Records that pass the filter and have a vector." },
    results: {
      type: "array",
      items: {
        type: "object",
        properties: { id: { type: "string" }, score: { type: "number" }, cosine: { type: "number" }, record: RECORD },
        required: ["id", "score"],
      },
    },
    records: {
      type: "array",
      items: RECORD,
      description: "For clients that send X-Xata-Agent: the records, with xata.score and xata.table.",
    },
    answers: { type: "array", description: "With queryVectors: one answer each.", items: { type: "object" } },
  },
};

const withCosine = (result: VectorSearchResponse["results"][number]) => ({ ...result, cosine: result.score - 1 });

export function vectorSearchEndpoints({ search }: Services): Endpoint[] {
  /** The records of all answers, fetched together. Those deleted since the search are left out. */
  async function fetchRecords({ records, ref, path, body, isSdk }: ApiRequest<VectorSearchBody>, answers: readonly VectorSearchResponse[]) {
    // A record in several answers is counted each time.
    const ids = answers.flatMap(({ results }) => results.map(({ id }) => id));
    const found = await records.getRecords(ref, path.table as string, ids, { columns: body.columns ?? ["*"], jsonText: isSdk });
    const { systemNaming } = await records.branch(ref);
    return { byId: new Map(found.map((record) => [recordIdOf(record, systemNaming), record])), systemNaming };
  }

  async function complete(request: ApiRequest<VectorSearchBody>, answers: readonly VectorSearchResponse[]) {
    const { path, body, isSdk } = request;
    if (body.cosine === true) answers = answers.map(({ totalCount, results }) => ({ totalCount, results: results.map(withCosine) }));
    if (body.columns === undefined && !isSdk) return answers;
    const { byId, systemNaming } = await fetchRecords(request, answers);
    const table = path.table as string;
    /** As the SDK reads it: metadata, score and table side by side. A record deleted since then is left out. */
    const sdkRecord = (record: JsonObject | undefined, score: number) =>
      record === undefined ? [] : [withMetadata(record, systemNaming, { score, table })];
    return answers.map(({ totalCount, results }) => ({
      totalCount,
      results: body.columns === undefined ? results : results.map((result) => ({ ...result, record: byId.get(result.id) ?? null })),
      ...(isSdk ? { records: results.flatMap(({ id, score }) => sdkRecord(byId.get(id), score)) } : {}),
    }));
  }

  return [
    endpoint<VectorSearchBody>({
      method: "POST",
      path: "/db/{db}:{branch}/tables/{table}/vectorSearch",
      name: "vectorSearch",
      summary: "The nearest vectors, exactly",
      tag: "Search and query",
      access: "read",
      body: { required: true, schema: BODY },
      responses: { 200: { description: "Best first; equal scores by id.", schema: ANSWER } },
      async handle(request) {
        const { ref, path, body, signal, budget, isSdk } = request;
        const { queryVectors, columns: _columns, cosine = false, ...asked } = body;
        // The SDK cannot ask for it. Its users wait for their records by counting them, and counts see them at
        // once.
        if (isSdk) asked.consistency ??= "strong";
        if ((asked.queryVector === undefined) === (queryVectors === undefined)) {
          throw new LodestoneError("INVALID", "queryVector: expected one of queryVector and queryVectors, got both or none.");
        }
        if (cosine && (asked.similarityFunction ?? "cosineSimilarity") !== "cosineSimilarity") {
          throw new LodestoneError(
            "INVALID",
            `cosine: true is for cosineSimilarity alone, not ${asked.similarityFunction}; leave one out.`,
          );
        }
        const table = path.table as string;
        if (queryVectors !== undefined) {
          const answers = await search.vectorSearchMany(ref, table, { ...asked, queryVectors }, { signal, budget });
          return { status: 200, body: { answers: await complete(request, answers) } };
        }
        const answer = await search.vectorSearch(ref, table, asked as VectorSearchRequest, { signal, budget });
        return { status: 200, body: (await complete(request, [answer]))[0] };
      },
    }),
  ];
}
