/**
 * The HTTP client of the commands that talk to a running server (import, export, demo). It retries after 429,
 * 503 and broken connections for a bounded time, so a restart of the server does not end a long import. Every
 * request that is retried must therefore be safe to repeat.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";
import type { BranchRef, ColumnSchema, TableSchema } from "../records/schema.ts";
import { elementsOf, membersOf } from "../text/json-scan.ts";

/** Where `lodestone serve` listens, and where the other commands look for it. */
export const DEFAULT_PORT = 8787;

export interface ClientOptions {
  /** `http://127.0.0.1:8787`. */
  readonly url: string;
  readonly apiKey?: string;
  /** How long to wait for a server that cannot be reached or is at its capacity. Default 30 s. */
  readonly patienceMs?: number;
}

/** An answer with an error status. */
export class ApiError extends Error {
  readonly status: number;
  /** Faults of single records or operations, by their index in the request. */
  readonly errors: readonly { index: number; message: string }[];

  constructor(status: number, message: string, errors: readonly { index: number; message: string }[] = []) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.errors = errors;
  }
}

export class ApiClient {
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #patienceMs: number;

  constructor(options: ClientOptions) {
    if (!URL.canParse(options.url) || !/^https?:$/.test(new URL(options.url).protocol)) {
      throw new LodestoneError("INVALID", `--url: expected an address like http://127.0.0.1:8787, got ${quoted(options.url)}.`);
    }
    this.#base = options.url.replace(/\/+$/, "");
    this.#headers = options.apiKey === undefined ? {} : { Authorization: `Bearer ${options.apiKey}` };
    this.#patienceMs = options.patienceMs ?? 30_000;
  }

  get url(): string {
    return this.#base;
  }

  async request<Answer = unknown>(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.requestText(method, path, body);
    return (answer === "" ? undefined : JSON.parse(answer)) as Answer;
  }

  /** The answer's JSON as received, with every digit of its numbers. */
  async requestText(method: string, path: string, body?: unknown): Promise<string> {
    const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
    const headers = text === undefined ? this.#headers : { ...this.#headers, "Content-Type": "application/json" };
    const deadlineMs = performance.now() + this.#patienceMs;
    for (let attempt = 0; ; attempt++) {
      let failure: Error;
      try {
        const response = await fetch(this.#base + path, { method, headers, ...(text === undefined ? {} : { body: text }) });
        const answer = await response.text();
        if (response.ok) return answer;
        failure = toApiError(response.status, answer);
        if (response.status !== 429 && response.status !== 503) throw failure;
      } catch (error) {
        if (error instanceof ApiError && error.status !== 429 && error.status !== 503) throw error;
        failure = error instanceof ApiError ? error : unreachable(this.#base, error);
      }
      const pauseMs = Math.min(2_000, 100 * 2 ** attempt);
      if (performance.now() + pauseMs > deadlineMs) throw failure;
      await sleep(pauseMs);
    }
  }

  /** Leaves an existing one unchanged. */
  async createBranch(ref: BranchRef): Promise<void> {
    await this.request("PUT", branchPath(ref), {}).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 422) throw error;
    });
  }

  /** undefined when there is no such table (the branch must exist). */
  async tableColumns(ref: BranchRef, table: string): Promise<ColumnSchema[] | undefined> {
    const found = (await this.schema(ref)).find(({ name }) => name === table);
    return found === undefined ? undefined : [...found.columns];
  }

  async schema(ref: BranchRef): Promise<TableSchema[]> {
    const { schema } = await this.request<{ schema: { tables: TableSchema[] } }>("GET", `${branchPath(ref)}/schema`);
    return schema.tables;
  }

  async createTable(ref: BranchRef, table: string, columns: readonly ColumnSchema[]): Promise<void> {
    await this.request("PUT", tablePath(ref, table), { columns });
  }
}

export const branchPath = ({ database, branch }: BranchRef): string => `/db/${encodeURIComponent(database)}:${encodeURIComponent(branch)}`;

export const tablePath = (ref: BranchRef, table: string): string => `${branchPath(ref)}/tables/${encodeURIComponent(table)}`;

function toApiError(status: number, text: string): ApiError {
  try {
    const answer = JSON.parse(text) as { message?: string; errors?: { index: number; message: string }[] };
    return new ApiError(status, answer.message ?? answer.errors?.[0]?.message ?? `status ${status}`, answer.errors);
  } catch {
    return new ApiError(status, `status ${status}: ${text.slice(0, 200)}`);
  }
}

function unreachable(url: string, error: unknown): Error {
  const { cause } = error as { cause?: { code?: string; message?: string } };
  const reason = cause?.code ?? cause?.message ?? (error as Error).message;
  return new LodestoneError(
    "UNAVAILABLE",
    `No server answers at ${url} (${reason}). Start one with "lodestone serve", or name another with --url.`,
  );
}

const PAGE_SIZE = 500;

interface Page {
  readonly records: readonly string[];
  readonly cursor: string;
  readonly more: boolean;
}

/**
 * All records of a table, in the order of their ids, as the server answers them.
 *
 * Page by page, so that no record is missed or duplicated; records written meanwhile may or may not be included.
 * Pages that are too large for one answer are requested again with fewer records.
 *
 * @returns of each record its JSON, in one line and with every digit: JavaScript's numbers would lose some of
 *   what `json` and `int` columns hold.
 */
export async function* tableRecords(client: ApiClient, ref: BranchRef, table: string): AsyncGenerator<readonly string[], void, undefined> {
  let size = PAGE_SIZE;
  for (let after: string | undefined; ; ) {
    const request =
      after === undefined ? { columns: ["*"], sort: { id: "asc" }, page: { size } } : { columns: ["*"], page: { size, after } };
    let page: Page;
    try {
      page = readPage(await client.requestText("POST", `${tablePath(ref, table)}/query`, request));
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 413) || size === 1) throw error;
      size = Math.ceil(size / 8);
      continue;
    }
    size = Math.min(2 * size, PAGE_SIZE);
    yield page.records;
    if (!page.more) return;
    after = page.cursor;
  }
}

function readPage(answer: string): Page {
  const members = new Map(membersOf(answer, 0));
  const [records, meta] = [members.get("records"), members.get("meta")];
  if (records === undefined || meta === undefined) throw new LodestoneError("UNAVAILABLE", "The server's answer is not a page of records.");
  const { page } = JSON.parse(answer.slice(meta.begin, meta.end)) as { page: { cursor: string; more: boolean } };
  return { records: Array.from(elementsOf(answer, records.begin), ({ begin, end }) => answer.slice(begin, end)), ...page };
}
