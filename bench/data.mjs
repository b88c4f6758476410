/** Seeded data for the benches: rows and queries from one distribution, normalised. */
import { SPECTRA, spectralRows } from "./spectrum.mjs";

/** Numbers in [0, 1): xorshift32. */
export function seededRandom(seed) {
  let x = seed | 0 || 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) / 4294967296;
  };
}

function seededGaussian(random) {
  let spare;
  return () => {
    if (spare !== undefined) {
      const value = spare;
      spare = undefined;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(random() || 1e-12));
    const angle = 2 * Math.PI * random();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}

/** Each kind: (dimension, random, gaussian, rows) -> writer of one row at `at`. */
const KINDS = {
  ...Object.fromEntries(
    Object.entries(SPECTRA).map(([kind, spectrum]) => [
      kind,
      (d, random, gaussian, rows) => spectralRows(spectrum, d, rows, random, gaussian),
    ]),
  ),
  random: (d, _random, gaussian) => (out, at) => {
    for (let j = 0; j < d; j++) out[at + j] = gaussian();
  },
  "256 clusters": (d, random, gaussian) => {
    const centres = Array.from({ length: 256 }, () => Float64Array.from({ length: d }, gaussian));
    return (out, at) => {
      const centre = centres[Math.floor(random() * 256)];
      for (let j = 0; j < d; j++) out[at + j] = centre[j] + 0.4 * gaussian();
    };
  },
  "common mean": (d, _random, gaussian) => {
    const mean = Float64Array.from({ length: d }, gaussian);
    return (out, at) => {
      for (let j = 0; j < d; j++) out[at + j] = mean[j] + gaussian();
    };
  },
  "all equal": (d) => (out, at) => {
    for (let j = 0; j < d; j++) out[at + j] = ((j * 37) % 11) - 4.5;
  },
  "within one ulp": (d, random) => {
    const base = Float32Array.from({ length: d }, () => random() - 0.5);
    return (out, at) => {
      for (let j = 0; j < d; j++) out[at + j] = base[j];
      const j = Math.floor(random() * d);
      out[at + j] *= 1 + (Math.floor(random() * 3) - 1) * 2 ** -23;
    };
  },
  "one huge coordinate": (d, random) => (out, at) => {
    for (let j = 0; j < d; j++) out[at + j] = random() - 0.5;
    out[at + Math.floor(random() * d)] = 1e9;
  },
  "constant vectors": (d, random) => (out, at) => {
    out.fill(Math.floor(random() * 9) - 4.5, at, at + d);
  },
  "rows of zeros": (d, random) => (out, at) => {
    if (random() < 0.01) for (let j = 0; j < d; j++) out[at + j] = random() - 0.5;
  },
};

const NORMALISED = new Set([...Object.keys(SPECTRA), "random", "256 clusters", "common mean"]);

/** f32[(rows + queries) × dimension]; the queries come last and are never zero. */
export function makeData({ kind, rows, dimension, queries, seed = 7 }) {
  const write = rowWriter({ kind, rows, dimension, seed });
  const data = new Float32Array((rows + queries) * dimension);
  for (let i = 0; i < rows + queries; i++) write(data, i * dimension, i >= rows);
  return data;
}

/**
 * The same row after row, for data that no array holds.
 *
 * @param rows  how many there will be, about: the number of groups follows it.
 * @returns {(out: Float32Array, at: number, isQuery: boolean) => void} writes the next row from element `at` on.
 */
export function rowWriter({ kind, rows, dimension, seed = 7 }) {
  const random = seededRandom(seed);
  const write = KINDS[kind](dimension, random, seededGaussian(random), rows);
  return (out, at, isQuery) => {
    write(out, at);
    let squares = 0;
    for (let j = 0; j < dimension; j++) squares += out[at + j] ** 2;
    if (squares === 0 && isQuery) out[at] = squares = 1;
    if (!NORMALISED.has(kind)) return;
    const norm = Math.sqrt(squares);
    for (let j = 0; j < dimension; j++) out[at + j] /= norm;
  };
}
