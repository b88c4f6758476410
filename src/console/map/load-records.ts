/** Reads the vectors of a table page by page: ids, vectors, and the values that colour them. */
import type { LoadRequest } from "./messages.ts";

/** Numbers in one page, so that pages of long vectors stay small. */
const PAGE_NUMBERS = 400_000;
const MAX_PAGE_ROWS = 1_000;

export interface RecordPage {
  readonly ids: readonly string[];
  /** Row-major. */
  readonly matrix: Float32Array;
  readonly values: readonly (string | null)[];
}

interface QueryAnswer {
  readonly records: readonly Record<string, unknown>[];
  readonly meta: { readonly page: { readonly cursor: string; readonly more: boolean } };
}

/** @yields pages with what has a vector in them. @returns true when the limit left something out. @throws the server's words. */
export async function* recordPages(request: LoadRequest): AsyncGenerator<RecordPage, boolean> {
  const { column, dimension, colorColumn, limit } = request;
  const pageRows = Math.max(1, Math.min(MAX_PAGE_ROWS, Math.floor(PAGE_NUMBERS / dimension)));
  const columns = colorColumn === undefined ? [column] : [column, colorColumn];
  const hasVector = { $exists: column };
  const filter = request.filter === undefined ? hasVector : { $all: [hasVector, request.filter] };
  let after: string | undefined;
  let read = 0;
  for (;;) {
    const size = Math.min(pageRows, limit - read);
    const answer = await post(request, after === undefined ? { columns, filter, page: { size } } : { page: { size, after } });
    const { records } = answer;
    const matrix = new Float32Array(records.length * dimension);
    records.forEach((record, i) => {
      matrix.set(record[column] as number[], i * dimension);
    });
    yield { ids: records.map(({ id }) => id as string), matrix, values: records.map((record) => textOf(record[colorColumn ?? ""])) };
    read += records.length;
    const { cursor, more } = answer.meta.page;
    if (!more || records.length === 0) return false;
    if (read >= limit) return true;
    after = cursor;
  }
}

async function post({ tableUrl, key }: LoadRequest, body: unknown): Promise<QueryAnswer> {
  const response = await fetch(`${tableUrl}/query`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key === "" ? {} : { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
    credentials: "omit",
    cache: "no-store",
  });
  const answer = (await response.json()) as QueryAnswer & { message?: string };
  if (!response.ok) throw new Error(answer.message ?? `The server answered ${response.status}.`);
  return answer;
}

const textOf = (value: unknown): string | null => (value === undefined || value === null ? null : String(value));
