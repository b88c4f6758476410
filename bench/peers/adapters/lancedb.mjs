/** LanceDB: a table on disk (in the page cache when it is searched) without an index, which it scans flat. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as lancedb from "@lancedb/lancedb";
import * as arrow from "apache-arrow";

export async function open({ dimension }) {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-lancedb-"));
  const connection = await lancedb.connect(directory);
  const embeddingType = new arrow.FixedSizeList(dimension, new arrow.Field("item", new arrow.Float32()));
  const schema = new arrow.Schema([new arrow.Field("id", new arrow.Int32()), new arrow.Field("embedding", embeddingType)]);
  const table = await connection.createEmptyTable("items", schema);

  function toArrow(firstRow, matrix) {
    const length = matrix.length / dimension;
    const ids = arrow.makeData({ type: new arrow.Int32(), data: Int32Array.from({ length }, (_, i) => firstRow + i) });
    const child = arrow.makeData({ type: new arrow.Float32(), data: matrix });
    const vectors = arrow.makeData({ type: embeddingType, length, child });
    const struct = arrow.makeData({ type: new arrow.Struct(schema.fields), length, children: [ids, vectors] });
    return new arrow.Table(schema, new arrow.RecordBatch(schema, struct));
  }

  return {
    add: (firstRow, matrix) => table.add(toArrow(firstRow, matrix)),
    prepare: (vector) => vector,
    search: (query, k) => table.query().nearestTo(query).distanceType("cosine").limit(k).select(["id", "_distance"]).toArray(),
    answerOf: (hits) => ({ rows: hits.map(({ id }) => id) }),
    stop() {
      connection.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
