/**
 * Reads vectors from a file: .npy, .fvecs and .bvecs by the reader of `lodestone import`; .f32 is bare
 * little-endian float32, row after row.
 */
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { endianness } from "node:os";
import { extname } from "node:path";
import { openVectorFile } from "../dist/cli/import/vector-file-source.js";

const CHUNK_BYTES = 1 << 24;
const COLUMN = "vector";
const FORMATS = [".npy", ".fvecs", ".bvecs", ".f32"];

/** A fault of a file or an option, worded for the person who gave it. */
export class InputError extends Error {}

/**
 * @param dimension  of an .f32 file; other formats contain theirs, which must then be equal to it.
 * @param limit      read only the first `limit` vectors.
 * @param onProgress (rows so far, rows in all), now and then.
 * @returns {Promise<{matrix: Float32Array, rows: number, dimension: number}>} finite values, rounded to
 *   float32.
 * @throws {InputError} that says what and where.
 */
export async function readVectorFile(path, { dimension, limit = Number.POSITIVE_INFINITY, onProgress = () => {} } = {}) {
  if (!existsSync(path)) throw new InputError(`${path}: there is no such file.`);
  if (!statSync(path).isFile()) throw new InputError(`${path}: is not a file.`);
  const format = extname(path).toLowerCase();
  if (!FORMATS.includes(format)) throw new InputError(`${path}: ends with "${format}"; expected one of ${FORMATS.join(" ")}.`);
  const vectors =
    format === ".f32"
      ? readFloats(path, dimension, limit, onProgress)
      : await readSource(path, format.slice(1), dimension, limit, onProgress);
  if (vectors.rows === 0) throw new InputError(`${path}: holds no vectors.`);
  checkFinite(path, vectors);
  return vectors;
}

async function readSource(path, format, expectedDimension, limit, onProgress) {
  try {
    const source = await openVectorFile(path, format, COLUMN);
    const { dimension } = source.columns[0].vector;
    if (expectedDimension !== undefined && expectedDimension !== dimension) {
      throw new InputError(`${path}: has dimension ${dimension}; expected ${expectedDimension}.`);
    }
    let [matrix, rows, row] = [new Float32Array(0), 0, 0];
    for await (const { record, next } of source.rows(source.start, [])) {
      if (row === 0) {
        rows = Math.min(limit, (source.byteLength - source.start.offset) / (next.offset - source.start.offset));
        matrix = allocate(path, rows, dimension);
      }
      if (row === rows) break;
      matrix.set(record[COLUMN], row * dimension);
      row++;
      onProgress(row, rows);
    }
    return { matrix, rows, dimension };
  } catch (error) {
    // The reader's own errors name the place in the file, but not the file.
    throw error.name === "SourceError" ? new InputError(`${path}: ${error.message}.`) : error;
  }
}

function readFloats(path, dimension, limit, onProgress) {
  if (dimension === undefined) throw new InputError(`${path}: an .f32 file does not say its dimension; give --dimension N.`);
  if (endianness() !== "LE") throw new InputError(`${path}: .f32 is little-endian, this machine is not; use .npy.`);
  const { size } = statSync(path);
  const strideBytes = 4 * dimension;
  if (size % strideBytes !== 0) {
    throw new InputError(`${path}: has ${size} bytes, not a multiple of the ${strideBytes} bytes of a vector of dimension ${dimension}.`);
  }
  const rows = Math.min(limit, size / strideBytes);
  const matrix = allocate(path, rows, dimension);
  const bytes = new Uint8Array(matrix.buffer);
  const file = openSync(path, "r");
  try {
    for (let at = 0; at < bytes.length; ) {
      const read = readSync(file, bytes, at, Math.min(CHUNK_BYTES, bytes.length - at), null);
      if (read === 0) throw new InputError(`${path}: became shorter while it was read.`);
      at += read;
      onProgress(Math.floor(at / strideBytes), rows);
    }
  } finally {
    closeSync(file);
  }
  return { matrix, rows, dimension };
}

function allocate(path, rows, dimension) {
  try {
    return new Float32Array(rows * dimension);
  } catch {
    throw new InputError(`${path}: ${rows} × ${dimension} do not fit into this process; --rows N takes the first N.`);
  }
}

function checkFinite(path, { matrix, dimension }) {
  const at = matrix.findIndex((value) => !Number.isFinite(value));
  if (at === -1) return;
  const [row, element] = [Math.floor(at / dimension), at % dimension];
  throw new InputError(
    `${path}: vector ${row}, element ${element} (both counted from 0) is ${matrix[at]} as a float32; expected a finite number.`,
  );
}
