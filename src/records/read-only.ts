/** What callers may do whose key may only read, where an endpoint takes both reads and writes. */
import { LodestoneError } from "../errors/lodestone-error.ts";

export interface ReadOnlyOption {
  /**
   * The caller may only read, or asks for no more: whatever might write is refused (FORBIDDEN) before anything runs. The rest runs in
   * a read-only transaction.
   */
  readonly readOnly?: boolean | undefined;
}

/**
 * @param allowed  what such a caller may do, for the message.
 * @throws {LodestoneError} FORBIDDEN.
 */
export function checkReadOnly({ readOnly = false }: ReadOnlyOption, writes: boolean, allowed: string): void {
  if (readOnly && writes)
    throw new LodestoneError("FORBIDDEN", `This writes: with "readOnly", or a key of the scope "read", callers may only ${allowed}.`);
}
