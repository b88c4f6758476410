/**
 * Tests every bound on its own, on vectors that are hard for float32 arithmetic: no bound exceeds the true
 * cost, and no test drops a row that scores as well as the k-th best. A search hides a bad bound as long as
 * another row is better, so this looks at the bounds themselves, through assembly/bounds-probe.ts.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { instantiate } from "@assemblyscript/loader";
import { main } from "assemblyscript/asc";
import { beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { enableRelaxedSimd } from "../../src/cli/relaxed-simd.ts";
import { SIMILARITIES } from "../reference.ts";
import { runs } from "../support/random-runs.ts";
import { CORE_HOST } from "./core-host.ts";

enableRelaxedSimd();

const ROWS = 48;
/** Names and codes of those that sketches are for. */
const SKETCHED = [["cosineSimilarity", 0] as const, ["l2", 2] as const, ["dotProduct", 3] as const];
const QUERIES = 8;
/** Codes of fewer dimensions have neither a head nor a prefix of their own. */
const SHORTEST_CODE = 64;

interface Probe extends Record<string, unknown> {
  memory: WebAssembly.Memory;
  initialize(dimension: number, maximumPages: number, outside: number): number;
  reserve(rows: number): number;
  stagingPtr(): number;
  set(row: number): void;
  encode(): void;
  isCentred(): number;
  reserveQueries(count: number, k: number): number;
  queryPtr(i: number): number;
  prepare(count: number, similarity: number): void;
  scoreOf(query: number, row: number): number;
  limitOf(query: number, score: number): number;
  boundOf(query: number, row: number, isHead: number): number;
  isLostAsFloats(query: number, row: number): number;
  prepareMany(count: number, rows: number): void;
  basisPtr(dimensions: number): number;
  basisCentrePtr(): number;
  basisPitch(): number;
  takeBasis(dimensions: number): number;
  sketchBoundOf(query: number, row: number): number;
  lostAmongMany(query: number, row: number, rows: number): number;
}

/** Two of the kinds below. */
const NEXT_TO_NOTHING = 7;
const OBLIQUE = 8;

type Element = (j: number) => number;

/**
 * The source of one case's rows and queries: a mean, and vectors near it, far from it, far smaller and far
 * larger than it.
 */
function vectorSource(dimension: number, seed: number): () => Float32Array {
  const random = seededRandom(seed);
  const gaussian = () => Math.sqrt(-2 * Math.log(random() || 1e-12)) * Math.cos(2 * Math.PI * random());
  const make = (element: Element) =>
    Float32Array.from({ length: dimension }, (_, j) => Math.max(-3.4e38, Math.min(3.4e38, Math.fround(element(j)))));
  const magnitude = (least: number, most: number) => 10 ** (least + (most - least) * random());
  const scale = [1, 1, magnitude(-12, 12), magnitude(-45, 38)][Math.floor(random() * 4)]!;
  const noise = scale * magnitude(-8, 2);
  const support = random();
  const mean = make(() => (random() < support ? scale * gaussian() : 0));
  const kinds: readonly (() => Float32Array)[] = [
    () => make((j) => mean[j]! + noise * gaussian()),
    () => make((j) => mean[j]! + noise * gaussian()),
    () => make((j) => mean[j]! + noise * gaussian()),
    () => mean,
    () => make((j) => -mean[j]!),
    () => {
      const least = scale * magnitude(-45, 0);
      return make(() => least * gaussian());
    },
    () => {
      const least = magnitude(-45, 0);
      return make((j) => (mean[j] === 0 ? least : 0));
    },
    () => {
      // ‖mean‖² / ‖x‖ comes to about the largest float32.
      const least = (mean.reduce((sum, m) => sum + m * m, 0) * 2 ** (-127 - 3 * random())) / Math.sqrt(dimension);
      return make((j) => (mean[j] === 0 ? least : 0));
    },
    () => make((j) => (mean[j] === 0 ? 2 * scale : 0.5 * mean[j]!)),
    () => {
      const size = magnitude(-45, 38.5);
      return make(() => size * gaussian());
    },
    () => {
      const at = Math.floor(random() * dimension);
      const size = magnitude(-45, 38.5);
      return make((j) => mean[j]! + (j === at ? size : 0));
    },
    () => {
      const factor = magnitude(-20, 10);
      return make((j) => factor * mean[j]!);
    },
    () => make(() => 0),
    () => make(() => Math.floor(random() * 3) - 1),
  ];
  // Only a few kinds at a time: in a test of a whole block one row can hide a fault in another.
  const few = seed % 3 === 0 ? [0, 1, 2, NEXT_TO_NOTHING, OBLIQUE] : Array.from({ length: 4 }, () => Math.floor(random() * kinds.length));
  return () => kinds[few[Math.floor(random() * few.length)]!]!();
}

