/** Listening and stopping: sockets, their timeouts, and a shutdown that completes requests in flight. */
import { randomUUID } from "node:crypto";
import { lookup } from "node:dns/promises";
import { createServer, type Server } from "node:http";
import { type AddressInfo, isIP, Server as NetServer, type Socket } from "node:net";
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { App } from "./app.ts";
import { OpenConnections } from "./connections/open-connections.ts";
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from "./http-limits.ts";

export interface RunningServer {
  /** `http://127.0.0.1:8787`, one for each address. */
  readonly urls: readonly string[];
  readonly port: number;
  /**
   * Stops accepting, and completes requests in flight. Those that are not done in time are answered 503. Then every
   * connection is closed.
   */
  close(): Promise<void>;
}

/** Connections that the kernel completes before they are accepted; it takes as many as net.core.somaxconn says. */
const BACKLOG = 4_096;
const SWEEP_MS = 50;

export async function listen(
  app: App,
  options: { readonly addresses: readonly string[]; readonly port: number; readonly limits?: Partial<HttpLimits> },
): Promise<RunningServer> {
  const limits = { ...DEFAULT_HTTP_LIMITS, ...options.limits };
  const handle = app.koa.callback();
  const connections = new OpenConnections(limits.connections, app.proxies, (sentence) => app.log.warn(sentence));
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
      (request, response) => {
        connections.asked(request.socket);
        void handle(request, response);
      },
    );
    server.on("connection", (socket) => connections.enter(socket));
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
    close: () => shutDown(app, servers, limits),
  };
}

async function shutDown(app: App, servers: readonly Server[], limits: HttpLimits): Promise<void> {
  app.drain();
  await acceptAll(servers, limits.shutdownIdleMs);
  let areClosed = false;
  const closed = Promise.all(servers.map(stopAccepting)).then(() => {
    areClosed = true;
  });
  const after = (ms: number): Promise<void> => {
    let timer: NodeJS.Timeout;
    const passed = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    return Promise.race([passed, closed]).finally(() => clearTimeout(timer));
  };
  // Connections that were busy become idle as their answers go out.
  let sweep: NodeJS.Timeout | undefined;
  const beginToSweep = setTimeout(() => {
    sweep = setInterval(() => closeIdle(servers), SWEEP_MS);
    closeIdle(servers);
  }, limits.shutdownIdleMs);
  await after(limits.shutdownTimeoutMs);
  if (!areClosed) {
    const requests = app.endRequests();
    app.log.warn({ requests }, "the time for requests in flight is over; they are ended");
    await after(limits.shutdownAnswerMs);
    const unanswered = areClosed ? 0 : app.answerRequests();
    if (unanswered > 0)
      app.log.warn({ requests: unanswered }, "requests go on that cannot be ended; they are answered without their outcome");
    await after(limits.shutdownAnswerMs);
    for (const server of servers) server.closeAllConnections();
  }
  await closed;
  clearTimeout(beginToSweep);
  clearInterval(sweep);
  // Node's own timers that look for slow clients.
  for (const server of servers) server.close();
}

/**
 * Accepts the connections that the kernel has completed, which it would reset with the end of listening. Node accepts one
 * in each turn of the event loop.
 */
async function acceptAll(servers: readonly Server[], limitMs: number): Promise<void> {
  let turnsWithoutOne = 0;
  const onConnection = (): void => {
    turnsWithoutOne = 0;
  };
  for (const server of servers) server.on("connection", onConnection);
  const endMs = performance.now() + limitMs;
  while (turnsWithoutOne++ < 2 && performance.now() < endMs) await new Promise((resolve) => setImmediate(resolve));
  for (const server of servers) server.off("connection", onConnection);
}

/** @returns when the last connection has ended. Unlike http's own `close`, idle connections stay open for now. */
function stopAccepting(server: Server): Promise<void> {
  return new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()));
}

/** After all that has arrived was read: a connection is not idle when a request waits in its buffer. */
function closeIdle(servers: readonly Server[]): void {
  setImmediate(() => {
    for (const server of servers) server.closeIdleConnections();
  });
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, ipv6Only: host.includes(":"), backlog: BACKLOG }, () => {
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

// Where the server listens. By default on both loopback addresses, since `localhost` may resolve to either; on
// other addresses only when keys are required.

/** @returns addresses to bind, the first of which must succeed. @throws {LodestoneError} INVALID. */
export async function resolveListenAddresses(host: string | undefined, hasKeys: boolean): Promise<string[]> {
  const addresses = host === undefined || host === "localhost" ? ["127.0.0.1", "::1"] : await resolve(host);
  const open = addresses.find((address) => !isLoopback(address));
  if (open !== undefined && !hasKeys) {
    throw new LodestoneError(
      "INVALID",
      `Without API keys the server listens on loopback only, but "${host}" is reachable from other machines (${open}). ` +
        "Set up keys (--api-key, or lodestone keys create and --key-file), or leave out --host.",
    );
  }
  return addresses;
}

async function resolve(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  try {
    const found = await lookup(host, { all: true });
    return found.map(({ address }) => address);
  } catch {
    throw new LodestoneError("INVALID", `--host: "${host}" does not resolve to an address of this machine.`);
  }
}

function isLoopback(address: string): boolean {
  return address === "::1" || /^(::ffff:)?127\.\d+\.\d+\.\d+$/i.test(address);
}
