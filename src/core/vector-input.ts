/**
 * Checks the vectors that callers pass. This is the one edge where a wrong type is a TypeError and a wrong
 * value a RangeError.
 */
import { MAX_DIMENSION } from "../dimension.ts";
import { inWords } from "../errors/value-in-words.ts";
import { checkInteger, checkType } from "./options.ts";

/** @throws {TypeError | RangeError} if it is not an integer from 1 to 10,000. */
export function checkDimension(dimension: number): void {
  checkInteger("dimension", dimension, 1, MAX_DIMENSION);
}

/**
 * Converts `vector` to float32, rounding each element to the nearest.
 *
 * @param name  the vector's name in messages.
 * @returns the vector itself if it is a Float32Array, otherwise a copy.
 * @throws {TypeError} not an array of numbers; {RangeError} another length than `dimension`, or an element
 *   that is not finite as float32 (NaN, ±Infinity, or beyond ±3.4028235e38).
 */
export function toFloat32(name: string, vector: ArrayLike<number>, dimension: number): Float32Array {
  if (vector === null || typeof vector !== "object" || typeof vector.length !== "number") {
    throw new TypeError(`${name} is ${inWords(vector)}; expected an array of ${dimension} numbers.`);
  }
  if (vector.length !== dimension) {
    throw new RangeError(
      `${name} has ${vector.length} ${vector.length === 1 ? "element" : "elements"}; expected ${dimension}, the dimension of the index.`,
    );
  }
  if (isFloat32Array(vector)) {
    checkFinite(name, vector, dimension);
    return vector;
  }
  const floats = new Float32Array(dimension);
  for (let i = 0; i < dimension; i++) {
    const x: unknown = vector[i];
    if (typeof x !== "number") throw new TypeError(`${name}[${i}] is ${inWords(x)}; expected a finite number.`);
    const rounded = Math.fround(x);
    if (!Number.isFinite(rounded)) throw notFinite(`${name}[${i}]`, x);
    floats[i] = rounded;
  }
  return floats;
}

/**
 * Checks n × dimension values in row-major order, without copying.
 *
 * @throws {TypeError} not a Float32Array; {RangeError} wrong length, or an element that is not finite.
 */
export function checkMatrix(name: string, matrix: Float32Array, rows: number, dimension: number): void {
  checkType(isFloat32Array(matrix), name, matrix, "a Float32Array");
  if (matrix.length !== rows * dimension) {
    throw new RangeError(`${name} has ${matrix.length} elements; expected ${rows} × ${dimension} = ${rows * dimension}.`);
  }
  checkFinite(name, matrix, dimension);
}

/**
 * Checked by tag, because an array may come from another realm (an iframe, Jest), whose Float32Array is
 * another class.
 */
function isFloat32Array(values: unknown): values is Float32Array {
  return ArrayBuffer.isView(values) && (values as Float32Array)[Symbol.toStringTag] === "Float32Array";
}

/** Throws at the first element that is not finite. */
function checkFinite(name: string, values: Float32Array, dimension: number): void {
  for (let i = 0; i < values.length; i++) {
    const x = values[i]!;
    // x − x is NaN for NaN and ±Infinity, otherwise 0. It takes half the time of Number.isFinite in this
    // loop.
    if (x - x !== 0)
      throw notFinite(
        values.length === dimension ? `${name}[${i}]` : `${name} row ${Math.floor(i / dimension)}, element ${i % dimension}`,
        x,
      );
  }
}

function notFinite(where: string, x: number): RangeError {
  return new RangeError(`${where} is ${x}; expected a finite number within ±3.4028235e38 (float32).`);
}
