/**
 * Lays records out so that those near each other in the vectors are near each other in the picture: UMAP (McInnes and others, 2018)
 * by umap-js, on the graph of the exact nearest neighbours, which the page's own library finds. Runs in the map's worker.
 * Deterministic: the same records give the same picture.
 */
import type { Similarity, VectorIndex } from "lodestone";
import { UMAP } from "umap-js";

/** The graph and its layout take a few hundred bytes for each of the edges; a larger one takes minutes. */
export const MOST_LAID_OUT = 20_000;
const NEIGHBORS = 15;
/** Until other messages are looked at. */
const SLICE_MS = 50;
/** Of the first layout, which is the principal plane: as UMAP begins. */
const BEGIN_SIZE = 10;

interface LayoutOrder {
  /** Its rows are the points. */
  readonly index: VectorIndex;
  /** x0, y0, x1, y1, … in the principal plane. */
  readonly plane: Float32Array;
  /** The rows that have points; undefined: all. */
  readonly mask: Uint32Array | undefined;
  readonly similarity: Similarity;
  /** @param share  of the work that is done, 0 to 1. */
  readonly onProgress: (share: number) => void;
  /** Asked between slices. */
  readonly isStopped: () => boolean;
}

/**
 * @returns x0, y0, x1, y1, …; undefined when it was stopped.
 * @throws {RangeError} too few records, or too many.
 */
export async function neighborLayout(order: LayoutOrder): Promise<Float32Array<ArrayBuffer> | undefined> {
  const { plane, onProgress, isStopped } = order;
  const count = plane.length / 2;
  if (count < 4 || count > MOST_LAID_OUT)
    throw new RangeError(
      `Neighbours are laid out for 4 to ${MOST_LAID_OUT.toLocaleString("en")} records, not ${count.toLocaleString("en")}.`,
    );
  const nNeighbors = Math.min(NEIGHBORS, count - 1);
  const indices: number[][] = [];
  const distances: number[][] = [];
  const slices = new Slices(isStopped);
  for (let row = 0; row < count; row++) {
    const near = nearestOf(order, row, nNeighbors);
    indices.push(near.map((neighbor) => neighbor.row));
    distances.push(near.map(({ distance }) => distance));
    if (await slices.isOver(() => onProgress((row / count) * 0.5))) return undefined;
  }
  const umap = new UMAP({ nNeighbors, random: seededRandom() });
  umap.setPrecomputedKNN(indices, distances);
  // With neighbours at hand it counts the vectors, and does not look at them.
  const epochs = umap.initializeFit(Array.from({ length: count }, () => []));
  const places = umap.getEmbedding();
  const size = plane.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  for (const [row, place] of places.entries()) {
    // Not random: the picture resembles the one before it. Equal records begin a little apart.
    place[0] = (plane[2 * row]! / size) * BEGIN_SIZE + 1e-4 * Math.cos(row);
    place[1] = (plane[2 * row + 1]! / size) * BEGIN_SIZE + 1e-4 * Math.sin(row);
  }
  for (let epoch = 0; epoch < epochs; epoch++) {
    umap.step();
    if (await slices.isOver(() => onProgress(0.5 + (epoch / epochs) * 0.5))) return undefined;
  }
  return Float32Array.from(umap.getEmbedding().flat());
}

/** The record itself first, as UMAP expects it. */
function nearestOf({ index, mask, similarity }: LayoutOrder, row: number, most: number): readonly { row: number; distance: number }[] {
  const ownId = index.rows.idOf(row) as string;
  const vector = index.get(ownId) as Float32Array;
  const { results } = index.search(vector, { k: most, similarity, filter: mask });
  const others = results.filter(({ id }) => id !== ownId);
  const near = others.map(({ id }) => ({
    row: index.rows.rowOf(id) as number,
    distance: distanceOf(vector, index.get(id) as Float32Array, similarity),
  }));
  return [{ row, distance: 0 }, ...near.toSorted((a, b) => a.distance - b.distance)].slice(0, most);
}

/** Of what the similarity orders by: the angle's 1 − cos, or else the way between the two. */
function distanceOf(a: Float32Array, b: Float32Array, similarity: Similarity): number {
  let [dot, squareA, squareB, square] = [0, 0, 0, 0];
  for (let j = 0; j < a.length; j++) {
    dot += a[j]! * b[j]!;
    squareA += a[j]! ** 2;
    squareB += b[j]! ** 2;
    square += (a[j]! - b[j]!) ** 2;
  }
  if (similarity !== "cosineSimilarity") return Math.sqrt(square);
  return squareA === 0 || squareB === 0 ? 1 : Math.max(0, 1 - dot / Math.sqrt(squareA * squareB));
}

/** Lets other messages through now and then. */
class Slices {
  readonly #isStopped: () => boolean;
  #begunMs = performance.now();

  constructor(isStopped: () => boolean) {
    this.#isStopped = isStopped;
  }

  /** @returns whether the work was stopped. */
  async isOver(report: () => void): Promise<boolean> {
    if (performance.now() - this.#begunMs < SLICE_MS) return false;
    report();
    await new Promise((resolve) => setTimeout(resolve));
    this.#begunMs = performance.now();
    return this.#isStopped();
  }
}

/** Mulberry32. */
function seededRandom(): () => number {
  let state = 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
