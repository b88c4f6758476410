/**
 * Finds an endpoint by its path: one list for each number of path segments, so that a request is compared with a
 * dozen patterns at most. Invariant: a path that matches a pattern has as many segments as the pattern.
 *
 * The patterns are layers of @koa/router. Its chain of middleware is left out: it makes several objects and promises
 * for each request, and here every path and method has one handler.
 */
import { type Layer, Router } from "@koa/router";
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { ApiRequest, ApiResponse, Endpoint, Method } from "./endpoint.ts";
import { authorize, type Caller } from "./keys/access-keys.ts";
import { parsePath, parseQuery } from "./parameters.ts";
import { compileSchema, SchemaFaultError, type Validate, type VectorPlaces, vectorPlaces } from "./validation.ts";

interface Route {
  readonly endpoint: Endpoint;
  readonly layer: Layer;
  /** Of the path's parameters. */
  readonly names: readonly string[];
  readonly validate: Validate | undefined;
  readonly vectors: VectorPlaces | undefined;
}

/** Where a request goes. */
export interface Destination {
  readonly endpoint: Endpoint;
  /** What the path and the query say. @throws {LodestoneError} INVALID, and FORBIDDEN where the caller may not go. */
  readonly address: (querystring: string, caller: Caller | undefined) => Pick<ApiRequest, "path" | "ref" | "query">;
  /** Where its body has vectors. */
  readonly vectors: VectorPlaces | undefined;
  /** @throws {LodestoneError} INVALID where the body does not fit. */
  readonly checkBody: (body: unknown) => void;
}

export class EndpointRouter {
  readonly #router = new Router({ sensitive: true });
  readonly #routes = new Map<number, Route[]>();

  register(endpoint: Endpoint): void {
    const { path, method, body } = endpoint;
    const names = [...path.replace("{db}:{branch}", "{dbBranch}").matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
    // None of the parameters spans segments.
    const pattern = path.replace("{db}:{branch}", ":dbBranch").replace(/\{(\w+)\}/g, ":$1");
    const route = {
      endpoint,
      layer: this.#router.register(pattern, [method], []) as Layer,
      names: names.map((name) => (name === "db" ? "database" : name)),
      validate: body === undefined ? undefined : compileSchema(body.schema),
      vectors: body === undefined ? undefined : vectorPlaces(body.schema),
    };
    const count = segmentsOf(pattern);
    const routes = this.#routes.get(count);
    if (routes === undefined) this.#routes.set(count, [route]);
    else routes.push(route);
  }

  /** The first endpoint that matches path and method. */
  find(method: string, path: string): Destination | undefined {
    for (const { layer, endpoint, names, validate, vectors } of this.#routes.get(segmentsOf(path)) ?? []) {
      if (!layer.methods.includes(method) || !layer.match(path)) continue;
      return {
        endpoint,
        vectors,
        address(querystring, caller) {
          const { path: values, ref } = parsePath(names, layer.captures(path));
          if (caller !== undefined) authorize(caller, endpoint.access, ref.database || (values.database ?? ""));
          return { path: values, ref, query: parseQuery(endpoint.query ?? [], querystring) };
        },
        checkBody: (body) => checkBody(body, validate, endpoint.indexedBy),
      };
    }
    return undefined;
  }

  /** The methods of all endpoints that match the path. */
  methodsOf(path: string): string[] {
    const matching = (this.#routes.get(segmentsOf(path)) ?? []).filter(({ layer }) => layer.match(path));
    return [...new Set(matching.flatMap(({ layer }) => layer.methods))];
  }

  /**
   * What another endpoint answers to the caller of this request: with the same rights, checks and budget as over HTTP,
   * and in the place that the request has.
   */
  async call(from: RoutedRequest, method: Method, target: string, body?: unknown): Promise<ApiResponse> {
    const [path = "", querystring = ""] = target.split("?");
    const destination = this.find(method, path);
    if (destination === undefined) throw new LodestoneError("NOT_FOUND", `There is no endpoint ${method} ${path.slice(0, 200)}.`);
    const address = destination.address(querystring, from.caller);
    destination.checkBody(body);
    return destination.endpoint.handle(new RoutedRequest(this, { ...from.fields, ...address, body }));
  }
}

type RequestFields = Omit<ApiRequest, "records" | "call"> & { readonly openRecords: () => ApiRequest["records"] };

/**
 * The request as endpoints get it. A class: an accessor in an object literal gives each object a hidden class of its own (V8), and that
 * kept all of each request in memory until the next full garbage collection. The slowest hundredth of searches took twice as long.
 */
export class RoutedRequest implements ApiRequest {
  readonly fields: RequestFields;
  readonly #router: EndpointRouter;

  constructor(router: EndpointRouter, fields: RequestFields) {
    this.#router = router;
    this.fields = fields;
  }

  get requestId() {
    return this.fields.requestId;
  }

  get path() {
    return this.fields.path;
  }

  get ref() {
    return this.fields.ref;
  }

  get query() {
    return this.fields.query;
  }

  get body() {
    return this.fields.body;
  }

  get headers() {
    return this.fields.headers;
  }

  get isSdk() {
    return this.fields.isSdk;
  }

  get databases() {
    return this.fields.databases;
  }

  get readOnly() {
    return this.fields.readOnly;
  }

  get caller() {
    return this.fields.caller;
  }

  get budget() {
    return this.fields.budget;
  }

  get signal() {
    return this.fields.signal;
  }

  /** Made only for endpoints that use it. */
  get records() {
    return this.fields.openRecords();
  }

  call(method: Method, target: string, body?: unknown): Promise<ApiResponse> {
    return this.#router.call(this, method, target, body);
  }
}

function checkBody(body: unknown, validate: Validate | undefined, indexedBy: string | undefined): void {
  if (body === undefined || validate === undefined) return;
  try {
    validate(body);
  } catch (error) {
    if (!(error instanceof SchemaFaultError) || indexedBy === undefined || error.steps[0] !== indexedBy || error.steps[1] === undefined)
      throw error;
    throw new LodestoneError("INVALID", error.message, {
      errors: [{ index: Number(error.steps[1]), code: "INVALID", message: error.message, status: 400 }],
    });
  }
}

/** A final slash is not counted: patterns fit with and without one. */
function segmentsOf(path: string): number {
  let count = 0;
  const end = path.endsWith("/") ? path.length - 1 : path.length;
  for (let at = path.indexOf("/"); at !== -1 && at < end; at = path.indexOf("/", at + 1)) count++;
  return count;
}
