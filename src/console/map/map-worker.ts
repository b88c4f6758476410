/**
 * Runs outside the page's thread: reads the vectors, holds them in the project's own WebAssembly library,
 * computes the plane and finds what is nearest.
 */
import { VectorIndex } from "lodestone";
import {
  type ColorRequest,
  type FoundRecord,
  type LoadRequest,
  type MapReply,
  type MapRequest,
  type NearestRequest,
  packIds,
  type SuggestRequest,
} from "./messages.ts";
import { pointColors } from "./point-colors.ts";
import { columnValues, vectorBlocks } from "./vector-stream.ts";

interface LoadedMap {
  readonly index: VectorIndex;
  readonly ids: readonly string[];
  readonly rowOf: ReadonlyMap<string, number>;
  readonly plane: PrincipalPlane;
}

let loaded: LoadedMap | undefined;

addEventListener("message", ({ data }: MessageEvent<MapRequest>) => {
  if (data.kind === "color")
    void color(data).catch((error: Error) => reply({ kind: "fault", ticket: data.ticket, message: error.message }));
  else if (data.kind === "load")
    void load(data).catch((error: Error) => reply({ kind: "fault", ticket: undefined, message: error.message }));
  else answer(data);
});

function reply(message: MapReply, transfer: Transferable[] = []): void {
  (self as unknown as Worker).postMessage(message, transfer);
}

async function load(request: LoadRequest): Promise<void> {
  loaded?.index.free();
  loaded = undefined;
  const index = await VectorIndex.create({ dimension: request.dimension });
  const ids: string[] = [];
  const values: (string | null)[] = [];
  const blocks = vectorBlocks(request);
  let step = await blocks.next();
  for (; step.done !== true; step = await blocks.next()) {
    const { value: block } = step;
    index.upsertMany(block.ids, block.matrix);
    for (const [i, id] of block.ids.entries()) {
      ids.push(id);
      values.push(block.values?.[i] ?? null);
    }
    reply({ kind: "progress", rows: ids.length });
  }
  const isPartial = step.value;
  const vectorAt = (row: number): Float32Array => index.get(ids[row] as string) as Float32Array;
  const plane = principalPlane(ids.length, request.dimension, vectorAt);
  const points = new Float32Array(ids.length * 2);
  for (let row = 0; row < ids.length; row++) points.set(project(plane, vectorAt(row)), row * 2);
  loaded = { index, ids, rowOf: new Map(ids.map((id, row) => [id, row])), plane };
  const packed = packIds(ids);
  const { colors, legend } = pointColors(values);
  reply({ kind: "plane", plane: { ids: packed, points, colors, legend, share: plane.share, isPartial } }, [
    packed.bytes.buffer,
    packed.ends.buffer,
    points.buffer,
    colors.buffer,
  ]);
}

async function color(request: ColorRequest): Promise<void> {
  if (loaded === undefined) throw new Error("Nothing is loaded.");
  const { ids, rowOf } = loaded;
  const values: (string | null)[] = new Array(ids.length).fill(null);
  let left = ids.length;
  for await (const [id, value] of columnValues(request)) {
    const row = rowOf.get(id);
    if (row === undefined) continue;
    values[row] = value;
    left--;
    if (left === 0) break;
  }
  const { colors, legend } = pointColors(values);
  reply({ kind: "colored", ticket: request.ticket, colors, legend }, [colors.buffer]);
}

function answer(request: Exclude<MapRequest, LoadRequest | ColorRequest>): void {
  try {
    if (loaded === undefined) throw new Error("Nothing is loaded.");
    if (request.kind === "nearest") findNearest(loaded, request);
    else if (request.kind === "suggest") reply({ kind: "suggested", ticket: request.ticket, ids: suggest(loaded, request) });
    else reply({ kind: "found", ticket: request.ticket, records: lookUp(loaded, request.ids) });
  } catch (error) {
    reply({ kind: "fault", ticket: request.ticket, message: (error as Error).message });
  }
}

function lookUp({ index, rowOf }: LoadedMap, ids: readonly string[]): readonly (FoundRecord | undefined)[] {
  return ids.map((id) => {
    const row = rowOf.get(id);
    return row === undefined ? undefined : { row, vector: index.get(id) as Float32Array };
  });
}

function suggest({ ids }: LoadedMap, { typed, size }: SuggestRequest): readonly string[] {
  const found: string[] = [];
  for (const id of ids) {
    if (!id.includes(typed)) continue;
    found.push(id);
    if (found.length === size) break;
  }
  return found;
}

function findNearest({ index, rowOf, plane }: LoadedMap, { ticket, source, size, similarity }: NearestRequest): void {
  const query =
    source.from === "record"
      ? index.get(source.id)
      : source.from === "plane"
        ? lift(plane, source.x, source.y)
        : Float32Array.from(source.vector);
  if (query === undefined) throw new Error("The record is not among those that are loaded.");
  const beganMs = performance.now();
  const { results } = index.search(query, { k: size, similarity });
  const ms = performance.now() - beganMs;
  const [x, y] = project(plane, query);
  const neighbors = results.map(({ id, score }) => ({ id, score, row: rowOf.get(id) as number }));
  reply({ kind: "nearest", ticket, neighbors, query, x, y, ms });
}

