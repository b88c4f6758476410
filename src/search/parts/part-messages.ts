/**
 * The requests and answers between the servers that hold the parts of one database, and their encoding as
 * bytes. Queries and scores, which must arrive bit for bit, are sent as they are in memory; everything else
 * is JSON:
 *
 *   0  length of the JSON   u32, little-endian
 *   4  JSON                 UTF-8
 *   …  numbers              f32 of all queries, or f64 of all scores, little-endian, in the order of the JSON
 */
import { type ErrorCode, LodestoneError } from "../../errors/lodestone-error.ts";
import type { Part, SharedSnapshot } from "../../records/feed/feed-types.ts";
import type { BranchRef } from "../../records/schema.ts";
import type { SearchAnswer } from "../search-messages.ts";
import type { VectorSearchRequest } from "../search-store.ts";

/** One search, of one query or several. */
export interface PartSearch {
  readonly ref: BranchRef;
  readonly table: string;
  readonly request: Omit<VectorSearchRequest, "queryVector" | "consistency">;
  /** f32[count × dimension], row-major. */
  readonly queries: Float32Array;
  readonly count: number;
  /** The limit of all answers together, as in SearchJob. */
  readonly maxBytes: number;
  /** The caller whose turn in the queue the search uses. */
  readonly caller: string;
}

export interface PartCall {
  /** The part that is asked. */
  readonly part: Part;
  /**
   * All searches are answered from exactly the state that it sees. undefined: each from the part's current
   * position.
   */
  readonly snapshot?: SharedSnapshot | undefined;
  readonly searches: readonly PartSearch[];
}

export type PartResult =
  | {
      readonly kind: "answers";
      /** The first `offset + size` of the part's records. */
      readonly answers: readonly SearchAnswer[];
      /**
       * Where the answers come from. Answers of several parts belong together when these four are the same.
       */
      readonly incarnation: string;
      readonly schemaVersion: number;
      readonly tableId: number;
      readonly columnId: number;
      /** undefined: the table is held whole. */
      readonly part: Part | undefined;
    }
  /** The part is beyond the snapshot, or has another schema: a later snapshot may succeed. */
  | { readonly kind: "passed" }
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      readonly message: string;
      /** The schema version by which it was refused; undefined when the reason is not the schema. */
      readonly schemaVersion: number | undefined;
      readonly retryAfterSeconds?: number | undefined;
    };

export interface PartCallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time limit in ms. */
  readonly limitMs: number;
}

/** A holder of a part: this process, or another server. */
export interface PartSource {
  /**
   * Results in the order of the searches. @throws {LodestoneError} UNAVAILABLE when it cannot answer; the
   * signal's reason.
   */
  search(call: PartCall, options: PartCallOptions): Promise<readonly PartResult[]>;
}

/** The state of a server's part. */
export interface PartStatus {
  readonly part: Part;
  readonly ready: boolean;
  readonly lagMs: number;
}

export function formatPart({ index, of }: Part): string {
  return `${index}/${of}`;
}

/** The version of this protocol. Servers that share one search must agree on it. */
export const PROTOCOL = 1;
const LENGTH_BYTES = 4;

/** The JSON of a call, once its shape is checked. */
export interface CallHeader extends Omit<PartCall, "searches"> {
  readonly protocol: number;
  readonly limitMs: number;
  readonly searches: readonly (Omit<PartCall["searches"][number], "queries"> & { readonly dimension: number })[];
}

export function encodeCall(call: PartCall, limitMs: number): Buffer {
  const { part, snapshot } = call;
  const header: CallHeader = {
    protocol: PROTOCOL,
    limitMs,
    part,
    ...(snapshot && { snapshot: { id: snapshot.id, position: snapshot.position } }),
    searches: call.searches.map(({ queries, ...search }) => ({ ...search, dimension: queries.length / search.count })),
  };
  return join(
    header,
    call.searches.map(({ queries }) => queries),
  );
}

/**
 * @param header  the checked JSON of the same bytes.
 * @throws {LodestoneError} INVALID when the count of numbers differs from the header's.
 */
export function decodeCall(header: CallHeader, numbers: Buffer): PartCall {
  let at = 0;
  const searches = header.searches.map(({ dimension, ...search }) => {
    const queries = new Float32Array(search.count * dimension);
    at += take(numbers, at, queries);
    return { ...search, queries };
  });
  if (at !== numbers.length) throw malformed();
  const { part, snapshot } = header;
  return { part, snapshot, searches };
}

export function encodeResults(results: readonly PartResult[]): Buffer {
  const scores: Float64Array[] = [];
  const header = results.map((result) => {
    if (result.kind !== "answers") return result;
    const answers = result.answers.map(({ totalCount, ids, scores: own }) => {
      scores.push(own);
      return { totalCount, ids };
    });
    return { ...result, answers };
  });
  return join(header, scores);
}

/**
 * @throws {LodestoneError} INVALID for bytes that `encodeResults` did not produce, or with another number of
 *   results.
 */
export function decodeResults(bytes: Buffer, count: number): PartResult[] {
  const { text, numbers } = split(bytes);
  const header = JSON.parse(text) as PartResult[];
  if (!Array.isArray(header) || header.length !== count) throw malformed();
  let at = 0;
  const results = header.map((result): PartResult => {
    if (result.kind !== "answers") return result;
    const answers = result.answers.map(({ totalCount, ids }): SearchAnswer => {
      const scores = new Float64Array(ids.length);
      at += take(numbers, at, scores);
      return { totalCount, ids, scores };
    });
    return { ...result, answers };
  });
  if (at !== numbers.length) throw malformed();
  return results;
}

/** @throws {LodestoneError} INVALID when there are fewer bytes than the length says. */
export function split(bytes: Buffer): { text: string; numbers: Buffer } {
  const length = bytes.length < LENGTH_BYTES ? Number.POSITIVE_INFINITY : bytes.readUInt32LE(0);
  if (LENGTH_BYTES + length > bytes.length) throw malformed();
  return { text: bytes.toString("utf8", LENGTH_BYTES, LENGTH_BYTES + length), numbers: bytes.subarray(LENGTH_BYTES + length) };
}

function join(header: unknown, numbers: readonly (Float32Array | Float64Array)[]): Buffer {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(json.length);
  return Buffer.concat([length, json, ...numbers.map(bytesOf)]);
}

/** Fills `target` from the bytes at `at`, which need not be aligned. @returns the number of bytes read. */
function take(numbers: Buffer, at: number, target: Float32Array | Float64Array): number {
  const { byteLength } = target;
  if (at + byteLength > numbers.length) throw malformed();
  bytesOf(target).set(numbers.subarray(at, at + byteLength));
  return byteLength;
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array | Float64Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function malformed(): LodestoneError {
  return new LodestoneError("INVALID", "The bytes are not a message between parts.");
}
