/**
 * Runs outside the page's thread: reads the vectors, holds them in the project's own WebAssembly library,
 * computes the plane, finds what is nearest, and follows the changes of the records.
 */
import { LodestoneError, VectorIndex } from "lodestone";
import { changesSince, Outdated, positionOfNow } from "./live-changes.ts";
import { applyChanges, arrange, countOf, idOf, type LoadedMap, maskOfFirst, pointOf } from "./loaded-map.ts";
import {
  type ColorRequest,
  type FoundRecord,
  type LayoutRequest,
  type LoadRequest,
  type MapReply,
  type MapRequest,
  type MapSource,
  type NearestRequest,
  type Plane,
  packIds,
  type SizeRequest,
} from "./messages.ts";
import { pointColors } from "./point-colors.ts";
import { pointSizes } from "./point-sizes.ts";
import { lift, principalPlane, project } from "./principal-plane.ts";
import { columnValues, laterThan, Refusal, vectorBlocks } from "./vector-stream.ts";

/** How often a load says at most how far it is. */
const PROGRESS_STEPS = 200;
/** What has changed meanwhile is shown together. */
const CHANGES_EVERY_MS = 150;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

let loaded: LoadedMap | undefined;
/** Ends the reading that is under way. */
let reading: AbortController | undefined;
/** Ends the following of changes. */
let following: AbortController | undefined;
/** The layout that is being computed: meanwhile all records keep their rows. */
let layingOut: Promise<unknown> = Promise.resolve();
let loads = 0;
/** Of what has changed and has not been shown. */
let telling: ReturnType<typeof setTimeout> | undefined;

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

/** Reads on from where an earlier request ended. Whatever ends it, what has come so far is shown. */
async function load(request: LoadRequest): Promise<void> {
  following?.abort();
  const map = loaded ?? {
    position: await positionOf(request),
    lastId: undefined,
    isPartial: true,
    sizeValues: [],
    sizeColumn: undefined,
    index: await VectorIndex.create({ dimension: request.dimension, maximumMemoryBytes: request.memoryBytes }),
    values: [],
    colorColumn: request.colorColumn,
    plane: principalPlane(0, request.dimension, () => []),
    points: new Float32Array(0),
    fit: 0,
    arranged: 0,
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
      map.lastId = block.ids.at(-1);
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
  reading = undefined;
  // Colours that were chosen meanwhile are of the rows that were there.
  const isOneColumn = map.colorColumn === request.colorColumn;
  map.values = isOneColumn ? map.values.concat(values) : new Array(index.size).fill(null);
  if (!isOneColumn) map.colorColumn = undefined;
  map.sizeColumn = undefined;
  map.isPartial = isPartial;
  arrange(map);
  loaded = map;
  loads++;
  const plane = planeOf(map);
  reply({ kind: "plane", plane, colorColumn: map.colorColumn, isFull, fault }, buffersOf(plane));
  void follow(map, request);
}

/** All that the page has of it. */
function planeOf(map: LoadedMap): Plane {
  const ids = packIds(Array.from({ length: countOf(map) }, (_, row) => idOf(map, row)));
  const points = (map.laidOut ?? map.points).slice();
  const sizes = map.sizeColumn === undefined ? undefined : pointSizes(map.sizeColumn, map.sizeValues);
  const { share } = map.plane;
  return { ids, points, ...pointColors(map.values), sizes, share, isPartial: map.isPartial, load: loads, fit: map.fit };
}

const buffersOf = ({ ids, points, colors, sizes }: Plane): Transferable[] => [
  ids.bytes.buffer,
  ids.ends.buffer,
  points.buffer,
  colors.buffer,
  ...(sizes === undefined ? [] : [sizes.factors.buffer]),
];

/** Where the changes begin that a load that begins now may lack. */
async function positionOf(source: MapSource): Promise<string | undefined> {
  try {
    return await positionOfNow(source);
  } catch (error) {
    console.warn(`The map will not follow changes: ${(error as Error).message}`);
    return undefined;
  }
}

/** Brings the map up to date, from where it is, for as long as it is shown. */
async function follow(map: LoadedMap, source: MapSource): Promise<void> {
  following?.abort();
  if (map.position === undefined) return;
  const controller = new AbortController();
  following = controller;
  const { signal } = controller;
  const columns = [...new Set([map.colorColumn, map.sizeColumn])].filter((name) => name !== undefined);
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      for await (const changed of changesSince(source, columns, map.position, signal)) {
        await layingOut.catch(() => {});
        if (signal.aborted) return;
        if (applyChanges(map, changed)) telling ??= setTimeout(() => tell(map), CHANGES_EVERY_MS);
        map.position = changed.position;
        pauseMs = FIRST_PAUSE_MS;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Outdated) return reply({ kind: "outdated" });
      const isFinal =
        (error instanceof Refusal && error.status < 500 && error.status !== 429) ||
        (error instanceof LodestoneError && error.code === "OUT_OF_MEMORY");
      console.warn(`The map follows ${isFinal ? "no more changes" : "changes again soon"}: ${(error as Error).message}`);
      if (isFinal) return;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    if (signal.aborted) return;
  }
}

