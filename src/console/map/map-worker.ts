/**
 * Runs outside the page's thread: reads the vectors, holds them in the project's own WebAssembly library,
 * computes the plane and finds what is nearest. A row of the index is a point of the map, in the order in which they came.
 */
import { LodestoneError, VectorIndex } from "lodestone";
import {
  type ColorRequest,
  type FoundRecord,
  type LayoutRequest,
  type LoadRequest,
  type MapReply,
  type MapRequest,
  type NearestRequest,
  packIds,
  type SizeRequest,
} from "./messages.ts";
import { pointColors } from "./point-colors.ts";
import { pointSizes } from "./point-sizes.ts";
import { lift, type PrincipalPlane, principalPlane, project } from "./principal-plane.ts";
import { columnValues, laterThan, vectorBlocks } from "./vector-stream.ts";

interface LoadedMap {
  readonly index: VectorIndex;
  /** Of the column that colours the points, or null. */
  values: (string | null)[];
  colorColumn: string | undefined;
  plane: PrincipalPlane;
  /** In the principal plane. While more is read, the index has more rows than these. */
  points: Float32Array<ArrayBuffer>;
  /** Other places of the points, if they are shown there. */
  laidOut: Float32Array<ArrayBuffer> | undefined;
  /** The rows that have points, for searches; undefined: all. */
  mask: Uint32Array | undefined;
}

/** How often a load says at most how far it is. */
const PROGRESS_STEPS = 200;

let loaded: LoadedMap | undefined;
/** Ends the reading that is under way. */
let reading: AbortController | undefined;

addEventListener("message", ({ data }: MessageEvent<MapRequest>) => {
  switch (data.kind) {
    case "load":
      void load(data).catch((error: Error) => reply({ kind: "fault", ticket: undefined, message: error.message }));
      return;
    case "stop":
      reading?.abort();
      return;
    case "color":
      void color(data).catch(faultOf(data));
      return;
    case "size":
      void size(data).catch(faultOf(data));
      return;
    case "lay out":
      void layOut(data).catch(faultOf(data));
      return;
    default:
      try {
        if (data.kind === "nearest") findNearest(loadedMap(), data);
        else reply({ kind: "found", ticket: data.ticket, records: lookUp(loadedMap(), data.ids) });
      } catch (error) {
        faultOf(data)(error as Error);
      }
  }
});

function reply(message: MapReply, transfer: Transferable[] = []): void {
  (self as unknown as Worker).postMessage(message, transfer);
}

const faultOf =
  ({ ticket }: { readonly ticket: number }) =>
  ({ message }: Error): void =>
    reply({ kind: "fault", ticket, message });

function loadedMap(): LoadedMap {
  if (loaded === undefined) throw new Error("Nothing is loaded.");
  return loaded;
}

const countOf = ({ points }: LoadedMap): number => points.length / 2;
/** A row that has an id, and therefore one of the index. */
const idOf = ({ index }: LoadedMap, row: number): string => index.rows.idOf(row) as string;

/** The row, if it has a point. */
function pointOf(map: LoadedMap, id: string): number | undefined {
  const row = map.index.rows.rowOf(id);
  return row !== undefined && row < countOf(map) ? row : undefined;
}

/** Reads on from where an earlier request ended. Whatever ends it, what has come so far is shown. */
async function load(request: LoadRequest): Promise<void> {
  const map = loaded ?? {
    index: await VectorIndex.create({ dimension: request.dimension, maximumMemoryBytes: request.memoryBytes }),
    values: [],
    colorColumn: request.colorColumn,
    plane: principalPlane(0, request.dimension, () => []),
    points: new Float32Array(0),
    laidOut: undefined,
    mask: undefined,
  };
  const { index } = map;
  map.mask = maskOfFirst(index.size);
  const values: (string | null)[] = [];
  const controller = new AbortController();
  reading = controller;
  let isPartial = true;
  let isFull = false;
  let fault: string | undefined;
  let told = index.size;
  try {
    const blocks = vectorBlocks(restOf(map, request), controller.signal);
    let step = await blocks.next();
    for (; step.done !== true; step = await blocks.next()) {
      const { value: block } = step;
      index.upsertMany(block.ids, block.matrix);
      for (const i of block.ids.keys()) values.push(block.values?.[i] ?? null);
      // Each is a rendering of what stands around the map.
      if (index.size - told >= request.limit / PROGRESS_STEPS) {
        told = index.size;
        reply({ kind: "progress", rows: told });
      }
    }
    isPartial = step.value;
  } catch (error) {
    if (index.size === 0) throw error;
    isFull = error instanceof LodestoneError && error.code === "OUT_OF_MEMORY";
    if (!isFull && !controller.signal.aborted) fault = (error as Error).message;
    // What is not read need not be sent.
    controller.abort();
  }
  // Colours that were chosen meanwhile are of the rows that were there.
  const isOneColumn = map.colorColumn === request.colorColumn;
  map.values = isOneColumn ? map.values.concat(values) : new Array(index.size).fill(null);
  if (!isOneColumn) map.colorColumn = undefined;
  arrange(map);
  loaded = map;
  const ids = packIds(Array.from({ length: index.size }, (_, row) => idOf(map, row)));
  const points = map.points.slice();
  const { colors, legend } = pointColors(map.values);
  const plane = { ids, points, colors, legend, sizes: undefined, share: map.plane.share, isPartial };
  reply({ kind: "plane", plane, colorColumn: map.colorColumn, isFull, fault }, [
    ids.bytes.buffer,
    ids.ends.buffer,
    points.buffer,
    colors.buffer,
  ]);
}

