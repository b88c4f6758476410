/**
 * Documents with vectors, in an index of the library or in a table of the service, behind the same four methods. A document is
 * `{ id, content, metadata, vector }`; what a search finds has a `score` as well, and its vector only when asked for.
 */
import { Columns, maximalMarginalRelevance, VectorIndex } from "lodestone";

export class IndexDocuments {
  #similarity;

  constructor({ index, similarity = "cosineSimilarity" } = {}) {
    this.index = index;
    this.#similarity = similarity;
  }

  static columns() {
    return new Columns({ content: "string", metadata: "json" });
  }

  async add(documents) {
    if (documents.length === 0) return;
    this.index ??= await VectorIndex.create({ dimension: documents[0].vector.length, columns: IndexDocuments.columns() });
    const { dimension } = this.index;
    const matrix = new Float32Array(documents.length * dimension);
    for (const [i, { vector }] of documents.entries()) {
      if (vector.length !== dimension)
        throw new RangeError(`A vector has ${vector.length} elements; the index has dimension ${dimension}.`);
      matrix.set(vector, i * dimension);
    }
    const values = documents.map(({ content, metadata }) => ({ content, metadata }));
    await this.index.upsertMany(
      documents.map(({ id }) => id),
      matrix,
      values,
    );
  }

  async delete(ids) {
    await this.index?.deleteMany(ids);
  }

  async deleteWhere(filter) {
    if (this.index === undefined || this.index.size === 0) return;
    // Any query will do: all that pass the filter are found.
    const query = new Float32Array(this.index.dimension).fill(1);
    const { results } = await this.index.search(query, { k: this.index.size, filter });
    await this.delete(results.map(({ id }) => id));
  }

  async search(query, { k, filter, withVectors = false }) {
    if (this.index === undefined) return [];
    const asked = { k, similarity: this.#similarity, columns: ["content", "metadata"], ...(filter && { filter }) };
    const { results } = await this.index.search(query, asked);
    const vectors = withVectors ? await this.index.getMany(results.map(({ id }) => id)) : [];
    return results.map(({ id, score, columns: { content, metadata } }, i) => ({ id, score, content, metadata, vector: vectors[i] }));
  }

  searchDiverse(query, options) {
    return searchDiverse(this, this.#similarity, query, options);
  }
}

/** Of one request: its body stays far below the server's limit with vectors of any dimension. */
const BATCH_ELEMENTS = 250_000;
const MAX_BATCH = 500;
/** Of one search by the service. */
const MAX_SIZE = 1_000;

export class TableDocuments {
  #branch;
  #table;
  #name;
  #headers;
  #similarity;
  #isThere = false;

  constructor({ url, apiKey, database, branch = "main", table, similarity = "cosineSimilarity" }) {
    this.#branch = `${url.replace(/\/+$/, "")}/db/${encodeURIComponent(database)}:${encodeURIComponent(branch)}`;
    this.#table = `${this.#branch}/tables/${encodeURIComponent(table)}`;
    this.#name = table;
    this.#headers = { "Content-Type": "application/json", ...(apiKey !== undefined && { Authorization: `Bearer ${apiKey}` }) };
    this.#similarity = similarity;
  }

  async add(documents) {
    if (documents.length === 0) return;
    const dimension = documents[0].vector.length;
    await this.#makeTable(dimension);
    const size = Math.max(1, Math.min(MAX_BATCH, Math.floor(BATCH_ELEMENTS / dimension)));
    for (let at = 0; at < documents.length; at += size) {
      const operations = documents.slice(at, at + size).map(({ id, content, metadata, vector }) => ({
        insert: { table: this.#name, record: { id, content, metadata, embedding: Array.from(vector) } },
      }));
      await this.#request("POST", `${this.#branch}/transaction`, { operations });
    }
  }

  async delete(ids) {
    for (let at = 0; at < ids.length; at += MAX_BATCH) {
      const operations = ids.slice(at, at + MAX_BATCH).map((id) => ({ delete: { table: this.#name, id } }));
      await this.#request("POST", `${this.#branch}/transaction`, { operations });
    }
  }

  async deleteWhere(filter) {
    for (;;) {
      const { records } = await this.#request("POST", `${this.#table}/query`, { filter, columns: ["id"], page: { size: MAX_BATCH } });
      if (records.length === 0) return;
      await this.delete(records.map(({ id }) => id));
    }
  }

  async search(query, { k, filter, withVectors = false }) {
    const { results } = await this.#request("POST", `${this.#table}/vectorSearch`, {
      column: "embedding",
      queryVector: Array.from(query),
      similarityFunction: this.#similarity,
      size: Math.min(k, MAX_SIZE),
      columns: ["content", "metadata", ...(withVectors ? ["embedding"] : [])],
      consistency: "strong",
      ...(filter && { filter }),
    });
    // A record that was deleted since the search is null.
    return results.flatMap(({ id, score, record }) =>
      record === null ? [] : [{ id, score, content: record.content, metadata: record.metadata, vector: record.embedding }],
    );
  }

  searchDiverse(query, options) {
    return searchDiverse(this, this.#similarity, query, options);
  }

  async #makeTable(dimension) {
    if (this.#isThere) return;
    const columns = [
      { name: "content", type: "text" },
      { name: "metadata", type: "json" },
      { name: "embedding", type: "vector", vector: { dimension } },
    ];
    const { status } = await fetch(`${this.#table}/schema`, { headers: this.#headers });
    if (status === 404) await this.#request("PUT", this.#table, { columns });
    this.#isThere = true;
  }

  async #request(method, url, body) {
    const response = await fetch(url, { method, headers: this.#headers, body: JSON.stringify(body) });
    if (response.ok) return response.json();
    const { message, errors } = await response.json().catch(() => ({ message: "no JSON" }));
    throw new Error(`Lodestone answered ${response.status}: ${message ?? errors?.[0]?.message}`);
  }
}

async function searchDiverse(place, similarity, query, { k, fetchK = 20, lambda = 0.5, filter }) {
  const found = await place.search(query, { k: Math.max(k, fetchK), filter, withVectors: true });
  const vectors = found.map(({ vector }) => vector);
  return maximalMarginalRelevance(query, vectors, { k, lambda, similarity }).map((i) => found[i]);
}
