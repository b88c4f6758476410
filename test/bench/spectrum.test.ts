import { describe, expect, it } from "vitest";
import { makeData, seededRandom } from "../../bench/data.mjs";
import { cosines, energies, principalVariances } from "../../bench/describe-data.mjs";
import { ENERGY_SHARES, randomRotation, SPECTRA, variances } from "../../bench/spectrum.mjs";

/** What the figures of `npm run bench` rest on: its data are what the documents say they are. */

const ROWS = 20_000;
const DIMENSION = 192;
const QUERIES = 40;

describe.each(Object.entries(SPECTRA))("%s", (kind, spectrum) => {
  const data = makeData({ kind, rows: ROWS, dimension: DIMENSION, queries: QUERIES });

  it("has the promised energies, as the rows' own covariance shows", () => {
    const measured = energies(principalVariances(data, ROWS, DIMENSION));
    measured.forEach((energy, i) => {
      expect(Math.abs(energy - spectrum.energies[i]!)).toBeLessThan(0.02);
    });
  });

  it("has them in directions that the stored coordinates do not reveal", () => {
    const byCoordinate = coordinateVariances(data);
    const [head] = energies(byCoordinate, [5 / 12]);
    expect(Math.abs(head! - 5 / 12)).toBeLessThan(0.05);
    const mean = byCoordinate.reduce((sum, value) => sum + value, 0) / DIMENSION;
    expect(Math.max(...byCoordinate)).toBeLessThan(3 * mean);
  });

  it("has the promised mean of cosines, and neighbours far beyond chance", () => {
    const [rows, dimension] = [5_000, 768];
    const wide = makeData({ kind, rows, dimension, queries: QUERIES });
    const { mean, deviation, kthBest } = cosines(wide, rows, dimension, QUERIES);
    expect(Math.abs(mean - spectrum.mean)).toBeLessThan(0.02);
    expect(kthBest).toBeGreaterThan(0.5);
    expect(kthBest).toBeLessThan(0.7);
    // The tenth of 5,000 draws of one normal distribution is 2.9 standard deviations from its mean.
    expect(kthBest).toBeGreaterThan(mean + 4 * deviation);
  });

  it("has rows of unit length, equal for equal seeds and different for others", () => {
    for (const row of [0, 1, ROWS + QUERIES - 1]) {
      expect(Math.hypot(...data.subarray(row * DIMENSION, (row + 1) * DIMENSION))).toBeCloseTo(1, 6);
    }
    const small = { kind, rows: 50, dimension: 16, queries: 2 };
    expect(makeData(small)).toEqual(makeData(small));
    expect(makeData(small)).not.toEqual(makeData({ ...small, seed: 8 }));
  });

  it.each([12, 128, 768])("splits its variances at the promised shares of %i dimensions", (dimension) => {
    const values = variances(spectrum, dimension);
    expect(values.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 12);
    ENERGY_SHARES.forEach((share, i) => {
      const first = values.subarray(0, Math.round(share * dimension));
      expect(first.reduce((sum, value) => sum + value, 0)).toBeCloseTo(spectrum.energies[i]!, 12);
    });
  });
});

it.each([1, 2, 3, 64, 101])("randomRotation keeps lengths and angles in %i dimensions", (dimension) => {
  const random = seededRandom(3);
  const rotate = randomRotation(dimension, random);
  const [x, y] = [0, 1].map(() => Float64Array.from({ length: dimension }, () => random() - 0.5)) as [Float64Array, Float64Array];
  const dot = (a: Float64Array, b: Float64Array) => a.reduce((sum, value, j) => sum + value * b[j]!, 0);
  const before = [dot(x, x), dot(x, y), dot(y, y)];
  rotate(x);
  rotate(y);
  [dot(x, x), dot(x, y), dot(y, y)].forEach((value, i) => {
    expect(value).toBeCloseTo(before[i]!, 12);
  });
});

it("cosines counts the k-th best, even if there are fewer rows", () => {
  const data = Float32Array.of(1, 0, 0, 1, -1, 0, 1, 0);
  expect(cosines(data, 3, 2, 1, 2)).toMatchObject({ mean: 0, kthBest: 0 });
  expect(cosines(data, 3, 2, 1, 10).kthBest).toBe(-1);
});

function coordinateVariances(data: Float32Array): number[] {
  return Array.from({ length: DIMENSION }, (_, j) => {
    let [sum, squares] = [0, 0];
    for (let row = 0; row < ROWS; row++) {
      const value = data[row * DIMENSION + j]!;
      sum += value;
      squares += value * value;
    }
    return squares / ROWS - (sum / ROWS) ** 2;
  });
}
