/** The exhaustive float64 search that every answer of a bench is checked against before it is timed. Ids are row numbers as strings of equal length. */

function sumInLanes(terms, d) {
  const lane = [0, 0, 0, 0, 0, 0, 0, 0];
  for (let j = 0; j < d; j++) lane[j & 7] += terms(j);
  const [a, b, c, e, f, g, h, i] = lane;
  return a + c + (f + h) + (b + e + (g + i));
}

/** @returns [{row, score}], best first. `isSelected(row)` is the filter. */
export function oracle(data, rows, d, queryAt, similarity, k, isSelected = () => true) {
  const q = Float64Array.from(data.subarray(queryAt, queryAt + d));
  const qq = sumInLanes((j) => q[j] * q[j], d);
  const hits = [];
  for (let row = 0; row < rows; row++) {
    if (!isSelected(row)) continue;
    const at = row * d;
    let score;
    if (similarity === "l1") score = 1 / (1 + sumInLanes((j) => Math.abs(data[at + j] - q[j]), d));
    else if (similarity === "l2") score = 1 / (1 + sumInLanes((j) => (data[at + j] - q[j]) * (data[at + j] - q[j]), d));
    else {
      const xx = sumInLanes((j) => data[at + j] * data[at + j], d);
      const cos = xx === 0 ? 0 : sumInLanes((j) => data[at + j] * q[j], d) / Math.sqrt(qq * xx);
      score = 1 + Math.min(1, Math.max(-1, cos));
    }
    hits.push({ row, score });
  }
  hits.sort((a, b) => b.score - a.score || a.row - b.row);
  return hits.slice(0, k);
}

export const idOf = (row) => String(row).padStart(8, "0");

/** @throws when `answer` (of VectorIndex.search) is not what the oracle says, to the last bit. */
export function verify(what, answer, expected) {
  const got = answer.results.map(({ id, score }) => `${id} ${score}`).join("\n");
  const want = expected.map(({ row, score }) => `${idOf(row)} ${score}`).join("\n");
  if (got !== want) throw new Error(`${what}: wrong answer.\ngot\n${got}\nexpected\n${want}`);
}