/**
 * The basis of a sketch: some directions along rows, some random, made orthonormal, then bent by up to
 * `bend`. f64[dimensions][dimension].
 */
function makeBasis(
  dimensions: number,
  rows: readonly Float32Array[],
  centre: Float32Array,
  bend: number,
  random: () => number,
): number[][] {
  const basis: number[][] = [];
  for (let i = 0; basis.length < dimensions; i++) {
    const row = rows[Math.floor(random() * rows.length)]!;
    let v = Array.from(centre, (c, j) => (i % 2 === 0 ? row[j]! - c : random() - 0.5));
    const largest = Math.max(...v.map(Math.abs));
    v = v.map((x) => x / (largest || 1));
    // Twice: once is not enough if little is left.
    for (const other of [...basis, ...basis]) {
      const product = other.reduce((sum, x, j) => sum + x * v[j]!, 0);
      v = v.map((x, j) => x - product * other[j]!);
    }
    const norm = Math.hypot(...v);
    if (norm > 1e-6) basis.push(v.map((x) => x / norm));
  }
  return basis.map((v) => v.map((x) => x * (1 + bend * (random() - 0.5))));
}

/** The cost in float64, which a search minimises. */
function trueCost(similarity: (typeof SIMILARITIES)[number], x: Float32Array, q: Float32Array): number {
  let sum = 0;
  let squares = 0;
  for (let j = 0; j < x.length; j++) {
    if (similarity === "cosineSimilarity" || similarity === "dotProduct") sum -= x[j]! * q[j]!;
    else if (similarity === "l1") sum += Math.abs(x[j]! - q[j]!);
    else sum += (x[j]! - q[j]!) ** 2;
    squares += x[j]! * x[j]!;
  }
  if (similarity !== "cosineSimilarity") return sum;
  return squares === 0 ? 0 : sum / Math.sqrt(squares);
}

/** What the magnitude of a cost comes to at most, to compare what a bound loses with; l2: twice that. */
function largestCost(similarity: (typeof SIMILARITIES)[number], x: Float32Array, q: Float32Array): number {
  if (similarity === "l2") return Math.hypot(...q) ** 2 + Math.hypot(...x) ** 2;
  return Math.hypot(...q) * (similarity === "dotProduct" ? Math.hypot(...x) : 1);
}

