/**
 * usearch's Index, its approximate index. The number of candidates that a search keeps is fixed when an index
 * is made, so each `tune` loads the saved graph into a new one. Arrays passed to it start at byte 0 of their
 * buffers, see usearch.mjs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import usearch from "usearch";
import { HNSW } from "./list.mjs";

const { Index, MetricKind, ScalarKind } = usearch;

export function open({ dimension }) {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-usearch-"));
  let graph = join(directory, "graph");
  const make = (ef) =>
    new Index({
      dimensions: dimension,
      metric: MetricKind.Cos,
      quantization: ScalarKind.F32,
      connectivity: HNSW.connectivity,
      expansion_add: HNSW.buildExpansion,
      expansion_search: ef,
      multi: false,
    });
  let index = make(0);
  let isSaved = false;
  return {
    add(firstRow, matrix) {
      const keys = BigUint64Array.from({ length: matrix.length / dimension }, (_, i) => BigInt(firstRow + i));
      index.add(keys, matrix, 1);
    },
    save(file) {
      index.save(file);
      [graph, isSaved] = [file, true];
    },
    load(file) {
      [graph, isSaved] = [file, true];
    },
    tune(ef) {
      if (!isSaved) index.save(graph);
      isSaved = true;
      index = make(ef);
      index.load(graph);
    },
    prepare: (vector) => Float32Array.from(vector),
    search: (query, k) => index.search(query, k, 1),
    answerOf: ({ keys }) => ({ rows: Array.from(keys, Number) }),
    stop: () => rmSync(directory, { recursive: true, force: true }),
  };
}
