/**
 * Reads a column's vectors from the server as they arrive: blocks of ids, float32 values and the values that
 * colour them (`POST …/vectors`).
 */
import { MAX_PAGE_SIZE } from "../../records/request-limits.ts";
import type { LoadRequest, MapSource } from "./messages.ts";

export interface VectorBlock {
  readonly ids: readonly string[];
  /** Row-major. */
  readonly matrix: Float32Array;
  /** undefined if none were requested. */
  readonly values: readonly (string | null)[] | undefined;
}

interface RowsHead {
  readonly ids: readonly string[];
  readonly values?: readonly (string | null)[];
}

interface LastHead {
  readonly rows: number;
  readonly more: boolean;
}

const PREFIX_BYTES = 8;

interface VectorsRequest extends Omit<LoadRequest, "kind" | "limit" | "memoryBytes"> {
  /** Maximum number of rows; undefined: all. */
  readonly limit: number | undefined;
}

/**
 * @yields blocks in the order of the ids.
 * @returns true when the limit left something out.
 * @throws the server's words, or that the stream was cut off.
 */
export async function* vectorBlocks(request: VectorsRequest, signal: AbortSignal): AsyncGenerator<VectorBlock, boolean> {
  const { column, colorColumn, filter, limit } = request;
  const body = { column, filter, limit: limit === undefined ? undefined : Math.max(1, limit), values: colorColumn };
  const bytes = new ByteReader((await post(request, "vectors", body, signal)).body as ReadableStream<Uint8Array>);
  try {
    for (;;) {
      const [rows, headBytes] = new Uint32Array(await bytes.take(PREFIX_BYTES)) as unknown as [number, number];
      const head: unknown = JSON.parse(new TextDecoder().decode(await bytes.take(headBytes)));
      if (rows === 0) {
        await bytes.end();
        return (head as LastHead).more;
      }
      const { ids, values } = head as RowsHead;
      yield { ids, values, matrix: new Float32Array(await bytes.take(4 * rows * request.dimension)) };
    }
  } finally {
    // The consumer has seen enough: the server need not produce the rest.
    await bytes.cancel();
  }
}

interface QueryAnswer {
  readonly records: readonly Readonly<Record<string, unknown>>[];
  readonly meta: { readonly page: { readonly cursor: string; readonly more: boolean } };
}

/** @yields the ids of the records that have a vector, and what they have in another column, as text. */
export async function* columnValues(request: MapSource, name: string): AsyncGenerator<readonly [string, string | null]> {
  const { column, filter } = request;
  const size = MAX_PAGE_SIZE;
  let question: object = { columns: [name], filter: withVector(column, filter), page: { size } };
  for (;;) {
    const { records, meta } = (await (await post(request, "query", question)).json()) as QueryAnswer;
    for (const record of records) {
      const value = record[name];
      yield [record.id as string, value === undefined || value === null ? null : String(value)];
    }
    if (!meta.page.more) return;
    question = { page: { size, after: meta.page.cursor } };
  }
}

/** A filter that also requires a vector in the column. */
export const withVector = (column: string, filter: unknown): unknown => both({ $exists: column }, filter);

/** A filter that also requires a later id. */
export const laterThan = (id: string, filter: unknown): unknown => both({ id: { $gt: id } }, filter);

const both = (first: object, filter: unknown): unknown => (filter === undefined ? first : { $all: [first, filter] });

/** The server's refusal. */
export class Refusal extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** @throws {Refusal} */
export async function post(
  { tableUrl, key }: MapSource,
  endpoint: string,
  body: object,
  signal: AbortSignal | null = null,
): Promise<Response> {
  const response = await fetch(`${tableUrl}/${endpoint}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key === "" ? {} : { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
    credentials: "omit",
    cache: "no-store",
    signal,
  });
  if (response.ok) return response;
  const { message } = (await response.json().catch(() => ({}))) as { message?: string };
  throw new Refusal(message ?? `The server answered ${response.status}.`, response.status);
}

/** Splits bytes into pieces of the requested length, in whatever pieces they arrive. */
class ByteReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #piece: Uint8Array = new Uint8Array(0);

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  /** Seen to its end, the connection serves the next request. */
  async end(): Promise<void> {
    while (!(await this.#reader.read()).done);
  }

  cancel(): Promise<void> {
    return this.#reader.cancel();
  }

  /** Returned in memory of their own, so that they can be viewed as float32. */
  async take(length: number): Promise<ArrayBuffer> {
    const taken = new Uint8Array(length);
    for (let filled = 0; filled < length; ) {
      if (this.#piece.length === 0) {
        const { done, value } = await this.#reader.read();
        if (done) throw new Error("The vectors were cut off: the server or the connection was lost. Try again.");
        this.#piece = value;
      }
      const part = this.#piece.subarray(0, length - filled);
      taken.set(part, filled);
      filled += part.length;
      this.#piece = this.#piece.subarray(part.length);
    }
    return taken.buffer;
  }
}
