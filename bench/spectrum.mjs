/**
 * Rows with a decaying spectrum, as embeddings have: few directions carry most of the spread, and the stored
 * coordinates do not reveal which.
 *
 * A row is √mean · c + √(1 − mean) · R (√t · g + √(1 − t) · e), scaled to unit length. c is the direction
 * that all rows share, g the centre of a group of some 24 rows, e the row's own part; g and e both have the
 * spectrum's variances. t, how near the row is to its group, differs from row to row, so a query has near
 * neighbours at many distances. R is a random rotation. test/bench/spectrum.test.ts checks energies and
 * neighbours.
 */

/** Shares of the directions; of 768 these are the first 64, 128 and 256. */
export const ENERGY_SHARES = [1 / 12, 1 / 6, 1 / 3];

/**
 * energies   of the first ENERGY_SHARES of the principal directions.
 * offset, decay  variances fall as (j + offset)^−decay within each share, offset in 768ths of the dimension.
 * mean       of the cosines of two rows.
 * together   t is drawn evenly from this range.
 */
export const SPECTRA = {
  /**
   * Close to two neural text models and an image descriptor; mean and spread of the cosines are those of the
   * second model.
   */
  "steep spectrum": { energies: [0.61, 0.76, 0.89], offset: 48, decay: 2, mean: 0.23, together: [0, 0.85] },
  /**
   * Latent semantic analysis of 100,000 paragraphs: energies, mean and spread of the cosines, and the tenth
   * neighbour.
   */
  "flat spectrum": { energies: [0.28, 0.41, 0.6], offset: 0, decay: 0.5, mean: 0.03, together: [0.08, 0.95] },
};

const GROUP_ROWS = 24;
/**
 * Each round mixes every coordinate with one other. After ten rounds each of 768 depends on all, after twice
 * as many evenly.
 */
const ROTATION_ROUNDS = 24;

/**
 * @returns f64[dimension], from 12 dimensions on, falling within each share; the sum is 1 and the partial
 *   sums at ENERGY_SHARES are `energies`.
 */
export function variances({ energies, offset, decay }, dimension) {
  const values = Float64Array.from({ length: dimension }, (_, j) => (j + 1 + (offset * dimension) / 768) ** -decay);
  const cuts = [0, ...ENERGY_SHARES.map((share) => Math.round(share * dimension)), dimension];
  const wanted = [0, ...energies, 1];
  for (let part = 1; part < cuts.length; part++) {
    const own = values.subarray(cuts[part - 1], cuts[part]);
    const scale = (wanted[part] - wanted[part - 1]) / own.reduce((sum, value) => sum + value, 0);
    for (let j = 0; j < own.length; j++) own[j] *= scale;
  }
  return values;
}

/**
 * A random rotation: rounds of plane rotations by random angles of random pairs of coordinates (Kac's walk),
 * hence orthogonal by construction. Rotates in place.
 */
export function randomRotation(dimension, random) {
  const pairs = dimension >> 1;
  const order = Uint16Array.from({ length: dimension }, (_, j) => j);
  const rounds = Array.from({ length: ROTATION_ROUNDS }, () => {
    for (let j = dimension - 1; j > 0; j--) {
      const other = Math.floor(random() * (j + 1));
      [order[j], order[other]] = [order[other], order[j]];
    }
    const angles = Float64Array.from({ length: pairs }, () => 2 * Math.PI * random());
    return { order: order.slice(), cosines: angles.map(Math.cos), sines: angles.map(Math.sin) };
  });
  return (vector) => {
    for (const { order, cosines, sines } of rounds) {
      for (let pair = 0; pair < pairs; pair++) {
        const [a, b] = [order[2 * pair], order[2 * pair + 1]];
        const [x, y] = [vector[a], vector[b]];
        vector[a] = cosines[pair] * x - sines[pair] * y;
        vector[b] = sines[pair] * x + cosines[pair] * y;
      }
    }
  };
}

/**
 * Centres in frames of orthogonal directions. This few independent directions would have a spectrum of their
 * own, steeper than the one asked for.
 */
function groupCentres(count, deviations, random) {
  const dimension = deviations.length;
  let rotate;
  return Array.from({ length: count }, (_, i) => {
    if (i % dimension === 0) rotate = randomRotation(dimension, random);
    const centre = new Float64Array(dimension);
    centre[i % dimension] = Math.sqrt(dimension);
    rotate(centre);
    return centre.map((value, j) => value * deviations[j]);
  });
}

/** @returns a function that writes one row at `at`, not yet of unit length. */
export function spectralRows(spectrum, dimension, rows, random, gaussian) {
  const { mean, together } = spectrum;
  const deviations = variances(spectrum, dimension).map(Math.sqrt);
  const rotate = randomRotation(dimension, random);
  const common = Float64Array.from({ length: dimension }, gaussian);
  const commonNorm = Math.hypot(...common);
  const groups = groupCentres(Math.max(1, Math.round(rows / GROUP_ROWS)), deviations, random);
  const row = new Float64Array(dimension);
  const spread = Math.sqrt(1 - mean);
  return (out, at) => {
    const group = groups[Math.floor(random() * groups.length)];
    const t = together[0] + (together[1] - together[0]) * random();
    const [near, own] = [spread * Math.sqrt(t), spread * Math.sqrt(1 - t)];
    for (let j = 0; j < dimension; j++) row[j] = near * group[j] + own * deviations[j] * gaussian();
    rotate(row);
    for (let j = 0; j < dimension; j++) out[at + j] = row[j] + (Math.sqrt(mean) * common[j]) / commonNorm;
  };
}
