/**
 * Finds an endpoint by its path: one list for each number of path segments, so that a request is compared with a
 * dozen patterns at most. Invariant: a path that matches a pattern has as many segments as the pattern.
 *
 * The patterns are layers of @koa/router. Its chain of middleware is left out: it makes several objects and promises
 * for each request, and here every path and method has one handler.
 */
import { type Layer, Router } from "@koa/router";
import type { Context, Middleware } from "koa";

/** @param captures  the path's raw segments that stand for parameters, in their order. */
type Handle = (ctx: Context, captures: readonly string[]) => Promise<void>;

interface Route {
  readonly layer: Layer;
  readonly handle: Handle;
}

export class EndpointRouter {
  readonly #router = new Router({ sensitive: true });
  readonly #routes = new Map<number, Route[]>();

  /** @param path with parameters as in `/dbs/:database`; none of them spans segments. */
  register(path: string, method: string, handle: Handle): void {
    const route = { layer: this.#router.register(path, [method], []) as Layer, handle };
    const count = segmentsOf(path);
    const routes = this.#routes.get(count);
    if (routes === undefined) this.#routes.set(count, [route]);
    else routes.push(route);
  }

  /** The first endpoint that matches path and method answers. Calls `next` where none does. */
  middleware(): Middleware {
    return (ctx, next) => {
      const { method, path } = ctx;
      for (const { layer, handle } of this.#routes.get(segmentsOf(path)) ?? []) {
        if (layer.methods.includes(method) && layer.match(path)) return handle(ctx, layer.captures(path));
      }
      return next();
    };
  }

  /** The methods of all endpoints that match the path. */
  methodsOf(path: string): string[] {
    const matching = (this.#routes.get(segmentsOf(path)) ?? []).filter(({ layer }) => layer.match(path));
    return [...new Set(matching.flatMap(({ layer }) => layer.methods))];
  }
}

/** A final slash is not counted: patterns fit with and without one. */
function segmentsOf(path: string): number {
  let count = 0;
  const end = path.endsWith("/") ? path.length - 1 : path.length;
  for (let at = path.indexOf("/"); at !== -1 && at < end; at = path.indexOf("/", at + 1)) count++;
  return count;
}