/**
 * Limit for rows times dimensions of the sample: two seconds of iteration at worst, usually a tenth of one.
 */
const SAMPLE_ELEMENTS = 1_000_000;
const LEAST_ROWS = 200;
const ITERATIONS = 40;

/**
 * The plane in which records are shown: their mean and the two directions of greatest spread (principal
 * components). Computed by orthogonal iteration on a sample, without ever forming the d × d matrix.
 * Deterministic: the same records give the same picture.
 */
interface PrincipalPlane {
  readonly mean: Float64Array;
  /** Orthonormal. */
  readonly first: Float64Array;
  readonly second: Float64Array;
  /** Share of the sample's variance in the plane, 0 to 1. */
  readonly share: number;
}

/**
 * @param count  number of rows.
 * @param rowAt  returns a row's vector; called for some rows, evenly spread.
 */
function principalPlane(count: number, dimension: number, rowAt: (row: number) => ArrayLike<number>): PrincipalPlane {
  const sampled = Math.min(count, Math.max(LEAST_ROWS, Math.floor(SAMPLE_ELEMENTS / dimension)));
  const sample = Array.from({ length: sampled }, (_, i) => Float64Array.from(rowAt(Math.floor((i * count) / sampled))));
  const mean = new Float64Array(dimension);
  for (const row of sample) for (let j = 0; j < dimension; j++) mean[j]! += row[j]! / sampled;
  let variance = 0;
  for (const row of sample) {
    for (let j = 0; j < dimension; j++) {
      row[j]! -= mean[j]!;
      variance += row[j]! ** 2 / sampled;
    }
  }
  const first = start(dimension, 1);
  const second = start(dimension, 2);
  let spread = 0;
  for (let i = 0; i < ITERATIONS; i++) {
    const a = spreadAlong(sample, first);
    const b = spreadAlong(sample, second);
    first.set(a);
    normalize(first, 0);
    second.set(b);
    orthogonalize(second, first);
    normalize(second, 1);
    spread = meanSquare(sample, first) + meanSquare(sample, second);
  }
  fixSign(first);
  fixSign(second);
  return { mean, first, second, share: variance === 0 ? 1 : Math.min(1, spread / variance) };
}

function project(plane: PrincipalPlane, vector: ArrayLike<number>): [x: number, y: number] {
  let x = 0;
  let y = 0;
  for (let j = 0; j < plane.mean.length; j++) {
    const centered = vector[j]! - plane.mean[j]!;
    x += centered * plane.first[j]!;
    y += centered * plane.second[j]!;
  }
  return [x, y];
}

/** The vector at a place in the plane. */
function lift(plane: PrincipalPlane, x: number, y: number): Float32Array {
  return Float32Array.from(plane.mean, (value, j) => value + x * plane.first[j]! + y * plane.second[j]!);
}

/** Two start vectors that are orthogonal to the data only by coincidence. */
function start(dimension: number, seed: number): Float64Array {
  return Float64Array.from({ length: dimension }, (_, j) => Math.cos((j + 1) * seed * 1.7) + 0.3 * seed);
}

/** Sᵀ S v. */
function spreadAlong(sample: readonly Float64Array[], direction: Float64Array): Float64Array {
  const sum = new Float64Array(direction.length);
  for (const row of sample) {
    const along = dot(row, direction);
    for (let j = 0; j < sum.length; j++) sum[j]! += along * row[j]!;
  }
  return sum;
}

function meanSquare(sample: readonly Float64Array[], direction: Float64Array): number {
  let sum = 0;
  for (const row of sample) sum += dot(row, direction) ** 2;
  return sum / sample.length;
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let j = 0; j < a.length; j++) sum += a[j]! * b[j]!;
  return sum;
}

function orthogonalize(vector: Float64Array, against: Float64Array): void {
  const along = dot(vector, against);
  for (let j = 0; j < vector.length; j++) vector[j]! -= along * against[j]!;
}

/** @param axis  used if nothing is left (all records on one line, or at one point). */
function normalize(vector: Float64Array, axis: number): void {
  const norm = Math.sqrt(dot(vector, vector));
  if (norm > 1e-12) for (let j = 0; j < vector.length; j++) vector[j]! /= norm;
  else vector.fill(0)[axis % vector.length] = 1;
}

/** Makes the element of greatest magnitude positive. */
function fixSign(vector: Float64Array): void {
  const greatest = vector.reduce((best, value) => (Math.abs(value) > Math.abs(best) ? value : best), 0);
  if (greatest < 0) for (let j = 0; j < vector.length; j++) vector[j] = -vector[j]!;
}
