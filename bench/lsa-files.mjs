/**
 * Rows of real text, large enough to be worth timing, if present: a folder with X.f32 (bare float32 rows) and
 * X.queries.f32 (1,000 more). They come from latent semantic analysis: TF-IDF of paragraphs, its truncated
 * SVD, scaled to unit length, and randomly rotated so that the order of the coordinates says nothing.
 */
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";

const ENDING = ".f32";
const QUERIES_ENDING = ".queries.f32";
/** Queries in each file of queries; the dimension follows from the file's size. */
const FILE_QUERIES = 1000;

/**
 * @param folder  undefined: none.
 * @returns {{kind, path, queriesPath, rows, dimension}[]}.
 * @throws when the given folder has no such files.
 */
export function findLsaSets(folder) {
  if (folder === undefined) return [];
  const sets = [];
  for (const file of existsSync(folder) ? readdirSync(folder).sort() : []) {
    if (!file.endsWith(ENDING) || file.endsWith(QUERIES_ENDING)) continue;
    const path = join(folder, file);
    const queriesPath = join(folder, file.slice(0, -ENDING.length) + QUERIES_ENDING);
    if (!existsSync(queriesPath)) continue;
    const dimension = statSync(queriesPath).size / 4 / FILE_QUERIES;
    const rows = statSync(path).size / 4 / dimension;
    if (!Number.isInteger(dimension) || !Number.isInteger(rows)) {
      throw new Error(`${path}: is not a whole number of rows of the dimension of ${queriesPath}, which has ${FILE_QUERIES} rows.`);
    }
    sets.push({ kind: "LSA of text", path, queriesPath, rows, dimension });
  }
  if (sets.length === 0) throw new Error(`${folder}: has no X.f32 with X.queries.f32 beside it.`);
  return sets;
}

/** @returns f32[rows + queries][dimension], like makeData. */
export function loadLsaSet({ path, queriesPath, rows, dimension }, queries) {
  const data = new Float32Array((rows + queries) * dimension);
  readInto(path, data.subarray(0, rows * dimension));
  readInto(queriesPath, data.subarray(rows * dimension));
  return data;
}

function readInto(path, floats) {
  const bytes = new Uint8Array(floats.buffer, floats.byteOffset, floats.byteLength);
  const file = openSync(path, "r");
  try {
    for (let at = 0; at < bytes.length; ) {
      const read = readSync(file, bytes, at, Math.min(1 << 26, bytes.length - at), null);
      if (read === 0) throw new Error(`${path}: is too short.`);
      at += read;
    }
  } finally {
    closeSync(file);
  }
}
