/**
 * Describes what decides how much of the data an exact search must read: the energies of the principal
 * directions, and how far the nearest rows stand out.
 */
import { EigenvalueDecomposition, Matrix } from "ml-matrix";
import { ENERGY_SHARES } from "./spectrum.mjs";

/** Sample for the covariance, spread evenly over the rows. */
const SAMPLE_ROWS = 20_000;

/** With fewer rows per dimension than this, the energies say more about the sample than about its source. */
const FEW_ROWS = 5;

/**
 * @returns {number[]} variances in the principal directions of the centred rows, largest first. Cost: about 8
 *   s at 768 dimensions, growing with the cube.
 */
export function principalVariances(data, rows, dimension) {
  const covariance = covarianceOf(data, rows, dimension);
  const { realEigenvalues } = new EigenvalueDecomposition(covariance, { assumeSymmetric: true });
  return realEigenvalues.map((value) => Math.max(0, value)).sort((a, b) => b - a);
}

/** @returns the share of the variance in the first of `variances`, at each of `shares` of the dimension. */
export function energies(variances, shares = ENERGY_SHARES) {
  const total = variances.reduce((sum, value) => sum + value, 0);
  return shares.map((share) => {
    const first = variances.slice(0, Math.round(share * variances.length));
    return first.reduce((sum, value) => sum + value, 0) / total;
  });
}

function covarianceOf(data, rows, d) {
  const count = Math.min(rows, SAMPLE_ROWS);
  const rowAt = (i) => Math.floor((i * rows) / count) * d;
  const mean = new Float64Array(d);
  for (let i = 0; i < count; i++) for (let j = 0, at = rowAt(i); j < d; j++) mean[j] += data[at + j] / count;
  const sums = Array.from({ length: d }, () => new Float64Array(d));
  const row = new Float64Array(d);
  for (let i = 0; i < count; i++) {
    for (let j = 0, at = rowAt(i); j < d; j++) row[j] = data[at + j] - mean[j];
    for (let j = 0; j < d; j++) {
      const [own, factor] = [sums[j], row[j]];
      for (let l = 0; l <= j; l++) own[l] += factor * row[l];
    }
  }
  for (let j = 0; j < d; j++) for (let l = 0; l < j; l++) sums[l][j] = sums[j][l];
  return new Matrix(sums);
}

/**
 * Cosines of the queries (which follow the rows) with all rows: mean, standard deviation, and the mean of the
 * k-th best.
 */
export function cosines(data, rows, d, queries, k = 10) {
  const norm = (at) => {
    let squares = 0;
    for (let j = 0; j < d; j++) squares += data[at + j] ** 2;
    return Math.sqrt(squares) || 1;
  };
  const norms = Float64Array.from({ length: rows }, (_, row) => norm(row * d));
  const all = new Float64Array(rows);
  let [sum, squares, best] = [0, 0, 0];
  for (let query = 0; query < queries; query++) {
    const queryAt = (rows + query) * d;
    const queryNorm = norm(queryAt);
    for (let row = 0; row < rows; row++) {
      let dot = 0;
      for (let j = 0, at = row * d; j < d; j++) dot += data[at + j] * data[queryAt + j];
      all[row] = dot / (norms[row] * queryNorm);
      sum += all[row];
      squares += all[row] ** 2;
    }
    all.sort();
    best += all[Math.max(0, rows - k)] / queries;
  }
  const mean = sum / (rows * queries);
  return { mean, deviation: Math.sqrt(Math.max(0, squares / (rows * queries) - mean ** 2)), kthBest: best };
}

/** One line of text: energies if `withEnergies` (takes seconds to minutes), and cosines. */
export function describeData(data, rows, dimension, queries, { withEnergies = true } = {}) {
  const { mean, deviation, kthBest } = cosines(data, rows, dimension, queries);
  const near = `cosines: mean ${mean.toFixed(2)}, sd ${deviation.toFixed(3)}, 10th best ${kthBest.toFixed(2)}`;
  if (!withEnergies) return near;
  const shares = energies(principalVariances(data, rows, dimension)).map((value) => value.toFixed(2));
  const directions = ENERGY_SHARES.map((share) => Math.round(share * dimension));
  // Few rows have few directions, whatever they are a sample of.
  const few = rows < FEW_ROWS * dimension ? `, of only ${rows} rows` : "";
  return `energy of the first ${directions.join(" / ")} directions${few}: ${shares.join(" / ")}; ${near}`;
}
