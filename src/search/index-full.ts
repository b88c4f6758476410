/**
 * The error for a branch whose index does not fit into the memory limit for indexes. Retrying at once does
 * not help.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";

const TRY_AGAIN_SECONDS = 60;

export class IndexFullError extends LodestoneError {
  constructor(cause: LodestoneError) {
    super("UNAVAILABLE", cause.message, { retryAfterSeconds: TRY_AGAIN_SECONDS, cause });
  }
}
