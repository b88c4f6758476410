/**
 * Finds an endpoint by its path: one router for each number of path segments, so that a request is compared
 * with a dozen patterns at most. Invariant: a path that matches a pattern has as many segments as the pattern.
 */
import { Router } from "@koa/router";
import type { Context, Middleware } from "koa";

type Handle = (ctx: Context) => Promise<void>;

export class EndpointRouter {
  readonly #routers = new Map<number, { router: Router; route: Middleware }>();

  /** @param path with parameters as in `/dbs/:database`; none of them spans segments. */
  register(path: string, method: string, handle: Handle): void {
    const count = segmentsOf(path);
    let found = this.#routers.get(count);
    if (found === undefined) {
      const router = new Router({ sensitive: true });
      found = { router, route: router.routes() as Middleware };
      this.#routers.set(count, found);
    }
    found.router.register(path, [method], handle);
  }

  /**
   * Leaves in `ctx.matched` what matches the path, even for other methods, and calls `next` where nothing
   * matches both.
   */
  middleware(): Middleware {
    return (ctx, next) => this.#routers.get(segmentsOf(ctx.path))?.route(ctx, next) ?? next();
  }
}

/** A final slash is not counted: patterns fit with and without one. */
function segmentsOf(path: string): number {
  let count = 0;
  const end = path.endsWith("/") ? path.length - 1 : path.length;
  for (let at = path.indexOf("/"); at !== -1 && at < end; at = path.indexOf("/", at + 1)) count++;
  return count;
}
