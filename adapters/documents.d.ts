import type { ParallelVectorIndex, Similarity, VectorIndex } from "lodestone";

/** The filter of the library and the service; what is in a document's metadata is `"metadata->name"`: `{ "metadata->year": { $ge: 2020 } }`. */
export type DocumentFilter = { readonly [name: string]: unknown };

/** Where the documents are. */
export type DocumentPlace = IndexDocuments | TableDocuments;

/** Documents in an index of the library, in this process. Saved and loaded as every index is, by `index`. */
export class IndexDocuments {
  /**
   * @param options.index  made with `IndexDocuments.columns()`, or loaded. Default: a `VectorIndex`, made with the first vector.
   * @param options.similarity  default "cosineSimilarity".
   */
  constructor(options?: { index?: VectorIndex | ParallelVectorIndex; similarity?: Similarity });
  /** The columns of an index that holds documents, for `VectorIndex.create({ dimension, columns })`. */
  static columns(): import("lodestone").Columns;
  /** undefined before the first document. */
  readonly index: VectorIndex | ParallelVectorIndex | undefined;
}

export interface TableOptions {
  /** The server: `http://127.0.0.1:8787`. */
  readonly url: string;
  readonly apiKey?: string;
  readonly database: string;
  /** Default "main". */
  readonly branch?: string;
  /** Made with the first document if it is not there, with the columns `content` (text), `metadata` (json) and `embedding` (vector). */
  readonly table: string;
  /** Default "cosineSimilarity". */
  readonly similarity?: Similarity;
}

/** Documents in a table of the service, over HTTP. A search sees every write that came before it. Database and branch must exist. */
export class TableDocuments {
  constructor(options: TableOptions);
}
