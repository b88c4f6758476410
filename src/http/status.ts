/** The one place where error codes become HTTP statuses and error bodies. A client sees a message only when the error was meant for it. */
import { type ErrorCode, LodestoneError } from "../errors/lodestone-error.ts";

/** What programs compare. The last three are HTTP's own; no other layer has them. */
export type ApiErrorCode = ErrorCode | "METHOD_NOT_ALLOWED" | "REQUEST_TIMEOUT" | "INTERNAL";

/** The one table of codes: docs/reference shows it, and a test compares the two. */
export const API_ERRORS: Readonly<Record<ApiErrorCode, { readonly status: number; readonly meaning: string }>> = {
  INVALID: { status: 400, meaning: "The request is wrong; the message names the field. Nothing was changed." },
  UNAUTHORIZED: { status: 401, meaning: "No API key, or a wrong one." },
  FORBIDDEN: { status: 403, meaning: "The given key may not do this." },
  NOT_FOUND: { status: 404, meaning: "The database, branch, table, column or record does not exist; the message says which." },
  METHOD_NOT_ALLOWED: { status: 405, meaning: "The path has no such method; the header Allow lists those that it has." },
  REQUEST_TIMEOUT: { status: 408, meaning: "The body did not arrive in time." },
  TOO_LARGE: { status: 413, meaning: "The body or the answer is too large. Nothing was changed." },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, meaning: "The body is not JSON." },
  CONFLICT: { status: 422, meaning: "It conflicts with the current state: the name or id is taken, or ifVersion differs." },
  OVERLOADED: { status: 429, meaning: "Beyond capacity, not processed; X-RateLimit-Reset says in how many seconds to try again." },
  INTERNAL: { status: 500, meaning: "A fault of the server; its log has the cause under the request's id." },
  CORRUPT: { status: 500, meaning: "Something on the server's disk fails its checks." },
  UNAVAILABLE: { status: 503, meaning: "Starting, shutting down, or the database cannot be reached. Retry-After says when to try again." },
  TIMEOUT: { status: 504, meaning: "Ran past its time limit and was rolled back." },
  OUT_OF_MEMORY: { status: 507, meaning: "A search index has outgrown its memory; the records are not affected." },
};

/** Errors that only HTTP knows. */
export class HttpError extends Error {
  readonly code: ApiErrorCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ApiErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = "HttpError";
    this.code = code;
    this.headers = headers;
  }
}

/** The client closed its connection before its request was complete; there is nobody to answer. */
export class ClientGoneError extends Error {
  constructor() {
    super("the client closed the connection");
    this.name = "ClientGoneError";
  }
}

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** `{id, code, message}`, or `{id, code, errors}` when single operations failed. */
  readonly body: object;
  /** True for what no request should be able to cause: logged with its stack, told to the client only by its id. */
  readonly unexpected: boolean;
}

export function answerError(error: unknown, requestId: string): ErrorAnswer {
  const id = requestId;
  if (error instanceof HttpError) {
    const { code, message, headers } = error;
    return { status: API_ERRORS[code].status, headers, body: { id, code, message }, unexpected: false };
  }
  if (error instanceof LodestoneError) {
    const isIndexed = error.errors !== undefined && error.errors.length > 0;
    // A transaction or bulk request that fails at one operation is invalid as a whole, whatever the single error is.
    const code = isIndexed && API_ERRORS[error.code].status < 500 ? "INVALID" : error.code;
    const body = isIndexed ? { id, code, errors: error.errors } : { id, code, message: error.message };
    return { status: API_ERRORS[code].status, headers: headersOf(error), body, unexpected: error.code === "CORRUPT" };
  }
  const message = `Internal error. It is in the server's log under the request id ${id}.`;
  return { status: API_ERRORS.INTERNAL.status, headers: {}, body: { id, code: "INTERNAL", message }, unexpected: true };
}

function headersOf(error: LodestoneError): Record<string, string> {
  switch (error.code) {
    case "UNAUTHORIZED":
      return { "WWW-Authenticate": 'Bearer realm="lodestone"' };
    case "OVERLOADED": {
      // The SDK waits for X-RateLimit-Reset seconds and tries again; other clients know Retry-After.
      const seconds = String(Math.max(1, Math.ceil(error.retryAfterSeconds ?? 1)));
      return { "X-RateLimit-Reset": seconds, "Retry-After": seconds };
    }
    case "UNAVAILABLE":
    case "TIMEOUT":
      return { "Retry-After": String(Math.max(1, Math.ceil(error.retryAfterSeconds ?? 1))) };
    default:
      return {};
  }
}

const LOST = new Set(["ECONNRESET", "EPIPE", "ECANCELED", "ERR_STREAM_PREMATURE_CLOSE", "ERR_STREAM_DESTROYED"]);

/** Whether an answer ended because its client left. */
export function isConnectionLost(error: Error): boolean {
  return error instanceof ClientGoneError || LOST.has((error as NodeJS.ErrnoException).code ?? "");
}
