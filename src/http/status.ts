/** The one place where error codes become HTTP statuses and error bodies. A client sees a message only when the error was meant for it. */
import { type ErrorCode, LodestoneError } from "../errors/lodestone-error.ts";

const STATUS_OF_CODE: Readonly<Record<ErrorCode, number>> = {
  INVALID: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  CONFLICT: 422,
  TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  OVERLOADED: 429,
  CORRUPT: 500,
  UNAVAILABLE: 503,
  TIMEOUT: 504,
  OUT_OF_MEMORY: 507,
};

/** Errors that only HTTP knows (405, 408): they have a status but no code of the domain. */
export class HttpError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = "HttpError";
    this.status = status;
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
  /** `{id, message}`, or `{id, errors}` when single operations failed. */
  readonly body: object;
  /** True for what no request should be able to cause: logged with its stack, told to the client only by its id. */
  readonly unexpected: boolean;
}

export function answerError(error: unknown, requestId: string): ErrorAnswer {
  if (error instanceof HttpError) {
    return { status: error.status, headers: error.headers, body: { id: requestId, message: error.message }, unexpected: false };
  }
  if (error instanceof LodestoneError) {
    const isIndexed = error.errors !== undefined && error.errors.length > 0;
    // A transaction or bulk request that fails at one operation is invalid as a whole (400), whatever the
    // single error is.
    const status = isIndexed && STATUS_OF_CODE[error.code] < 500 ? 400 : STATUS_OF_CODE[error.code];
    const body = isIndexed ? { id: requestId, errors: error.errors } : { id: requestId, message: error.message };
    return { status, headers: headersOf(error), body, unexpected: error.code === "CORRUPT" };
  }
  const message = `Internal error. It is in the server's log under the request id ${requestId}.`;
  return { status: 500, headers: {}, body: { id: requestId, message }, unexpected: true };
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
