/** The requests and answers between the servers that hold the parts of one database. */
import type { ErrorCode } from "../../errors/lodestone-error.ts";
import type { SharedSnapshot } from "../../records/feed/feed-types.ts";
import type { Part } from "../../records/feed/part.ts";
import type { BranchRef } from "../../records/schema.ts";
import type { SearchAnswer } from "../search-messages.ts";
import type { VectorSearchRequest } from "../search-store.ts";

/** One search, of one query or several. */
export interface PartSearch {
  readonly ref: BranchRef;
  readonly table: string;
  readonly request: Omit<VectorSearchRequest, "queryVector" | "consistency">;
  /** f32[count × dimension], row-major. */
  readonly queries: Float32Array;
  readonly count: number;
  /** The limit of all answers together, as in SearchJob. */
  readonly maxBytes: number;
  /** The caller whose turn in the queue the search uses. */
  readonly caller: string;
}

export interface PartCall {
  /** The part that is asked. */
  readonly part: Part;
  /**
   * All searches are answered from exactly the state that it sees. undefined: each from the part's current
   * position.
   */
  readonly snapshot?: SharedSnapshot | undefined;
  readonly searches: readonly PartSearch[];
}

export type PartResult =
  | {
      readonly kind: "answers";
      /** The first `offset + size` of the part's records. */
      readonly answers: readonly SearchAnswer[];
      /**
       * Where the answers come from. Answers of several parts belong together when these four are the same.
       */
      readonly incarnation: string;
      readonly schemaVersion: number;
      readonly tableId: number;
      readonly columnId: number;
      /** undefined: the table is held whole. */
      readonly part: Part | undefined;
    }
  /** The part is beyond the snapshot, or has another schema: a later snapshot may succeed. */
  | { readonly kind: "passed" }
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      readonly message: string;
      /** The schema version by which it was refused; undefined when the reason is not the schema. */
      readonly schemaVersion: number | undefined;
      readonly retryAfterSeconds?: number | undefined;
    };

export interface PartCallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time limit in ms. */
  readonly limitMs: number;
}

/** A holder of a part: this process, or another server. */
export interface PartSource {
  /**
   * Results in the order of the searches. @throws {LodestoneError} UNAVAILABLE when it cannot answer; the
   * signal's reason.
   */
  search(call: PartCall, options: PartCallOptions): Promise<readonly PartResult[]>;
}

/** The state of a server's part. */
export interface PartStatus {
  readonly part: Part;
  readonly ready: boolean;
  readonly lagMs: number;
}

export function formatPart({ index, of }: Part): string {
  return `${index}/${of}`;
}
