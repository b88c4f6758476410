/**
 * Which `Host` a server without keys answers to. Such a server trusts everyone who reaches it, and a page from
 * elsewhere can reach it by DNS rebinding: its own name is made to resolve to 127.0.0.1, and to the browser the
 * answers are then of the page's origin. Only the `Host` header shows it, because it contains that name.
 *
 * Accepted: `localhost` and names that end in `.localhost` (browsers resolve them to loopback themselves),
 * every IP address (not a name, so nothing to rebind), and the names that the server was given. JavaScript
 * development servers have the same rule.
 */
import { isIP } from "node:net";

/** The usual headers, recognised without parsing. */
const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?$/;

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
export function authorityOf(target: string | undefined): string | undefined {
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
