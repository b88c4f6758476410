/** Requests to the server that the page came from, and their paths. Uses its public HTTP API and nothing else. */
import { type Access, connection, key, needsKey } from "../state/page-session.ts";

const RETRY_MS = 1_000;

type OperationFaults = readonly { readonly index: number; readonly message: string }[];

/** A refusal by the server, in its own words. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly errors: OperationFaults;
  /** How long the server asks to wait before the next attempt. */
  readonly retryAfterMs: number;

  /**
   * @param status  HTTP status; 0 when the server could not be reached.
   * @param errors  of a transaction's operations, by their index.
   */
  constructor(status: number, message: string, errors: OperationFaults = [], retryAfterMs = RETRY_MS) {
    super(message);
    this.status = status;
    this.errors = errors;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Where the API begins: beside /console, even behind a proxy that serves it under another path. */
export const apiBase = (): string => new URL("./", document.baseURI).href.replace(/\/$/, "");

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly isJson: boolean;
  readonly retryAfterMs: number | undefined;
}

/**
 * @param path  with its names encoded.
 * @param body  as JSON text.
 * @returns whatever the server answers, refusals included.
 * @throws {ApiError} when the server could not be reached; the signal's reason.
 */
export async function send(method: string, path: string, body?: string, signal?: AbortSignal): Promise<Answer> {
  const headers: Record<string, string> = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key.value !== "") headers.authorization = `Bearer ${key.value}`;
  let response: Response;
  try {
    response = await fetch(apiBase() + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
      credentials: "omit",
      cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    void waitForServer();
    throw new ApiError(0, "The server cannot be reached. Nothing is lost: try again when it is back.");
  }
  connection.value = "up";
  const text = await response.text();
  const seconds = Number(response.headers.get("retry-after"));
  return {
    status: response.status,
    text,
    isJson: text !== "" && /json/.test(response.headers.get("content-type") ?? ""),
    retryAfterMs: seconds > 0 ? seconds * 1000 : undefined,
  };
}

/**
 * Like `send`, with a value as the body, for requests that should succeed.
 *
 * @returns the response's JSON, or its text if it is not JSON; undefined for 204.
 * @throws {ApiError} a refusal, or that the server could not be reached; the signal's reason.
 */
export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const { status, text, isJson, retryAfterMs } = await send(method, path, body === undefined ? undefined : JSON.stringify(body), signal);
  if (status >= 200 && status < 300) return (isJson ? JSON.parse(text) : text || undefined) as T;
  throw errorOf(status, text, retryAfterMs);
}

function errorOf(status: number, text: string, retryAfterMs: number | undefined): ApiError {
  if (status === 401) needsKey.value = true;
  try {
    const { message, errors } = JSON.parse(text) as { message?: string; errors?: { index: number; message: string }[] };
    const said = message ?? errors?.map((fault) => `Operation ${fault.index + 1}: ${fault.message}`).join(" ");
    return new ApiError(status, said ?? `The server answered ${status}.`, errors, retryAfterMs);
  } catch {
    return new ApiError(status, `The server answered ${status}.`);
  }
}

let isWaiting = false;

/** Asks until the server answers again. One loop, however many requests failed. */
async function waitForServer(): Promise<void> {
  connection.value = "lost";
  if (isWaiting) return;
  isWaiting = true;
  while (connection.value === "lost") {
    await pause(RETRY_MS);
    try {
      const { ok } = await fetch(`${apiBase()}/livez`, { cache: "no-store" });
      if (ok) connection.value = "up";
    } catch {
      // Not yet.
    }
  }
  isWaiting = false;
}

/** @throws the signal's reason. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** What the current key, or a caller without one, may do. */
export const fetchAccess = (): Promise<Access> => call<Access>("GET", "/access");

/** The displayable message of anything that was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Of the paths. Names are encoded here and nowhere else. */
export interface Place {
  readonly database: string;
  readonly branch: string;
}

const encode = encodeURIComponent;

export const branchPath = ({ database, branch }: Place): string => `/db/${encode(database)}:${encode(branch)}`;

export const tablePath = (place: Place, table: string): string => `${branchPath(place)}/tables/${encode(table)}`;

export const recordPath = (place: Place, table: string, id: string): string => `${tablePath(place, table)}/data/${encode(id)}`;
