/** A table's state, and then its changes, for replicas: pages and programs that hold a part of a table and search it themselves. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { ReplicaRequest } from "../../replica/definition.ts";
import { isObject } from "../../text/json-object.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { COLUMN_NAME, FILTER, objectOf } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";
import type { Services } from "./services.ts";

const FRAMES_TYPE = "application/vnd.lodestone.frames";
const MAX_COLUMNS = 100;
const MAX_WAIT_SECONDS = 60;

interface ChangesBody extends ReplicaRequest {
  position?: string;
  wait?: number;
  fresh?: boolean;
}

const FRAMES =
  "Frames, little-endian: uint32 bytes of the head, uint32 bytes of the body, the head as JSON padded with spaces to a multiple of 4, float32. " +
  'Heads: `{"type": "open", "columns": …, "life": …, "reading": …}` first; `{"type": "records", "ids": […], "values": [[…] or null, …], ' +
  '"present": ["all", [rows] or null, …], "deleted": […]}`, values and present by the number of the column, the body with the vectors column by column; ' +
  "without `present` each record has each vector; " +
  '`{"type": "position", "at": …}`: everything up to here is the state at this position, `<life>~<reading>~<at>`; `{"type": "restart", "reason": …}`: begin with a new snapshot.';

const CHANGES: JsonSchema = objectOf<ChangesBody>(
  {
    columns: { type: "array", items: COLUMN_NAME, minItems: 1, maxItems: MAX_COLUMNS, description: "As in the snapshot." },
    filter: { ...FILTER, description: "As in the snapshot. Not through links." },
    fresh: { type: "boolean", description: "The first position has everything that was written before the request. Default false." },
    position: { type: "string", description: "Where the replica is. Without it the answer is only where the server is." },
    wait: {
      type: "number",
      minimum: 0,
      maximum: MAX_WAIT_SECONDS,
      description: "Long polling: answer with the first changes, or after so many seconds. Default: go on for as long as the client reads.",
    },
  },
  ["columns"],
);

export function replicaEndpoints({ replicas }: Services): Endpoint[] {
  if (replicas === undefined) return [];
  return [
    endpoint({
      method: "GET",
      path: "/db/{db}:{branch}/tables/{table}/replica",
      name: "readReplicaSnapshot",
      summary: "A table's state at one position, to be kept current",
      tag: "Search and query",
      access: "read",
      query: [
        { name: "columns", kind: "columns", description: "Names of columns, separated by commas." },
        { name: "filter", kind: "text", description: "A filter as JSON: a replica may be of a part of the table. Not through links." },
      ],
      responses: {
        200: { description: `${FRAMES} Ends with a position. With ETag, and Range and If-Range.`, contentType: FRAMES_TYPE },
        206: { description: "The rest of it, from the place in Range on.", contentType: FRAMES_TYPE },
        304: { description: "It is still the one of If-None-Match." },
      },
      async handle({ ref, path, query, headers }) {
        const columns = query.columns ?? [];
        const request = { columns: checkColumns(columns), filter: parseFilterText(query.filter) };
        const snapshot = await replicas.snapshot(ref, path.table as string, request);
        const { etag, isDone, bytes } = snapshot;
        const own = { ETag: etag, "Cache-Control": "private, no-cache", Vary: "Authorization", "X-Accel-Buffering": "no" };
        if (headers["if-none-match"] === etag) return { status: 304, headers: own };
        const ifRange = headers["if-range"] as string | undefined;
        const from = isDone ? rangeStart(headers.range, ifRange, etag, bytes) : undefined;
        const stream = snapshot.bytesFrom(from ?? 0);
        if (from !== undefined) {
          const range = { "Content-Range": `bytes ${from}-${bytes - 1}/${bytes}`, "Content-Length": String(bytes - from) };
          return { status: 206, stream, contentType: FRAMES_TYPE, headers: { ...own, ...range } };
        }
        const size = isDone ? { "Content-Length": String(bytes), "Accept-Ranges": "bytes" } : {};
        return { status: 200, stream, contentType: FRAMES_TYPE, headers: { ...own, ...size } };
      },
    }),
    endpoint<ChangesBody>({
      method: "POST",
      path: "/db/{db}:{branch}/tables/{table}/replica",
      name: "readReplicaChanges",
      summary: "What has changed for a replica since its position",
      tag: "Search and query",
      access: "read",
      body: { required: true, schema: CHANGES },
      responses: {
        200: {
          description: `${FRAMES} A position comes at least every 45 seconds. Without \`position\` JSON: \`{"read": "<reading>~<number>", "position": …}\`, of a state that has everything written before the request.`,
          contentType: FRAMES_TYPE,
        },
      },
      async handle({ ref, path, body, signal, budget }) {
        const { position, ...request } = body;
        if (position === undefined) return { status: 200, body: await replicas.now(ref, signal) };
        const stream = await replicas.changes(ref, path.table as string, { ...request, position }, { signal, caller: budget.caller });
        // nginx holds answers back otherwise.
        return {
          status: 200,
          stream,
          contentType: FRAMES_TYPE,
          isLongLived: true,
          headers: { "X-Accel-Buffering": "no", "Cache-Control": "no-store" },
        };
      },
    }),
  ];
}

function checkColumns(columns: readonly unknown[]): string[] {
  if (columns.length === 0 || columns.length > MAX_COLUMNS)
    throw new LodestoneError("INVALID", `columns: expected 1 to ${MAX_COLUMNS} names separated by commas.`);
  return columns as string[];
}

function parseFilterText(text: string | undefined): object | undefined {
  if (text === undefined) return undefined;
  try {
    const filter = JSON.parse(text) as unknown;
    if (isObject(filter)) return filter;
  } catch {
    // Said below.
  }
  throw new LodestoneError("INVALID", "filter: expected a filter as JSON, an object.");
}

/** Only the form that continues a download. */
function rangeStart(range: string | undefined, ifRange: string | undefined, etag: string, bytes: number): number | undefined {
  const [, from] = /^bytes=(\d{1,15})-$/.exec(range ?? "") ?? [];
  if (from === undefined || (ifRange !== undefined && ifRange !== etag)) return undefined;
  return Number(from) < bytes ? Number(from) : undefined;
}
