/**
 * What one writes without a library: a loop over an array of arrays, or over one Float32Array. Only the dot
 * product, since the vectors have unit length.
 */

/** Keeps the k best rows, calling `scoreOf(row)` for every row. */
function topRows(rows, k, scoreOf) {
  const best = [];
  for (let row = 0; row < rows; row++) {
    const score = scoreOf(row);
    if (best.length === k && score <= best[k - 1].score) continue;
    let at = best.length;
    while (at > 0 && best[at - 1].score < score) at--;
    best.splice(at, 0, { row, score });
    if (best.length > k) best.pop();
  }
  return best.map(({ row }) => row);
}

function openArrays({ dimension }) {
  const vectors = [];
  return {
    add(_firstRow, matrix) {
      for (let at = 0; at < matrix.length; at += dimension) vectors.push(Array.from(matrix.subarray(at, at + dimension)));
    },
    prepare: (vector) => Array.from(vector),
    search: (query, k) =>
      topRows(vectors.length, k, (row) => {
        const vector = vectors[row];
        let sum = 0;
        for (let j = 0; j < dimension; j++) sum += vector[j] * query[j];
        return sum;
      }),
    answerOf: (rows) => ({ rows }),
  };
}

function openFloat32Array({ dimension, rows }) {
  const matrix = new Float32Array(rows * dimension);
  return {
    add: (firstRow, part) => matrix.set(part, firstRow * dimension),
    prepare: (vector) => vector,
    search: (query, k) =>
      topRows(rows, k, (row) => {
        const at = row * dimension;
        let sum = 0;
        for (let j = 0; j < dimension; j++) sum += matrix[at + j] * query[j];
        return sum;
      }),
    answerOf: (best) => ({ rows: best }),
  };
}

export const open = (options) => (options.variant === "arrays" ? openArrays(options) : openFloat32Array(options));
