/** Off the page's thread: reads the vectors, holds them in the project's own WebAssembly library, finds the plane and answers what is nearest. */
import { VectorIndex } from "lodestone";
import { recordPages } from "./load-records.ts";
import type { LoadRequest, MapReply, MapRequest, NearestRequest } from "./messages.ts";
import { lift, type PrincipalPlane, principalPlane, project } from "./principal-plane.ts";

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
  const pages = recordPages(request);
  let step = await pages.next();
  for (; step.done !== true; step = await pages.next()) {
    const { value: page } = step;
    index.upsertMany(page.ids, page.matrix);
    ids.push(...page.ids);
    values.push(...page.values);
    reply({ kind: "progress", rows: ids.length });
  }
  const isPartial = step.value;
  const vectorAt = (row: number): Float32Array => index.get(ids[row] as string) as Float32Array;
  const plane = principalPlane(ids.length, request.dimension, vectorAt);
  const points = new Float32Array(ids.length * 2);
  for (let row = 0; row < ids.length; row++) points.set(project(plane, vectorAt(row)), row * 2);
  loaded = { index, ids, rowOf: new Map(ids.map((id, row) => [id, row])), plane };
  reply({ kind: "plane", plane: { ids, points, values, share: plane.share, isPartial } }, [points.buffer]);
}

function answer(request: Exclude<MapRequest, LoadRequest>): void {
  if (loaded === undefined) return;
  try {
    if (request.kind === "nearest") findNearest(loaded, request);
    else {
      const { index } = loaded;
      reply({ kind: "vectors", ticket: request.ticket, vectors: request.ids.map((id) => index.get(id)) });
    }
  } catch (error) {
    reply({ kind: "fault", ticket: request.ticket, message: (error as Error).message });
  }
}

function findNearest({ index, rowOf, plane }: LoadedMap, { ticket, source, size, similarity }: NearestRequest): void {
  const query =
    source.from === "record"
      ? index.get(source.id)
      : source.from === "plane"
        ? lift(plane, source.x, source.y)
        : Float32Array.from(source.vector);
  if (query === undefined) return;
  const beganMs = performance.now();
  const { results } = index.search(query, { k: size, similarity });
  const ms = performance.now() - beganMs;
  const [x, y] = project(plane, query);
  const neighbors = results.map(({ id, score }) => ({ id, score, row: rowOf.get(id) as number }));
  reply({ kind: "nearest", ticket, neighbors, query, x, y, ms });
}