describe.each(["relaxed", "simd"])("bounds (%s build)", (build) => {
  let module: WebAssembly.Module;
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), "lodestone-probe-"));
    const { error, stderr } = await main(["assembly/bounds-probe.ts", "--target", build, "--outFile", join(folder, "probe.wasm")]);
    if (error) throw new Error(stderr.toString(), { cause: error });
    module = await WebAssembly.compile(readFileSync(join(folder, "probe.wasm")));
    rmSync(folder, { recursive: true });
  });

  it.each([
    [48, runs(150)],
    [65, runs(300)],
    [200, runs(150)],
    [768, runs(40)],
    [10_000, runs(2)],
  ])("dimension %i: no bound is above the true cost, no test drops a row at its own score (%i cases)", async (dimension, cases) => {
    for (let seed = 1; seed <= cases; seed++) {
      const next = vectorSource(dimension, seed * 7919 + dimension);
      const { exports: probe } = await instantiate<Probe>(module, { host: CORE_HOST });
      probe.initialize(dimension, 4096, 0);
      probe.reserve(ROWS);
      const rows = Array.from({ length: ROWS }, next);
      rows.forEach((vector, i) => {
        new Float32Array(probe.memory.buffer, probe.stagingPtr() >>> 0, dimension).set(vector);
        probe.set(i);
      });
      probe.encode();
      const queries = Array.from({ length: QUERIES }, (_, i) => (i === 0 ? rows[5]! : next()).slice());
      for (const query of queries) if (query.every((x) => x === 0)) query[0] = 1e-30;
      probe.reserveQueries(QUERIES, 1);
      queries.forEach((vector, i) => {
        new Float32Array(probe.memory.buffer, probe.queryPtr(i) >>> 0, dimension).set(vector);
      });
      SIMILARITIES.forEach((name, similarity) => {
        probe.prepare(QUERIES, similarity);
        const isMany = name !== "l1";
        if (isMany) probe.prepareMany(QUERIES, ROWS);
        queries.forEach((query, i) => {
          rows.forEach((row, r) => {
            const where = `seed ${seed}, ${name}, query ${i}, row ${r}`;
            const cost = trueCost(name, row, query);
            const score = probe.scoreOf(i, r);
            const limit = probe.limitOf(i, score);
            for (const isHead of dimension > SHORTEST_CODE ? [0, 1] : [0]) {
              const bound = probe.boundOf(i, r, isHead);
              if (bound > cost || bound > limit)
                expect.fail(`${where}: ${isHead ? "head" : "code"} bounds ${cost} by ${bound}, limit ${limit}`);
            }
            if (probe.isLostAsFloats(i, r)) expect.fail(`${where}: lost as float32`);
            const lost = isMany ? probe.lostAmongMany(i, r, ROWS) : 0;
            if (lost !== 0) expect.fail(`${where}: lost among many queries, tests ${lost}`);
          });
        });
      });
    }
  });

  it.each([
    [96, 32, runs(60)],
    [100, 64, runs(30)],
    [768, 96, 3],
  ])("dimension %i, sketches of %i: no bound is above the true cost (%i cases)", async (dimension, dimensions, cases) => {
    let tight = 0;
    for (let seed = 1; seed <= cases; seed++) {
      const random = seededRandom(seed * 31 + dimension);
      const next = vectorSource(dimension, seed * 7919 + dimension);
      const { exports: probe } = await instantiate<Probe>(module, { host: CORE_HOST });
      const write = (ptr: number, vector: ArrayLike<number>) => new Float32Array(probe.memory.buffer, ptr >>> 0, vector.length).set(vector);
      probe.initialize(dimension, 4096, 0);
      probe.reserve(ROWS);
      const rows = Array.from({ length: ROWS }, next);
      rows.forEach((vector, i) => {
        write(probe.stagingPtr(), vector);
        probe.set(i);
      });
      const queries = Array.from({ length: QUERIES }, (_, i) => (i === 0 ? rows[5]! : next()).slice());
      for (const query of queries) if (query.every((x) => x === 0)) query[0] = 1e-30;
      probe.reserveQueries(QUERIES, 1);
      queries.forEach((vector, i) => {
        write(probe.queryPtr(i), vector);
      });
      const centre = seed % 2 === 0 ? rows[7]! : new Float32Array(dimension);
      // Up to 2^-7, which learning still accepts, and none at all.
      const basis = makeBasis(dimensions, rows, centre, [0, 1e-5, 1e-3][seed % 3]!, random);
      const basisPtr = probe.basisPtr(dimensions) >>> 0;
      basis.forEach((v, i) => {
        write(basisPtr + 4 * i * probe.basisPitch(), v);
      });
      write(probe.basisCentrePtr(), centre);
      expect(probe.takeBasis(dimensions)).toBeLessThan(2 ** -7);
      for (const [name, similarity] of SKETCHED) {
        probe.prepare(QUERIES, similarity);
        queries.forEach((query, i) => {
          rows.forEach((row, r) => {
            const cost = trueCost(name, row, query);
            const limit = probe.limitOf(i, probe.scoreOf(i, r));
            const bound = probe.sketchBoundOf(i, r);
            if (bound > cost || bound > limit)
              expect.fail(`seed ${seed}, ${name}, query ${i}, row ${r}: bounds ${cost} by ${bound}, limit ${limit}`);
            const most = largestCost(name, row, query);
            if (bound > cost - 0.3 * most) tight++;
          });
        });
      }
    }
    // A bound that says nothing would pass too.
    expect(tight).toBeGreaterThan(cases * ROWS);
  });

  it("rows along what the codes of a query's sketch lose but their own codes keep: no bound exceeds the true cost", async () => {
    const [dimension, dimensions] = [96, 32];
    const random = seededRandom(77);
    const gaussian = () => Math.sqrt(-2 * Math.log(random() || 1e-12)) * Math.cos(2 * Math.PI * random());
    const vector = () => Float32Array.from({ length: dimension }, gaussian);
    const { exports: probe } = await instantiate<Probe>(module, { host: CORE_HOST });
    const write = (ptr: number, values: ArrayLike<number>) => new Float32Array(probe.memory.buffer, ptr >>> 0, values.length).set(values);
    const centre = vector();
    const basis = makeBasis(dimensions, Array.from({ length: ROWS }, vector), centre, 0, random);
    const queries = Array.from({ length: QUERIES }, vector);
    const rows = queries.map((query) => {
      const sketch = basis.map((b) => b.reduce((sum, x, j) => sum + x * (query[j]! - centre[j]!), 0));
      const unit = Math.max(...sketch.map(Math.abs)) / 127;
      const lost = sketch.map((value) => value - Math.round(value / unit) * unit);
      // Four bits lose nothing of values that are ±5/2 of a power of two.
      const signs = lost.map((value) => (value < 0 ? -0.3125 : 0.3125));
      return centre.map((c, j) => c + basis.reduce((sum, b, i) => sum + b[j]! * signs[i]!, 0));
    });
    probe.initialize(dimension, 4096, 0);
    probe.reserve(ROWS);
    rows.forEach((row, i) => {
      write(probe.stagingPtr(), row);
      probe.set(i);
    });
    probe.reserveQueries(QUERIES, 1);
    queries.forEach((query, i) => {
      write(probe.queryPtr(i), query);
    });
    const basisPtr = probe.basisPtr(dimensions) >>> 0;
    basis.forEach((b, i) => {
      write(basisPtr + 4 * i * probe.basisPitch(), b);
    });
    write(probe.basisCentrePtr(), centre);
    expect(probe.takeBasis(dimensions)).toBeLessThan(1e-5);
    for (const [name, similarity] of SKETCHED) {
      probe.prepare(QUERIES, similarity);
      queries.forEach((query, i) => {
        const cost = trueCost(name, rows[i]!, query);
        const bound = probe.sketchBoundOf(i, i);
        expect(bound, `${name}, query ${i}`).toBeLessThanOrEqual(cost);
        // Nor far below: the rows lie in the space of the basis, so their sketches lose only what the
        // queries' sketches lose.
        expect(bound, `${name}, query ${i}`).toBeGreaterThan(cost - 0.1 * largestCost(name, rows[i]!, query));
      });
    }
  });

  it("a direction of the basis that is too long hides a part of the rest: no bound exceeds the true cost", async () => {
    const [dimension, dimensions] = [96, 32];
    const random = seededRandom(78);
    const centre = new Float32Array(dimension);
    const vectors = Array.from({ length: ROWS }, () => Float32Array.from({ length: dimension }, () => random() - 0.5));
    const orthonormal = makeBasis(dimensions + 1, vectors, centre, 0, random);
    const outside = orthonormal[dimensions]!;
    const basis = orthonormal.slice(0, dimensions).map((v, i) => (i === 0 ? v.map((x) => x * Math.sqrt(1.007)) : v));
    const sum = (a: number, x: number[], b: number, y: number[]) => Float32Array.from(x, (value, j) => a * value + b * y[j]!);
    // ‖y‖² − ‖s‖² alone is too little for what lies outside: 0.09 − 0.007.
    const long = sum(1, orthonormal[0]!, 0.3, outside);
    const apart = sum(1, outside, 0.001, orthonormal[5]!);
    const { exports: probe } = await instantiate<Probe>(module, {
      host: CORE_HOST,
    });
    const write = (ptr: number, values: ArrayLike<number>) => new Float32Array(probe.memory.buffer, ptr >>> 0, values.length).set(values);
    probe.initialize(dimension, 4096, 0);
    probe.reserve(2);
    const pairs = [long, apart];
    pairs.forEach((row, i) => {
      write(probe.stagingPtr(), row);
      probe.set(i);
    });
    probe.reserveQueries(2, 1);
    pairs.forEach((query, i) => {
      write(probe.queryPtr(i), query);
    });
    const basisPtr = probe.basisPtr(dimensions) >>> 0;
    basis.forEach((b, i) => {
      write(basisPtr + 4 * i * probe.basisPitch(), b);
    });
    write(probe.basisCentrePtr(), centre);
    expect(probe.takeBasis(dimensions)).toBeGreaterThan(0.0069);
    for (const [name, similarity] of SKETCHED) {
      probe.prepare(2, similarity);
      // Either is the query once and the row once: what a query leaves out and what a row leaves out.
      for (const query of [0, 1]) {
        const cost = trueCost(name, pairs[1 - query]!, pairs[query]!);
        const bound = probe.sketchBoundOf(query, 1 - query);
        expect(bound, `${name}, query ${query}`).toBeLessThanOrEqual(cost);
        expect(bound, `${name}, query ${query}`).toBeGreaterThan(cost - 0.1);
      }
    }
  });
});
