/**
 * An endpoint: one object that declares its path, what it takes, what it answers and who may call it.
 * The router, the validation, the key check and /openapi.json are all made from it, so they cannot disagree.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { AnswerBudget } from "../budget/memory-budget.ts";
import type { Access } from "../key-scopes.ts";
import type { RecordStore } from "../records/record-store.ts";
import type { Selection } from "../records/requests.ts";
import type { BranchRef } from "../records/schema.ts";
import type { Caller } from "./keys/access-keys.ts";
import type { JsonSchema } from "./validation.ts";

export type Method = "GET" | "PUT" | "PATCH" | "POST" | "DELETE";

export type QueryParameterKind = "columns" | "boolean" | "integer" | "name" | "text";

export interface QueryParameter {
  readonly name: string;
  readonly kind: QueryParameterKind;
  readonly description: string;
}

/** Values of the query string, parsed by their kinds; only what was given. */
export interface QueryValues {
  readonly columns?: Selection;
  readonly createOnly?: boolean;
  readonly ifVersion?: number;
  readonly from?: string;
  readonly filter?: string;
  readonly gitBranch?: string;
  readonly fallbackBranch?: string;
}

export interface ApiRequest<Body = unknown> {
  readonly requestId: string;
  /** Decoded and checked path parameters: `database`, `table`, `column`, `id` as far as the path has them. */
  readonly path: Readonly<Record<string, string>>;
  /**
   * The record store on behalf of this request's client: it abandons work when the client has disconnected. For
   * everything but schemas.
   */
  readonly records: RecordStore;
  /** The `{db}:{branch}` of the path. Empty names where the path has none. */
  readonly ref: BranchRef;
  readonly query: QueryValues;
  /** Fits the endpoint's schema. undefined when there is none. */
  readonly body: Body;
  readonly headers: IncomingHttpHeaders;
  /** True for clients that announce themselves with X-Xata-Agent. */
  readonly isSdk: boolean;
  /** Databases that the caller's key is limited to. undefined: all. */
  readonly databases: readonly string[] | undefined;
  /** True when the caller's key may only read. */
  readonly readOnly: boolean;
  /** Whose key it is and what it may do. undefined where the endpoint is public. */
  readonly caller: Caller | undefined;
  /** What the answer takes beyond what is read through `records` is charged here. */
  readonly budget: AnswerBudget;
  /** Aborted when the client has disconnected: work that has not begun need not begin. */
  readonly signal: AbortSignal;
  /**
   * What another endpoint answers to the same caller, as over HTTP.
   * @param target  path and query, percent-encoded.
   * @throws what makes an answer an error.
   */
  readonly call: (method: Method, target: string, body?: unknown) => Promise<ApiResponse>;
}

export interface ApiResponse {
  readonly status: number;
  /** JSON, or text where `contentType` says so. undefined: no body. */
  readonly body?: unknown;
  readonly contentType?: string;
  /**
   * In place of a body: bytes as they are made, which begin when the reader takes them. The request keeps its place
   * until the last has gone out.
   */
  readonly stream?: AsyncIterator<Buffer>;
  /** The stream goes on for as long as its client likes, and does not keep a place among the requests. */
  readonly isLongLived?: boolean;
  /** Besides those of every answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ResponseSpec {
  readonly description: string;
  readonly schema?: JsonSchema;
  /** Of an answer that is not JSON; then there is no schema. */
  readonly contentType?: string;
}

export interface Endpoint<Body = unknown> {
  readonly method: Method;
  /** As in OpenAPI: `/db/{db}:{branch}/tables/{table}`. */
  readonly path: string;
  /** operationId: unique, a verb and a noun. */
  readonly name: string;
  readonly summary: string;
  readonly tag: string;
  readonly access: Access;
  readonly query?: readonly QueryParameter[];
  readonly body?: { readonly schema: JsonSchema; readonly required: boolean };
  /** The body's member whose elements are reported by their index when they are faulty: `{id, errors: [{index, message}]}`. */
  readonly indexedBy?: string;
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  /** It may write records, although a key that only reads may call it; those of access "write" do anyway. */
  readonly mayWrite?: boolean;
  /** Answered even when the server is at its limit or shutting down (health and metrics). */
  readonly always?: boolean;
  handle(request: ApiRequest<Body>): Promise<ApiResponse>;
}

/** Fixes the body's type for the handler; the schema is what makes it true. */
export function endpoint<Body = undefined>(definition: Endpoint<Body>): Endpoint {
  return definition as Endpoint;
}
