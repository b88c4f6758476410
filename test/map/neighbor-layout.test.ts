/**
 * Whether the map's layout "neighbours" does what it says: of the records nearest to one in the vectors, more are nearest to it in the
 * picture than in the principal plane. Measured as usual: the share of the 15 nearest that is kept, and the trustworthiness (Venna and
 * Kaski, 2001), which also counts how far away those were that are wrongly near.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { type Similarity, VectorIndex } from "../../src/index.ts";
import { describeWith } from "../support/requirements.ts";

// The page's modules are only in its bundles.
const contents = ["neighbor-layout", "principal-plane"].map((name) => `export * from "./${name}.ts";`).join("\n");
const resolveDir = fileURLToPath(new URL("../../src/console/map/", import.meta.url));
const { outputFiles } = await build({ stdin: { contents, resolveDir }, bundle: true, format: "esm", platform: "node", write: false });
const url = `data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? "")}`;
const { neighborLayout, principalPlane, project } = (await import(/* @vite-ignore */ url)) as LayoutModule;

type LayoutModule = typeof import("../../src/console/map/principal-plane.ts") & {
  neighborLayout(order: {
    index: VectorIndex;
    /** x0, y0, x1, y1, … */
    plane: Float32Array;
    mask: undefined;
    similarity: Similarity;
    onProgress: (share: number) => void;
    isStopped: () => boolean;
  }): Promise<Float32Array | undefined>;
};

const NEAREST = 15;

interface Kept {
  /** Of the nearest, 0 to 1. */
  readonly share: number;
  readonly trustworthiness: number;
}

describe("the layout of neighbours", () => {
  it("keeps those of clusters that the principal plane lays over each other", async () => {
    const { plane, neighbors } = await layOut(clusters(600, 24, 64), "cosineSimilarity");
    expect(neighbors.share).toBeGreaterThan(1.4 * plane.share);
    expect(neighbors.trustworthiness).toBeGreaterThan(0.98);
    expect(plane.trustworthiness).toBeLessThan(0.95);
  });

  it("keeps those of a curled surface", async () => {
    const { plane, neighbors } = await layOut(curled(400), "l2");
    expect(neighbors.share).toBeGreaterThan(1.4 * plane.share);
    expect(neighbors.trustworthiness).toBeGreaterThan(0.98);
    expect(plane.trustworthiness).toBeLessThan(0.95);
  });
});

describeWith("bigann10k", "the layout of neighbours, of images' descriptors", (folder) => {
  it("keeps more of them than the principal plane", async () => {
    const bytes = readFileSync(`${folder}base.bvecs`);
    const vectors = Array.from({ length: 1_500 }, (_, row) => Float32Array.from(bytes.subarray(row * 132 + 4, (row + 1) * 132)));
    const { plane, neighbors } = await layOut(vectors, "l2");
    expect(neighbors.share).toBeGreaterThan(2 * plane.share);
    expect(neighbors.trustworthiness).toBeGreaterThan(plane.trustworthiness + 0.1);
  });
});

/** Around so many places, anywhere. */
function clusters(rows: number, places: number, dimension: number): Float32Array[] {
  const random = seededRandom(7);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const centers = Array.from({ length: places }, () => Float32Array.from({ length: dimension }, normal));
  return Array.from({ length: rows }, (_, row) => (centers[row % places] as Float32Array).map((value) => value + 0.5 * normal()));
}

/** A rolled-up strip, with a little noise in further directions. */
function curled(rows: number): Float32Array[] {
  const random = seededRandom(11);
  return Array.from({ length: rows }, () => {
    const angle = 1.5 * Math.PI * (1 + 2 * random());
    const along = 21 * random();
    return Float32Array.from({ length: 16 }, (_, j) => [angle * Math.cos(angle), along, angle * Math.sin(angle)][j] ?? 0.05 * random());
  });
}

async function layOut(vectors: readonly Float32Array[], similarity: Similarity): Promise<{ plane: Kept; neighbors: Kept }> {
  const dimension = vectors[0]!.length;
  const index = await VectorIndex.create({ dimension });
  index.upsertMany(
    vectors.map((_, row) => `r${row}`),
    Float32Array.from(vectors.flatMap((vector) => [...vector])),
  );
  const principal = principalPlane(vectors.length, dimension, (row) => vectors[row]!);
  const plane = Float32Array.from(vectors.flatMap((vector) => project(principal, vector)));
  const points = await neighborLayout({ index, plane, mask: undefined, similarity, onProgress: () => {}, isStopped: () => false });
  const compared = similarity === "cosineSimilarity" ? vectors.map(unit) : vectors;
  const exact = compared.map((vector) => nearestFirst(compared, vector));
  return { plane: keptIn(plane, exact), neighbors: keptIn(points as Float32Array, exact) };
}

/** Between vectors of length 1 the distance orders as the cosine does. */
function unit(vector: Float32Array): Float32Array {
  const norm = Math.hypot(...vector);
  return vector.map((value) => value / norm);
}

/** All rows, the nearest first; so the row itself is the first. */
function nearestFirst(vectors: readonly ArrayLike<number>[], from: ArrayLike<number>): readonly number[] {
  const distances = vectors.map((vector) => {
    let sum = 0;
    for (let j = 0; j < from.length; j++) sum += (vector[j]! - from[j]!) ** 2;
    return sum;
  });
  return vectors.map((_, row) => row).sort((a, b) => distances[a]! - distances[b]! || a - b);
}

function keptIn(points: Float32Array, exact: readonly (readonly number[])[]): Kept {
  const count = exact.length;
  const places = Array.from({ length: count }, (_, row) => points.subarray(2 * row, 2 * row + 2));
  let [kept, penalty] = [0, 0];
  for (const [row, truth] of exact.entries()) {
    const rankOf = new Map(truth.map((other, rank) => [other, rank]));
    const near = nearestFirst(places, places[row]!)
      .filter((other) => other !== row)
      .slice(0, NEAREST);
    for (const other of near) {
      const rank = rankOf.get(other) as number;
      if (rank <= NEAREST) kept++;
      else penalty += rank - NEAREST;
    }
  }
  const worst = (count * NEAREST * (2 * count - 3 * NEAREST - 1)) / 2;
  return { share: kept / (count * NEAREST), trustworthiness: 1 - penalty / worst };
}
