import type { BaseNode } from "@llamaindex/core/schema";
import {
  BaseVectorStore,
  type VectorStoreBaseParams,
  type VectorStoreQuery,
  type VectorStoreQueryResult,
} from "@llamaindex/core/vector-store";
import type { DocumentPlace } from "./documents.js";

export { type DocumentFilter, type DocumentPlace, IndexDocuments, TableDocuments, type TableOptions } from "./documents.js";

/**
 * LlamaIndex's vector store. Searches are exact; similarities are Lodestone's scores. Modes: default and mmr (`mmrThreshold` is lambda,
 * default 0.5; candidates: four times `similarityTopK`). Filters of metadata: all operators but `any`, `all` and `contains`.
 */
export class LodestoneVectorStore extends BaseVectorStore<DocumentPlace> {
  storesText: boolean;
  constructor(place: DocumentPlace, params?: VectorStoreBaseParams);
  client(): DocumentPlace;
  add(nodes: BaseNode[]): Promise<string[]>;
  /** Deletes the nodes of one document. */
  delete(refDocId: string): Promise<void>;
  query(query: VectorStoreQuery): Promise<VectorStoreQueryResult>;
}
