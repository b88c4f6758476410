/** What the servers that hold the parts of one database ask of each other. */
import type { ErrorCode } from "../../errors.ts";
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
  /** Of the answers together, as SearchJob has it. */
  readonly maxBytes: number;
  /** Whose turn it takes. */
  readonly caller: string;
}

export interface PartCall {
  /** Whom it is meant for. */
  readonly part: Part;
  /** All searches are answered from exactly what it sees; undefined: each from what the part has. */
  readonly snapshot?: SharedSnapshot | undefined;
  readonly searches: readonly PartSearch[];
}

export type PartResult =
  | {
      readonly kind: "answers";
      /** The first `offset + size` of the part's records. */
      readonly answers: readonly SearchAnswer[];
      /** What they are from. Answers of several parts belong together when it is the same. */
      readonly incarnation: string;
      readonly schemaVersion: number;
      readonly tableId: number;
      readonly columnId: number;
      /** undefined: the table is held whole. */
      readonly part: Part | undefined;
    }
  /** The part has gone beyond the snapshot, or has another schema: a later snapshot may do. */
  | { readonly kind: "passed" }
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      readonly message: string;
      /** By which it was refused; undefined when no schema has to do with it. */
      readonly schemaVersion: number | undefined;
      readonly retryAfterSeconds?: number | undefined;
    };

export interface PartCallOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long it may take. */
  readonly limitMs: number;
}

/** Who answers for a part: this process, or another server. */
export interface PartSource {
  /** In the order of the searches. @throws {LodestoneError} UNAVAILABLE when it cannot answer; the signal's reason. */
  search(call: PartCall, options: PartCallOptions): Promise<readonly PartResult[]>;
}

/** How a server's part is doing. */
export interface PartStatus {
  readonly part: Part;
  readonly ready: boolean;
  readonly lagMs: number;
}

export function formatPart({ index, of }: Part): string {
  return `${index}/${of}`;
}