/** With other columns. While more is read, nothing may come between; the load follows when it has ended. */
function followOn(map: LoadedMap, source: MapSource): void {
  if (reading === undefined) void follow(map, source);
}

/** Shows what has changed, before anything that is about rows. */
function tell(map: LoadedMap): void {
  if (telling === undefined) return;
  clearTimeout(telling);
  telling = undefined;
  if (map !== loaded || reading !== undefined) return;
  const plane = planeOf(map);
  reply({ kind: "changed", plane }, buffersOf(plane));
}

/** Records come in the order of their ids. */
function restOf(map: LoadedMap, request: LoadRequest): LoadRequest {
  if (map.lastId === undefined) return request;
  return { ...request, filter: laterThan(map.lastId, request.filter), limit: request.limit - map.index.size };
}

/** Of each point, what its record has in a column, as text. */
async function valuesOf(map: LoadedMap, request: ColorRequest | SizeRequest, name: string): Promise<(string | null)[]> {
  const known = new Map<string, string | null>();
  for await (const [id, value] of columnValues(request, name)) {
    if (pointOf(map, id) === undefined) continue;
    known.set(id, value);
    if (known.size === countOf(map)) break;
  }
  // Meanwhile records may have come and gone.
  return Array.from({ length: countOf(map) }, (_, row) => known.get(idOf(map, row)) ?? null);
}

async function color(request: ColorRequest): Promise<void> {
  const map = loadedMap();
  const { colorColumn } = request;
  const values = colorColumn === undefined ? new Array(countOf(map)).fill(null) : await valuesOf(map, request, colorColumn);
  tell(map);
  map.values = values;
  map.colorColumn = colorColumn;
  followOn(map, request);
  const { colors, legend } = pointColors(values);
  reply({ kind: "colored", ticket: request.ticket, colors, legend }, [colors.buffer]);
}

async function size(request: SizeRequest): Promise<void> {
  const map = loadedMap();
  const values = await valuesOf(map, request, request.sizeColumn);
  tell(map);
  map.sizeValues = values;
  map.sizeColumn = request.sizeColumn;
  followOn(map, request);
  const sizes = pointSizes(request.sizeColumn, values);
  reply({ kind: "sized", ticket: request.ticket, sizes }, [sizes.factors.buffer]);
}

async function layOut({ ticket, layout, similarity }: LayoutRequest): Promise<void> {
  const map = loadedMap();
  const turn = ++map.fit;
  if (layout === "plane") map.laidOut = undefined;
  else {
    // Only for those who want it.
    const { neighborLayout } = await import("./neighbor-layout.ts");
    const onProgress = (share: number): void => reply({ kind: "laying out", share });
    const { index, points: plane, mask } = map;
    tell(map);
    const computing = neighborLayout({ index, plane, mask, similarity, onProgress, isStopped: () => turn !== map.fit });
    layingOut = computing;
    const points = await computing;
    if (points === undefined) {
      reply({ kind: "laid out", ticket, points: undefined, fit: map.fit });
      return;
    }
    map.laidOut = points;
  }
  tell(map);
  const points = (map.laidOut ?? map.points).slice();
  reply({ kind: "laid out", ticket, points, fit: map.fit }, [points.buffer]);
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
