/** Listening and stopping: sockets, their timeouts, and a shutdown that completes requests in flight. */

import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { LodestoneError } from "../errors.ts";
import type { App } from "./app.ts";
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from "./http-limits.ts";

export interface RunningServer {
  /** `http://127.0.0.1:8787`, one for each address. */
  readonly urls: readonly string[];
  readonly port: number;
  /** Stops accepting, completes requests in flight (for a bounded time), and closes every connection. */
  close(): Promise<void>;
}

export async function listen(
  app: App,
  options: { readonly addresses: readonly string[]; readonly port: number; readonly limits?: Partial<HttpLimits> },
): Promise<RunningServer> {
  const limits = { ...DEFAULT_HTTP_LIMITS, ...options.limits };
  const handle = app.koa.callback();
  const servers: Server[] = [];
  let port = options.port;
  for (const address of options.addresses) {
    const server = createServer(
      {
        headersTimeout: limits.headersTimeoutMs,
        // The body reader has its own, shorter limits; this one also covers bodies that nobody reads.
        requestTimeout: limits.headersTimeoutMs + limits.bodyTimeoutMs,
        connectionsCheckingInterval: 1_000,
        keepAliveTimeout: 65_000,
      },
      handle,
    );
    server.maxConnections = limits.connections;
    server.on("clientError", answerMalformed);
    try {
      await bind(server, address, port);
    } catch (error) {
      // If IPv6 is missing (or its port is taken), the server listens on the other address alone.
      if (servers.length > 0 && isMissingAddress(error)) continue;
      await Promise.all(servers.map(closeNow));
      throw describeBindError(error, address, port);
    }
    port = (server.address() as AddressInfo).port;
    servers.push(server);
  }
  return {
    urls: servers.map((server) => urlOf(server.address() as AddressInfo)),
    port,
    async close() {
      app.drain();
      const closed = Promise.all(servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
      for (const server of servers) server.closeIdleConnections();
      const deadline = setTimeout(() => {
        for (const server of servers) server.closeAllConnections();
      }, limits.shutdownTimeoutMs);
      // Connections that were busy become idle as their answers go out.
      const sweep = setInterval(() => {
        for (const server of servers) server.closeIdleConnections();
      }, 50);
      await closed;
      clearTimeout(deadline);
      clearInterval(sweep);
    },
  };
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, ipv6Only: host.includes(":") }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

const closeNow = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()));

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "";

const isMissingAddress = (error: unknown): boolean => ["EADDRNOTAVAIL", "EAFNOSUPPORT", "EADDRINUSE"].includes(codeOf(error));

function describeBindError(error: unknown, address: string, port: number): unknown {
  switch (codeOf(error)) {
    case "EADDRINUSE":
      return new LodestoneError(
        "UNAVAILABLE",
        `Port ${port} of ${address} is taken. Stop what listens there, or choose another with --port.`,
      );
    case "EACCES":
      return new LodestoneError("UNAVAILABLE", `Port ${port} needs more rights than this user has. Choose one from 1024 up with --port.`);
    case "EADDRNOTAVAIL":
      return new LodestoneError("UNAVAILABLE", `${address} is not an address of this machine. Choose another with --host.`);
    default:
      return error;
  }
}

function urlOf({ address, port }: AddressInfo): string {
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
}

/**
 * Requests that are not HTTP, are too slow, or have oversized headers are answered in the API's form here,
 * since Koa never sees them.
 */
function answerMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const [status, message] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? ["431 Request Header Fields Too Large", "The request's headers are larger than 16 KiB."]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? ["408 Request Timeout", "The request did not arrive in time."]
        : ["400 Bad Request", "The request is not valid HTTP."];
  const id = randomUUID();
  const body = JSON.stringify({ id, message });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${id}\r\nConnection: close\r\n\r\n${body}`,
  );
}
