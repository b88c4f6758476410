/**
 * Runs outside the page's thread: reads the vectors, holds them in the project's own WebAssembly library,
 * computes the plane and finds what is nearest.
 */
import { VectorIndex } from "lodestone";
import type { FoundRecord, LoadRequest, MapReply, MapRequest, NearestRequest, SuggestRequest } from "./messages.ts";
import { packIds } from "./packed-ids.ts";
import { pointColors } from "./point-colors.ts";
import { lift, type PrincipalPlane, principalPlane, project } from "./principal-plane.ts";
import { vectorBlocks } from "./vector-stream.ts";

interface LoadedMap {
  readonly index: VectorIndex;
  readonly ids: readonly string[];
  readonly rowOf: ReadonlyMap<string, number>;
  readonly plane: PrincipalPlane;
}

let loaded: LoadedMap | undefined;

addEventListener("message", ({ data }: MessageEvent<MapRequest>) => {
  if (data.kind === "load") void load(data).catch((error: Error) => reply({ kind: "fault", ticket: undefined, message: error.message }));
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

function answer(request: Exclude<MapRequest, LoadRequest>): void {
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
