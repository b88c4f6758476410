/** Lodestone as LangChain's VectorStore. */
import { Document } from "@langchain/core/documents";
import { VectorStore } from "@langchain/core/vectorstores";

export { IndexDocuments, TableDocuments } from "./documents.js";

export class LodestoneVectorStore extends VectorStore {
  #place;

  constructor(embeddings, place) {
    super(embeddings, {});
    this.#place = place;
  }

  _vectorstoreType() {
    return "lodestone";
  }

  async addDocuments(documents, options) {
    const vectors = await this.embeddings.embedDocuments(documents.map(({ pageContent }) => pageContent));
    return this.addVectors(vectors, documents, options);
  }

  async addVectors(vectors, documents, { ids } = {}) {
    if (vectors.length !== documents.length || (ids !== undefined && ids.length !== documents.length)) {
      throw new RangeError(`Expected as many vectors and ids as documents: got ${vectors.length}, ${ids?.length} and ${documents.length}.`);
    }
    const added = documents.map(({ id, pageContent, metadata }, i) => ({
      id: ids?.[i] ?? id ?? crypto.randomUUID(),
      content: pageContent,
      metadata,
      vector: vectors[i],
    }));
    await this.#place.add(added);
    return added.map(({ id }) => id);
  }

  async delete({ ids, filter }) {
    if (ids !== undefined) await this.#place.delete(ids);
    else if (filter !== undefined) await this.#place.deleteWhere(filter);
    else throw new TypeError("delete: expected ids or a filter.");
  }

  async similaritySearchVectorWithScore(query, k, filter) {
    const found = await this.#place.search(query, { k, filter });
    return found.map((one) => [documentOf(one), one.score]);
  }

  async maxMarginalRelevanceSearch(query, options) {
    return (await this.#place.searchDiverse(await this.embeddings.embedQuery(query), options)).map(documentOf);
  }

  static async fromTexts(texts, metadatas, embeddings, place) {
    const metadataOf = (i) => (Array.isArray(metadatas) ? metadatas[i] : metadatas);
    const documents = texts.map((pageContent, i) => new Document({ pageContent, metadata: metadataOf(i) }));
    return LodestoneVectorStore.fromDocuments(documents, embeddings, place);
  }

  static async fromDocuments(documents, embeddings, place) {
    const store = new LodestoneVectorStore(embeddings, place);
    await store.addDocuments(documents);
    return store;
  }
}

const documentOf = ({ id, content, metadata }) => new Document({ id, pageContent: content, metadata });
