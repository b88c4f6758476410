/**
 * Seeded data sets that a bound could get wrong, each made row by row: data like embeddings, and data hostile
 * to codes.
 */
import { seededRandom } from "../../bench/data.mjs";

export interface Source {
  /** The next row or query, which belongs to all who ask for the same. */
  next(): Float32Array;
}

type Kind = (dimension: number, random: () => number) => () => Float32Array;

function gaussian(random: () => number): () => number {
  return () => Math.sqrt(-2 * Math.log(random() || 1e-12)) * Math.cos(2 * Math.PI * random());
}

function make(dimension: number, element: (j: number) => number): Float32Array {
  return Float32Array.from({ length: dimension }, (_, j) => element(j));
}

function normalized(x: Float32Array): Float32Array {
  const norm = Math.hypot(...x) || 1;
  return x.map((v) => v / norm);
}

export const DATA_KINDS: Record<string, Kind> = {
  "random directions": (d, random) => {
    const g = gaussian(random);
    return () => normalized(make(d, () => g()));
  },
  clusters: (d, random) => {
    const g = gaussian(random);
    const centres = Array.from({ length: 16 }, () => make(d, () => g()));
    return () => {
      const centre = centres[Math.floor(random() * 16)]!;
      return normalized(make(d, (j) => centre[j]! + 0.4 * g()));
    };
  },
  "a large common mean": (d, random) => {
    const g = gaussian(random);
    const mean = make(d, () => 3 * g());
    return () => make(d, (j) => mean[j]! + g());
  },
  "a steep spectrum, in directions of its own": (d, random) => {
    const g = gaussian(random);
    const directions = Array.from({ length: Math.min(d, 24) }, () => make(d, () => g()));
    return () => {
      const weights = directions.map((_, i) => g() / (i + 1));
      return make(d, (j) => directions.reduce((sum, direction, i) => sum + weights[i]! * direction[j]!, 0.3 * g()));
    };
  },
  "tiny rows beside a common mean": (d, random) => {
    const half = d >> 1;
    return () => {
      const kind = random();
      const scale = 10 ** (-45 * random());
      // Rows whose direction is far from the mean's and whose norm is close to zero, and a few like them of
      // ordinary size.
      if (kind < 0.03) return make(d, (j) => (j < half ? 0 : scale * (0.5 + random())));
      if (kind < 0.04) return make(d, (j) => (j < half ? 0.5 * random() : 2 * random()));
      return make(d, (j) => (j < half ? 1 : 0) + 0.01 * (random() - 0.5));
    };
  },
  "small whole numbers, many zeros and ties": (d, random) => () => make(d, () => (random() < 0.7 ? 0 : Math.floor(random() * 5) - 1)),
  "all equal": (d) => () => make(d, (j) => ((j * 37) % 11) / 10 - 0.4),
  "one ulp apart": (d, random) => {
    const base = make(d, () => random() - 0.5);
    return () => {
      const x = base.slice();
      const at = Math.floor(random() * d);
      x[at] = x[at]! * (1 + (Math.floor(random() * 3) - 1) * 2 ** -23);
      return x;
    };
  },
  "one huge coordinate": (d, random) => () => make(d, (j) => (j === 3 ? 1e6 * (1 + random() * 1e-6) : random() - 0.5)),
  "one huge coordinate, elsewhere in each row": (d, random) => () => {
    const at = Math.floor(random() * d);
    return make(d, (j) => (j === at ? 1e9 : random() - 0.5));
  },
  "constant vectors": (_d, random) => {
    return () =>
      make(
        _d,
        (
          (c) => () =>
            c
        )(Math.floor(random() * 9) - 4),
      );
  },
  "rows of zeros": (d, random) => () => (random() < 0.9 ? make(d, () => (random() < 0.5 ? 0 : -0)) : make(d, () => random() - 0.5)),
  "mixed scales": (d, random) => () => {
    const scale = 10 ** (Math.floor(random() * 60) - 30);
    return make(d, () => (random() - 0.5) * scale);
  },
  "norms of ten octaves": (d, random) => () => {
    const scale = 2 ** (10 * random());
    return make(d, () => (random() - 0.5) * scale);
  },
  "close to the largest float32": (d, random) => () => make(d, () => (random() < 0.5 ? 3.4e38 * (random() * 2 - 1) : random())),
  subnormals: (d, random) => () => make(d, () => (random() - 0.5) * 1e-40),
  "heavy tails": (d, random) => () => make(d, () => Math.tan(Math.PI * (random() - 0.5))),
};

/** What sources have made: every build is tested on the same data. */
const made = new Map<string, { readonly next: () => Float32Array; readonly vectors: Float32Array[] }>();

export function source(kind: string, dimension: number, seed: number): Source {
  const key = `${kind} ${dimension} ${seed}`;
  const known = made.get(key) ?? { next: DATA_KINDS[kind]!(dimension, seededRandom(seed)), vectors: [] };
  made.set(key, known);
  let at = 0;
  return {
    next() {
      if (at === known.vectors.length) known.vectors.push(known.next());
      return known.vectors[at++]!;
    },
  };
}
