/** Lodestone as LlamaIndex.TS's vector store. */
import { MetadataMode } from "@llamaindex/core/schema";
import { BaseVectorStore, metadataDictToNode, nodeToMetadata } from "@llamaindex/core/vector-store";

export { IndexDocuments, TableDocuments } from "./documents.js";

export class LodestoneVectorStore extends BaseVectorStore {
  storesText = true;
  #place;

  constructor(place, params) {
    super(params);
    this.#place = place;
  }

  client() {
    return this.#place;
  }

  async add(nodes) {
    const documents = nodes.map((node) => ({
      id: node.id_,
      content: node.getContent(MetadataMode.NONE),
      metadata: nodeToMetadata(node, true),
      vector: node.getEmbedding(),
    }));
    await this.#place.add(documents);
    return documents.map(({ id }) => id);
  }

  async delete(refDocId) {
    await this.#place.deleteWhere({ "metadata->ref_doc_id": refDocId });
  }

  async query({ queryEmbedding, similarityTopK, mode = "default", mmrThreshold, filters, docIds }) {
    if (queryEmbedding === undefined) throw new TypeError("query: expected a queryEmbedding.");
    const filter = filterOf(filters, docIds);
    let found;
    if (mode === "default") found = await this.#place.search(queryEmbedding, { k: similarityTopK, filter });
    else if (mode === "mmr") {
      const options = { k: similarityTopK, fetchK: 4 * similarityTopK, lambda: mmrThreshold ?? 0.5, filter };
      found = await this.#place.searchDiverse(queryEmbedding, options);
    } else throw new RangeError(`mode is "${mode}"; Lodestone's store knows default and mmr.`);
    return {
      nodes: found.map(({ content, metadata }) => {
        const node = metadataDictToNode(metadata);
        node.setContent(content);
        return node;
      }),
      similarities: found.map(({ score }) => score),
      ids: found.map(({ id }) => id),
    };
  }
}

const OPERATORS = {
  "==": (name, value) => ({ [name]: { $is: value } }),
  "!=": (name, value) => ({ $not: { [name]: { $is: value } } }),
  ">": (name, value) => ({ [name]: { $gt: value } }),
  ">=": (name, value) => ({ [name]: { $ge: value } }),
  "<": (name, value) => ({ [name]: { $lt: value } }),
  "<=": (name, value) => ({ [name]: { $le: value } }),
  in: (name, value) => ({ [name]: { $any: value } }),
  nin: (name, value) => ({ $not: { [name]: { $any: value } } }),
  text_match: (name, value) => ({ [name]: { $iContains: value } }),
  is_empty: (name) => ({ $notExists: name }),
};

function filterOf(filters, docIds) {
  const all = docIds === undefined ? [] : [{ "metadata->doc_id": { $any: docIds } }];
  if (filters !== undefined && filters.filters.length > 0) {
    const conditions = filters.filters.map(({ key, value, operator }) => {
      if (!Object.hasOwn(OPERATORS, operator))
        throw new RangeError(`The filter operator "${operator}" is not offered by Lodestone's store.`);
      return OPERATORS[operator](`metadata->${key}`, value);
    });
    all.push(filters.condition === "or" ? { $any: conditions } : { $all: conditions });
  }
  return all.length === 0 ? undefined : { $all: all };
}
