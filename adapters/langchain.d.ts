import type { Document, DocumentInterface } from "@langchain/core/documents";
import type { EmbeddingsInterface } from "@langchain/core/embeddings";
import { type MaxMarginalRelevanceSearchOptions, VectorStore } from "@langchain/core/vectorstores";
import type { DocumentFilter, DocumentPlace } from "./documents.js";

export { type DocumentFilter, type DocumentPlace, IndexDocuments, TableDocuments, type TableOptions } from "./documents.js";

/**
 * LangChain's vector store. Searches are exact; scores are Lodestone's, higher is nearer. Metadata is kept as JSON.
 * `addDocuments` and `addVectors` replace documents with ids that exist, and answer the ids.
 */
export class LodestoneVectorStore extends VectorStore {
  FilterType: DocumentFilter;
  constructor(embeddings: EmbeddingsInterface, place: DocumentPlace);
  _vectorstoreType(): string;
  addDocuments(documents: DocumentInterface[], options?: { ids?: string[] }): Promise<string[]>;
  addVectors(vectors: number[][], documents: DocumentInterface[], options?: { ids?: string[] }): Promise<string[]>;
  delete(params: { ids: string[] } | { filter: DocumentFilter }): Promise<void>;
  similaritySearchVectorWithScore(query: number[], k: number, filter?: DocumentFilter): Promise<[Document, number][]>;
  maxMarginalRelevanceSearch(query: string, options: MaxMarginalRelevanceSearchOptions<DocumentFilter>): Promise<Document[]>;
  static fromTexts(
    texts: string[],
    metadatas: object[] | object,
    embeddings: EmbeddingsInterface,
    place: DocumentPlace,
  ): Promise<LodestoneVectorStore>;
  static fromDocuments(
    documents: DocumentInterface[],
    embeddings: EmbeddingsInterface,
    place: DocumentPlace,
  ): Promise<LodestoneVectorStore>;
}
