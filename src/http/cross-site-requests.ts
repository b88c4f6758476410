/**
 * Keeps pages from elsewhere out of a server without keys, which trusts everyone who reaches it. Such pages reach
 * it through the browser of somebody on this machine:
 *
 * - by cross-site request forgery (CSRF): a request from another origin. CORS keeps the page from reading the answer; the check of `Origin` keeps it
 *   from writing, even where no preflight is sent.
 * - by DNS rebinding. The page's own name is made to resolve to 127.0.0.1, and to the browser the answers are then
 *   of the page's origin; it sends no `Origin` with a GET. Only the `Host` header shows it, because it contains that
 *   name.
 *
 * Accepted hosts: `localhost` and names that end in `.localhost` (browsers resolve them to loopback themselves),
 * every IP address (not a name, so nothing to rebind), and the names that the server was given. JavaScript
 * development servers have the same rule.
 */
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import type { Context } from "koa";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";

/** The usual headers, recognised without parsing. */
const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?$/;

/**
 * @param hostNames    further names that the server answers to, without a port.
 * @param corsOrigins  origins that may call it.
 * @throws {LodestoneError} FORBIDDEN.
 */
export function refuseCrossSiteRequests(ctx: Context, hostNames: readonly string[], corsOrigins: readonly string[]): void {
  const strange = [ctx.req.headers.host, authorityOf(ctx.req.url)].find((name) => !isTrustedHost(name, hostNames));
  if (strange !== undefined) {
    throw new LodestoneError(
      "FORBIDDEN",
      `A server without keys does not answer to the name ${quoted(strange)}, so that foreign pages cannot reach it: ` +
        "use localhost or an IP address, name it with --host, or start the server with keys (--api-key or --key-file).",
    );
  }
  refuseForeignOrigin(ctx.req.headers, corsOrigins);
}

/** @throws {LodestoneError} FORBIDDEN for a page that is neither of this server, such as the console, nor of `corsOrigins`. */
export function refuseForeignOrigin({ origin = "", host = "" }: IncomingHttpHeaders, corsOrigins: readonly string[]): void {
  if (origin === "" || isSameHost(origin, host) || corsOrigins.includes(origin) || corsOrigins.includes("*")) return;
  throw new LodestoneError("FORBIDDEN", `The origin ${quoted(origin)} is not allowed; start the server with --cors-origin to allow it.`);
}

/** Without the scheme, which a proxy that ends TLS changes. */
function isSameHost(origin: string, host: string): boolean {
  return host !== "" && (origin === `http://${host}` || origin === `https://${host}`);
}

/** @param header of the request; undefined (HTTP/1.0) is answered: browsers always send it. @param names further ones, without a port. */
export function isTrustedHost(header: string | undefined, names: readonly string[]): boolean {
  if (header === undefined || header === "" || LOOPBACK.test(header)) return true;
  const name = hostnameOf(header);
  if (name === undefined) return false;
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  if (isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0) return true;
  return names.some((known) => hostnameOf(known) === name);
}

/**
 * Whom an absolute-form target ("GET http://name/path") addresses, which counts before the `Host` header (RFC
 * 9112, 3.2.2); undefined for a plain path. What is neither is answered as it stands: no name, and so not
 * trusted.
 */
function authorityOf(target: string | undefined): string | undefined {
  if (target === undefined || target.startsWith("/") || target === "*") return undefined;
  return /^https?:\/\/([^/?#]*)/i.exec(target)?.[1] || target;
}

/** As a browser would read it: lower case, IPv4 in four decimal parts, no port, no final dot. */
function hostnameOf(host: string): string | undefined {
  if (/[/?#@\\\s]/.test(host)) return undefined;
  try {
    return new URL(`http://${host}`).hostname.replace(/\.$/, "");
  } catch {
    return undefined;
  }
}
