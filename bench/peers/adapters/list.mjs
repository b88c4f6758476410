/**
 * The contenders. `packages` must be installed in bench/peers. `env` makes a peer use one thread where no
 * option of its API does. Metric: each peer's own cosine. Peers that have none, and plain loops, use the
 * inner product, which is the same for these unit vectors.
 *
 * Left out:
 * - faiss-node 0.5.1: its install script downloads a binary, or faiss' sources, from github.com, which fails
 *   behind a proxy. faiss itself is measured through its Python package, in a process of its own that does
 *   the timing itself, like the C scan.
 * - newer versions of usearch (2.26), better-sqlite3 (13) and LanceDB (0.38) require Node 22; PGlite's
 *   pgvector requires exactly PGlite 0.5.14.
 * - libsql 0.5.29 as the SQLite of sqlite-vec: needs no compiler, but aborts in the KNN query (panic in
 *   statement.rs).
 *
 * package-lock.json has no integrity for the DuckDB and LanceDB binaries of platforms other than linux-x64,
 * because the registry it was made with did not have them. LanceDB's optional packages
 * (@huggingface/transformers, openai) are replaced by an empty one: they would download 200 MB from
 * github.com and are never loaded.
 */
export const CONTENDERS = [
  { name: "Lodestone", module: "lodestone.mjs", variant: "relaxed", exact: true },
  { name: "Lodestone, plain SIMD", module: "lodestone.mjs", variant: "simd", exact: true },
  {
    name: "faiss IndexFlatIP (Python)",
    program: "faiss-flat.py",
    remedy: "python3 -m venv bench/peers/.venv && bench/peers/.venv/bin/pip install faiss-cpu==1.15.1",
  },
  { name: "usearch exactSearch", module: "usearch.mjs", packages: ["usearch"] },
  { name: "hnswlib-node BruteforceSearch", module: "hnswlib.mjs", packages: ["hnswlib-node"] },
  { name: "plain JS, one Float32Array", module: "plain-javascript.mjs", variant: "float32" },
  { name: "plain JS, array of arrays", module: "plain-javascript.mjs", variant: "arrays" },
  { name: "DuckDB", module: "duckdb.mjs", packages: ["@duckdb/node-api"] },
  { name: "sqlite-vec", module: "sqlite-vec.mjs", packages: ["sqlite-vec", "better-sqlite3"] },
  {
    name: "LanceDB, no index",
    module: "lancedb.mjs",
    packages: ["@lancedb/lancedb"],
    env: { LANCE_CPU_THREADS: "1", TOKIO_WORKER_THREADS: "1", RAYON_NUM_THREADS: "1" }, // LANCE_IO_THREADS=1 hangs its first write
  },
  { name: "Orama", module: "orama.mjs", packages: ["@orama/orama"] },
  { name: "PGlite + pgvector", module: "pglite.mjs", packages: ["@electric-sql/pglite", "@electric-sql/pglite-pgvector"] },
];

/** A graph of 100,000 × 768 takes two minutes, on a busy machine much longer. */
const BUILD_PATIENCE_MS = 3_600_000;

/**
 * Graphs with 16 neighbours per row (M), built with 200 candidates (efConstruction), float32, one thread.
 * Their searches keep `ef` candidates, which is the parameter that is varied.
 */
export const HNSW = { connectivity: 16, buildExpansion: 200 };
export const APPROXIMATE = [
  { name: "hnswlib-node HNSW", module: "hnswlib-hnsw.mjs", packages: ["hnswlib-node"], buildPatienceMs: BUILD_PATIENCE_MS },
  { name: "usearch HNSW", module: "usearch-hnsw.mjs", packages: ["usearch"], buildPatienceMs: BUILD_PATIENCE_MS },
];
