/** The error class as the library's users see it: without what only the service says. */
import { LodestoneError as AnyLodestoneError, type LibraryErrorCode } from "./lodestone-error.ts";

/** What a caller can act on; a wrong type is a TypeError, a wrong value a RangeError. `cause` is what made it, if anything did. */
export interface LodestoneError extends Error {
  readonly code: LibraryErrorCode;
}

export const LodestoneError = AnyLodestoneError as unknown as {
  readonly prototype: LodestoneError;
  new (code: LibraryErrorCode, message: string, details?: { cause?: unknown }): LodestoneError;
};
