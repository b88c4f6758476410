/** What becomes of the map's records while it is shown, as it happens (`POST …/replica`). */
import { type FrameColumn, FrameReader, type RecordsFrame } from "../../frames/frames.ts";
import type { MapSource } from "./messages.ts";
import { post } from "./vector-stream.ts";

export interface ChangedRecord {
  readonly id: string;
  /** undefined: it has none any more. */
  readonly vector: Float32Array | undefined;
  /** By column, as text. */
  readonly values: ReadonlyMap<string, string | null>;
}

export interface ChangedRecords {
  /** After them. */
  readonly position: string;
  /** Those that are in the filter. */
  readonly records: readonly ChangedRecord[];
  /** Those that are gone, or are not in the filter any more. */
  readonly deleted: readonly string[];
}

/** The server cannot continue from the position. */
export class Outdated extends Error {}

/** A position that everything that is read from now on has. @throws {Refusal} */
export async function positionOfNow(source: MapSource): Promise<string> {
  const { position } = (await (await post(source, "replica", { columns: [source.column] })).json()) as { position: string };
  return position;
}

/**
 * @param columns  whose values are wanted.
 * @throws {Refusal}, {Outdated}; that the connection was lost.
 */
export async function* changesSince(
  source: MapSource,
  columns: readonly string[],
  position: string,
  signal: AbortSignal,
): AsyncGenerator<ChangedRecords, void, undefined> {
  const body = { columns: [source.column, ...columns.filter((name) => name !== source.column)], filter: source.filter, position };
  const frames = new FrameReader();
  let open: { readonly columns: readonly FrameColumn[]; readonly life: string; readonly reading: string } | undefined;
  let records: ChangedRecord[] = [];
  let deleted: string[] = [];
  const reader = ((await post(source, "replica", body, signal)).body as ReadableStream<Uint8Array>).getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    for (const { frame, vectors } of frames.read(read.value)) {
      if (frame.type === "open") open = frame;
      else if (frame.type === "records") {
        records.push(...recordsOf(open!.columns, frame, vectors));
        deleted.push(...(frame.deleted ?? []));
      } else if (frame.type === "restart") throw new Outdated(frame.reason);
      else if (frame.type === "position") {
        yield { position: `${open!.life}~${open!.reading}~${frame.at}`, records, deleted };
        [records, deleted] = [[], []];
      }
    }
  }
}

function recordsOf(columns: readonly FrameColumn[], { ids, values, present }: RecordsFrame, vectors: Float32Array): ChangedRecord[] {
  // The only vector column is the map's, and the first.
  const dimension = columns[0]!.dimension!;
  const having = present?.[0] ?? "all";
  const placeOf = new Map<number, number>((having === "all" ? ids.map((_, i) => i) : having).map((i, place) => [i, place]));
  return ids.map((id, i) => {
    const place = placeOf.get(i);
    return {
      id,
      vector: place === undefined ? undefined : vectors.slice(place * dimension, (place + 1) * dimension),
      values: new Map(columns.slice(1).map(({ name, type }, n) => [name, textOf(values[n + 1]![i], type)])),
    };
  });
}

/** As in answers of the API. */
function textOf(value: unknown, type: string): string | null {
  if (value === null || value === undefined) return null;
  return type === "datetime" ? new Date(Number(value) / 1000).toISOString() : String(value);
}
