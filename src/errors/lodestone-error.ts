/**
 * The one error class of Lodestone, below every layer. A wrong type is a TypeError and a wrong value a
 * RangeError at the library's edge (`core`); everything else that a caller can act on is a LodestoneError with
 * a stable code. `http/status.ts` alone maps codes to statuses.
 */

/** What programs compare, of the errors of the library and of the service. */
export type LibraryErrorCode =
  /** The call is wrong: the message names the member and the fix. */
  | "INVALID"
  | "NOT_FOUND"
  /** What was to stay as it is was changed meanwhile; service: createOnly, ifVersion, or a name or id that is taken. */
  | "CONFLICT"
  /** Not ready, shutting down, or what is needed cannot be reached. */
  | "UNAVAILABLE"
  | "OUT_OF_MEMORY"
  /** A file or snapshot that fails its checks. */
  | "CORRUPT";

export type ErrorCode =
  | LibraryErrorCode
  | "UNAUTHORIZED"
  | "FORBIDDEN"
  | "TOO_LARGE"
  | "UNSUPPORTED_MEDIA_TYPE"
  /** Beyond capacity: not processed; `retryAfterSeconds` says when to try again. */
  | "OVERLOADED"
  /** A statement ran past its time limit and was rolled back. */
  | "TIMEOUT";

/** One failed operation of a transaction or bulk request. */
export interface OperationError {
  index: number;
  code: ErrorCode;
  message: string;
  /** HTTP-like status of this operation alone, for clients that read it. */
  status?: number;
}

export class LodestoneError extends Error {
  readonly code: ErrorCode;
  readonly errors: readonly OperationError[] | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    details: { errors?: readonly OperationError[]; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "LodestoneError";
    this.code = code;
    this.errors = details.errors;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}
