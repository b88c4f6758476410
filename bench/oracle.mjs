/**
 * The exhaustive float64 search. Every answer of a bench is checked against it before it is timed. Ids are
 * row numbers as strings of equal length.
 */
import { joinLanes, LANES } from "../test/lanes.mjs";

/** Of the sum being computed. */
const lanes = new Float64Array(LANES);

function dot(x, xAt, y, yAt, d) {
  lanes.fill(0);
  for (let j = 0; j < d; j++) lanes[j % LANES] += x[xAt + j] * y[yAt + j];
  return joinLanes(lanes);
}

function squaredDistance(x, xAt, y, yAt, d) {
  lanes.fill(0);
  for (let j = 0; j < d; j++) {
    const difference = x[xAt + j] - y[yAt + j];
    lanes[j % LANES] += difference * difference;
  }
  return joinLanes(lanes);
}

function absoluteDistance(x, xAt, y, yAt, d) {
  lanes.fill(0);
  for (let j = 0; j < d; j++) lanes[j % LANES] += Math.abs(x[xAt + j] - y[yAt + j]);
  return joinLanes(lanes);
}

/**
 * Each takes the data, its dimension and the element at which the query begins. It returns a function from
 * the element at which a row begins to that row's score.
 */
const SCORES = {
  cosineSimilarity(data, d, query) {
    const qq = dot(data, query, data, query, d);
    return (row) => {
      const xx = dot(data, row, data, row, d);
      const cos = xx === 0 ? 0 : dot(data, row, data, query, d) / Math.sqrt(qq * xx);
      return 1 + Math.min(1, Math.max(-1, cos));
    };
  },
  l2: (data, d, query) => (row) => 1 / (1 + squaredDistance(data, row, data, query, d)),
  l1: (data, d, query) => (row) => 1 / (1 + absoluteDistance(data, row, data, query, d)),
};

/**
 * @param data     f32; rows first.
 * @param queryAt  the element at which the query begins.
 * @returns f64[rows]: the score of every row.
 */
export function exactScores(data, rows, d, queryAt, similarity) {
  const scoreOf = SCORES[similarity](data, d, queryAt);
  return Float64Array.from({ length: rows }, (_, row) => scoreOf(row * d));
}

/**
 * @returns [{row, score}], the k best rows for which `isSelected(row)` is true, best first; equal scores in
 *   row order.
 */
export function bestOf(scores, k, isSelected = () => true) {
  const best = [];
  for (let row = 0; row < scores.length; row++) {
    const score = scores[row];
    if ((best.length === k && score <= best[k - 1].score) || !isSelected(row)) continue;
    let place = best.length;
    while (place > 0 && best[place - 1].score < score) place--;
    best.splice(place, 0, { row, score });
    if (best.length > k) best.pop();
  }
  return best;
}

/** @returns bestOf the exact scores. */
export function oracle(data, rows, d, queryAt, similarity, k, isSelected) {
  return bestOf(exactScores(data, rows, d, queryAt, similarity), k, isSelected);
}

export const idOf = (row) => String(row).padStart(8, "0");

/** @throws when `answer` (of VectorIndex.search) differs from the oracle's in a single bit. */
export function verify(what, answer, expected) {
  const got = answer.results.map(({ id, score }) => `${id} ${score}`).join("\n");
  const want = expected.map(({ row, score }) => `${idOf(row)} ${score}`).join("\n");
  if (got !== want) throw new Error(`${what}: wrong answer.\ngot\n${got}\nexpected\n${want}`);
}
