/** The public HTTP API, as the tools use it: over a connection, or in the server for the caller of a request. */

/** Status and body as over HTTP: of an error `{message}`, or `{errors: [{index, message}]}`. */
export interface ApiAnswer {
  readonly status: number;
  /** Numbers that JavaScript's do not hold exactly are texts, or ExactJson. */
  readonly body: unknown;
}

/** @param target  path and query, percent-encoded. @returns errors, too; rejects only for faults of this program. */
export type Api = (method: "GET" | "POST", target: string, body?: object) => Promise<ApiAnswer>;

/** `/db/shop%3Amain/tables/products`: each segment is encoded by itself. */
export const pathOf = (...segments: readonly string[]): string => segments.map((segment) => `/${encodeURIComponent(segment)}`).join("");