/** Records come in the order of their ids. */
function restOf(map: LoadedMap, request: LoadRequest): LoadRequest {
  const { size } = map.index;
  if (size === 0) return request;
  return { ...request, filter: laterThan(idOf(map, size - 1), request.filter), limit: request.limit - size };
}

/** Gives every row its place in the principal plane of all. */
function arrange(map: LoadedMap): void {
  const { index } = map;
  const vectorAt = (row: number): Float32Array => index.get(idOf(map, row)) as Float32Array;
  layouts++;
  map.laidOut = undefined;
  map.plane = principalPlane(index.size, index.dimension, vectorAt);
  map.points = new Float32Array(index.size * 2);
  for (let row = 0; row < index.size; row++) map.points.set(project(map.plane, vectorAt(row)), row * 2);
  map.mask = undefined;
}

function maskOfFirst(rows: number): Uint32Array {
  const mask = new Uint32Array(Math.ceil(rows / 32)).fill(0xffff_ffff);
  if (rows % 32 > 0) mask[rows >> 5] = 2 ** (rows % 32) - 1;
  return mask;
}

/** Of each point, what its record has in a column, as text. */
async function valuesOf(map: LoadedMap, request: ColorRequest | SizeRequest, name: string): Promise<(string | null)[]> {
  const count = countOf(map);
  const values: (string | null)[] = new Array(count).fill(null);
  let left = count;
  for await (const [id, value] of columnValues(request, name)) {
    const row = map.index.rows.rowOf(id);
    if (row === undefined || row >= count) continue;
    values[row] = value;
    left--;
    if (left === 0) break;
  }
  return values;
}

async function color(request: ColorRequest): Promise<void> {
  const map = loadedMap();
  const { colorColumn } = request;
  const values = colorColumn === undefined ? new Array(countOf(map)).fill(null) : await valuesOf(map, request, colorColumn);
  map.values = values;
  map.colorColumn = colorColumn;
  const { colors, legend } = pointColors(values);
  reply({ kind: "colored", ticket: request.ticket, colors, legend }, [colors.buffer]);
}

async function size(request: SizeRequest): Promise<void> {
  const values = await valuesOf(loadedMap(), request, request.sizeColumn);
  const sizes = pointSizes(request.sizeColumn, values);
  reply({ kind: "sized", ticket: request.ticket, sizes }, [sizes.factors.buffer]);
}

let layouts = 0;

async function layOut({ ticket, layout, similarity }: LayoutRequest): Promise<void> {
  const map = loadedMap();
  const turn = ++layouts;
  if (layout === "plane") map.laidOut = undefined;
  else {
    // Only for those who want it.
    const { neighborLayout } = await import("./neighbor-layout.ts");
    const onProgress = (share: number): void => reply({ kind: "laying out", share });
    const { index, points: plane, mask } = map;
    const points = await neighborLayout({ index, plane, mask, similarity, onProgress, isStopped: () => turn !== layouts });
    if (points === undefined) {
      reply({ kind: "laid out", ticket, points: undefined });
      return;
    }
    map.laidOut = points;
  }
  const points = (map.laidOut ?? map.points).slice();
  reply({ kind: "laid out", ticket, points }, [points.buffer]);
}

function lookUp(map: LoadedMap, ids: readonly string[]): readonly (FoundRecord | undefined)[] {
  return ids.map((id) => {
    const row = pointOf(map, id);
    return row === undefined ? undefined : { row, vector: map.index.get(id) as Float32Array };
  });
}

function findNearest(map: LoadedMap, { ticket, source, size, similarity }: NearestRequest): void {
  const { index, plane, laidOut, mask } = map;
  const query =
    source.from === "record"
      ? index.get(source.id)
      : source.from === "plane"
        ? laidOut === undefined
          ? lift(plane, source.x, source.y)
          : // Between neighbours there are no vectors: the record that is nearest in the picture stands for the place.
            index.get(idOf(map, rowAt(laidOut, source.x, source.y)))
        : Float32Array.from(source.vector);
  if (query === undefined) throw new Error("The map has not loaded this record.");
  const beganMs = performance.now();
  const { results } = index.search(query, { k: size, similarity, filter: mask });
  const ms = performance.now() - beganMs;
  const neighbors = results.map(({ id, score }) => ({ id, score, row: pointOf(map, id) as number }));
  const row = source.from === "record" ? pointOf(map, source.id) : neighbors[0]?.row;
  const [x, y] = laidOut === undefined ? project(plane, query) : [laidOut[2 * (row ?? 0)] ?? 0, laidOut[2 * (row ?? 0) + 1] ?? 0];
  reply({ kind: "nearest", ticket, neighbors, query, x, y, ms });
}

/** The point that is nearest to a place; of equals the first. */
function rowAt(points: Float32Array, x: number, y: number): number {
  let [best, least] = [0, Infinity];
  for (let row = 0; 2 * row < points.length; row++) {
    const distance = (points[2 * row]! - x) ** 2 + (points[2 * row + 1]! - y) ** 2;
    if (distance < least) [best, least] = [row, distance];
  }
  return best;
}
