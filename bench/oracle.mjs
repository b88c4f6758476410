/** The exhaustive float64 search that every answer of a bench is checked against before it is timed. Ids are row numbers as strings of equal length. */

function sumInLanes(terms, d) {
  const lane = [0, 0, 0, 0, 0, 0, 0, 0];
  for (let j = 0; j < d; j++) lane[j & 7] += terms(j);
  const [a, b, c, e, f, g, h, i] = lane;
  return a + c + (f + h) + (b + e + (g + i));
}

/** @returns f64[rows]: the score of every row. */
export function exactScores(data, rows, d, queryAt, similarity) {
  const q = Float64Array.from(data.subarray(queryAt, queryAt + d));
  const qq = sumInLanes((j) => q[j] * q[j], d);
  return Float64Array.from({ length: rows }, (_, row) => {
    const at = row * d;
    if (similarity === "l1") return 1 / (1 + sumInLanes((j) => Math.abs(data[at + j] - q[j]), d));
    if (similarity === "l2") return 1 / (1 + sumInLanes((j) => (data[at + j] - q[j]) * (data[at + j] - q[j]), d));
    const xx = sumInLanes((j) => data[at + j] * data[at + j], d);
    const cos = xx === 0 ? 0 : sumInLanes((j) => data[at + j] * q[j], d) / Math.sqrt(qq * xx);
    return 1 + Math.min(1, Math.max(-1, cos));
  });
}

/** @returns [{row, score}], the k best of those that `isSelected(row)`, best first; equal scores in the order of their rows. */
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

/** @throws when `answer` (of VectorIndex.search) is not what the oracle says, to the last bit. */
export function verify(what, answer, expected) {
  const got = answer.results.map(({ id, score }) => `${id} ${score}`).join("\n");
  const want = expected.map(({ row, score }) => `${idOf(row)} ${score}`).join("\n");
  if (got !== want) throw new Error(`${what}: wrong answer.\ngot\n${got}\nexpected\n${want}`);
}
