/**
 * The HTTP application: Koa, a router made from the list of endpoints, and around each handler what all have in
 * common: request id, key, admission, parameters, body, schema, and the form of errors. It contains no rule of
 * the domain.
 */
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import cors from "@koa/cors";
import Koa, { type Context } from "koa";
import type { Logger } from "pino";
import { type AnswerBudget, MemoryBudget } from "../budget/memory-budget.ts";
import { memoryLimits } from "../budget/process-limits.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { crashPoint } from "../files/fault-points.ts";
import type { RecordStore } from "../records/record-store.ts";
import type { ReplicaHub } from "../replica/replica-hub.ts";
import type { SearchStore } from "../search/search-store.ts";
import { Admission } from "./admission/admission.ts";
import { announcesBody, discardRest, refuseTransferCoding } from "./body/body-reader.ts";
import { readJson } from "./body/read-json.ts";
import { networkOf, TrustedProxies } from "./connections/client-address.ts";
import { connectionOf } from "./connections/client-connection.ts";
import { consoleFiles } from "./console-files.ts";
import { refuseCrossSiteRequests } from "./cross-site-requests.ts";
import type { Endpoint } from "./endpoint.ts";
import { type Destination, EndpointRouter, RoutedRequest } from "./endpoint-router.ts";
import { createEndpoints } from "./endpoints/all.ts";
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from "./http-limits.ts";
import { type Caller, Keyring } from "./keys/access-keys.ts";
import type { KeyManager } from "./keys/key-manager.ts";
import { Metrics } from "./metrics.ts";
import { notOffered } from "./not-offered.ts";
import { type PartAccess, peerEndpoint } from "./parts/peer-endpoint.ts";
import { RequestsUnderWay, type RequestUnderWay } from "./requests-under-way.ts";
import { sendAnswer } from "./send-answer.ts";
import { answerError, ClientGoneError, HttpError, isConnectionLost } from "./status.ts";

export interface AppOptions {
  readonly records: RecordStore;
  readonly search: SearchStore;
  /** What replicas are given; without it there are none. */
  readonly replicas?: ReplicaHub | undefined;
  /** Default: none, everybody may do everything. */
  readonly keyring?: Keyring;
  /** What administrators create and revoke keys with; without it they see none. */
  readonly keys?: KeyManager;
  readonly log: Logger;
  readonly metrics?: Metrics;
  readonly limits?: Partial<HttpLimits>;
  /** What answers may take of the process's memory. Default: by what the machine has. */
  readonly memory?: MemoryBudget;
  /** Origins that browsers may call from, or "*". Default: none. */
  readonly corsOrigins?: readonly string[];
  /** Whether agents (`/mcp`) get tools that insert and delete. Default: no. */
  readonly agentsWrite?: boolean;
  /** Whose X-Forwarded-For is believed. Default: nobody's. */
  readonly proxies?: TrustedProxies;
  /** Names, besides those of loopback, that a server without keys answers to: the host that it was told to listen on. */
  readonly hostNames?: readonly string[];
  readonly version: string;
  /** Of the sources that it was built from, where known. */
  readonly commit?: string | undefined;
  /** A server whose searches are further behind the records is not ready; default 30 s. */
  readonly maxLagMs?: number;
  /** The folder of the console's files, served under /console; without it there is none. */
  readonly consoleDir?: string;
  /** Where `POST /backups` puts them; without it there are none. */
  readonly backupDir?: string;
  /** The part of the vectors that the servers of the others may ask for. */
  readonly searchPart?: PartAccess | undefined;
}

export interface App {
  readonly koa: Koa;
  readonly admission: Admission;
  readonly proxies: TrustedProxies;
  readonly log: Logger;
  /** From then on only health checks are answered; all other requests get 503. Each answer closes its connection. */
  drain(): void;
  /** Ends the requests under way, as requests-under-way.ts says. @returns how many there are. */
  endRequests(): number;
  /** Answers those that are under way all the same, without knowing what becomes of them. @returns how many there are. */
  answerRequests(): number;
}

const DEFAULT_MAX_LAG_MS = 30_000;

interface State {
  readonly request: RequestUnderWay;
  requestId: string;
  endpoint: Pick<Endpoint, "name" | "path"> | undefined;
  caller: Caller | undefined;
}

export function createApp(options: AppOptions): App {
  const limits: HttpLimits = { ...DEFAULT_HTTP_LIMITS, ...options.limits };
  const keyring = options.keyring ?? new Keyring();
  const admission = new Admission(limits);
  const memory = options.memory ?? new MemoryBudget(memoryLimits().answers);
  const metrics =
    options.metrics ??
    new Metrics(options.records, options.search, () => ({
      requests: { now: admission.requests, most: limits.concurrentRequests },
      bodyBytes: { now: admission.bodyBytes, most: limits.concurrentBodyBytes },
      answerBytes: { now: memory.heldBytes, most: memory.limits.totalBytes },
    }));
  const corsOrigins = options.corsOrigins ?? [];
  const proxies = options.proxies ?? new TrustedProxies();
  const underWay = new RequestsUnderWay();
  let draining = false;

  const endpoints = createEndpoints({
    ...options,
    metrics,
    maxLagMs: options.maxLagMs ?? DEFAULT_MAX_LAG_MS,
    asksForKeys: !keyring.isOpen,
    isDraining: () => draining,
  });
  const router = new EndpointRouter();
  for (const endpoint of endpoints) router.register(endpoint);

  const koa = new Koa();
  // Errors of a response that is already being sent (the client disconnected); all others are answered below.
  koa.on("error", (error: Error, ctx?: Context) => {
    const { requestId, endpoint } = (ctx?.state ?? {}) as Partial<State>;
    const told = { err: error, requestId, endpoint: endpoint?.name };
    if (isConnectionLost(error)) options.log.debug(told, "the client has gone");
    else if (error instanceof LodestoneError) options.log.info(told, "an answer was ended before its end");
    else options.log.error(told, "an answer failed before its end");
  });

  koa.use(async (ctx, next) => {
    const startedMs = performance.now();
    const request = underWay.begin(connectionOf(ctx.req.socket), ctx.res);
    const state: State = { request, requestId: requestIdOf(ctx), endpoint: undefined, caller: undefined };
    ctx.state = state;
    ctx.set("X-Request-Id", state.requestId);
    try {
      await Promise.race([next(), request.cut]);
    } catch (error) {
      answerFailure(ctx, state, error);
    }
    if (draining) ctx.set("Connection", "close");
    const { status } = ctx;
    const seconds = (performance.now() - startedMs) / 1000;
    // Koa hands the answer to the socket in a microtask, so before this: no client should wait for the log to
    // be written.
    process.nextTick(() => tellOfRequest(ctx, state, status, seconds));
  });
  if (corsOrigins.length > 0) koa.use(corsMiddleware(corsOrigins));
  koa.use((ctx, next) => {
    refuseTransferCoding(ctx.req);
    if (keyring.isOpen && !corsOrigins.includes("*")) refuseCrossSiteRequests(ctx, options.hostNames ?? [], corsOrigins);
    refuseEmptyId(ctx);
    return next();
  });
  const access = options.searchPart;
  if (access !== undefined) koa.use(peerEndpoint({ access, limits, isDraining: () => draining, openBudget }));
  const files = options.consoleDir === undefined ? undefined : consoleFiles(options.consoleDir, limits.answerIdleTimeoutMs);
  if (files !== undefined) koa.use(files);
  koa.use((ctx, next) => {
    const destination = router.find(ctx.method, ctx.path);
    return destination === undefined ? next() : answerEndpoint(ctx, destination);
  });
  koa.use(answerUnrouted);
  keyring.onRevoked(endRequestsOf);

  async function answerEndpoint(ctx: Context, destination: Destination): Promise<void> {
    const { endpoint } = destination;
    const state = ctx.state as State;
    state.endpoint = endpoint;
    if (endpoint.access !== "public") state.caller = keyring.authenticate(ctx.get("authorization"));
    state.request.caller = state.caller;
    if (draining && endpoint.always !== true) throw new LodestoneError("UNAVAILABLE", "The server is shutting down.");
    const address = destination.address(ctx.querystring, state.caller);
    const { connection } = state.request;
    const { gone } = connection;
    const caller = callerName(ctx, state.caller);
    const place = endpoint.always === true ? undefined : admission.enter(caller, announcedBytes(ctx, endpoint), connection);
    let isStreaming = false;
    try {
      const body =
        endpoint.body === undefined
          ? undefined
          : await readJson(ctx.req, { required: endpoint.body.required, vectors: destination.vectors }, limits, place);
      destination.checkBody(body);
      const budget = openBudget(ctx, caller);
      const request = new RoutedRequest(router, {
        // Not spread: after a spread, V8 defines each of the others at runtime, which took 30 µs of each request.
        path: address.path,
        ref: address.ref,
        query: address.query,
        requestId: state.requestId,
        openRecords: () => options.records.forCaller(gone, budget),
        budget,
        body,
        headers: ctx.req.headers,
        isSdk: ctx.get("x-xata-agent") !== "",
        databases: state.caller?.databases,
        readOnly: state.caller?.scope === "read",
        caller: state.caller,
        signal: gone,
      });
      const response = await endpoint.handle(request);
      crashPoint("before-answer");
      const mayWrite = endpoint.access === "write" || endpoint.mayWrite === true;
      const read = mayWrite ? options.replicas?.readAfterWrite(address.ref) : undefined;
      if (read !== undefined) ctx.set("Lodestone-Read", read);
      await sendAnswer(ctx, response, limits.answerIdleTimeoutMs, caller);
      isStreaming = response.stream !== undefined && response.isLongLived !== true;
      if (isStreaming) ctx.res.once("close", () => place?.leave());
    } finally {
      if (!isStreaming) place?.leave();
    }
  }

  function openBudget(ctx: Context, caller: string): AnswerBudget {
    const budget = memory.open(caller);
    // The answer counts until the last of it has been sent.
    ctx.res.once("close", () => budget.close());
    return budget;
  }

  /** Who is charged for places, turns and memory: the key, or the client's address when there are no keys. */
  function callerName(ctx: Context, caller: Caller | undefined): string {
    if (caller !== undefined && caller.name !== "") return `key ${caller.name}`;
    const { address, network } = connectionOf(ctx.req.socket);
    const forwardedFor = ctx.req.headers["x-forwarded-for"] as string | undefined;
    return `address ${forwardedFor === undefined ? network : networkOf(proxies.clientOf(address, forwardedFor))}`;
  }

  function endRequestsOf(revoked: ReadonlySet<Caller>): void {
    for (const request of underWay.list()) {
      const { caller, response } = request;
      if (caller === undefined || !revoked.has(caller)) continue;
      request.end(new LodestoneError("UNAUTHORIZED", "The API key was revoked while this request ran."));
      options.log.warn(
        { requestId: response.getHeader("X-Request-Id"), key: caller.name },
        "a request was under way whose key was revoked: it ends, unless it is a write that has begun",
      );
    }
  }

  function endAll(message: string, end: "end" | "answer"): number {
    const requests = underWay.list();
    for (const request of requests) request[end](new LodestoneError("UNAVAILABLE", message));
    return requests.length;
  }

  /** 0 when the headers do not say, or say more than is taken, which has an answer of its own. */
  function announcedBytes(ctx: Context, endpoint: Endpoint): number {
    const length = Number(ctx.req.headers["content-length"] ?? 0);
    return endpoint.body === undefined || length > limits.bodyBytes ? 0 : length;
  }

  function tellOfRequest(ctx: Context, state: State, status: number, seconds: number): void {
    metrics.observeRequest(ctx.method, state.endpoint?.path ?? "other", status, seconds);
    try {
      options.log[status >= 500 ? "warn" : "info"](
        {
          requestId: state.requestId,
          method: ctx.method,
          path: ctx.path,
          endpoint: state.endpoint?.name,
          status,
          ms: Math.round(seconds * 1e6) / 1e3,
          key: state.caller?.name || undefined,
        },
        "request",
      );
    } catch {
      // A log that cannot be written (its disk is full) is no reason to stop serving.
    }
  }

  async function answerUnrouted(ctx: Context): Promise<void> {
    const methods = router.methodsOf(ctx.path);
    if (methods.length > 0) {
      const allow = [...methods, "OPTIONS"].join(", ");
      if (ctx.method === "OPTIONS") {
        ctx.set("Allow", allow);
        ctx.status = 204;
        return;
      }
      throw new HttpError("METHOD_NOT_ALLOWED", `${ctx.method} is not possible here; expected ${methods.join(", ")}.`, { Allow: allow });
    }
    keyring.authenticate(ctx.get("authorization"));
    const sentence = notOffered(ctx.path);
    if (sentence !== undefined) throw new LodestoneError("NOT_FOUND", sentence);
    throw new LodestoneError(
      "NOT_FOUND",
      `There is no endpoint ${ctx.method} ${ctx.path.slice(0, 200)}; GET /openapi.json lists them all.`,
    );
  }

  function answerFailure(ctx: Context, state: State, error: unknown): void {
    if (error instanceof ClientGoneError) {
      ctx.status = 499;
      return;
    }
    const answer = answerError(error, state.requestId);
    if (answer.unexpected) options.log.error({ err: error, requestId: state.requestId, endpoint: state.endpoint?.name }, "request failed");
    if (error instanceof LodestoneError && error.code === "TIMEOUT") metrics.countStatementTimeout();
    const discarded = announcesBody(ctx.req) ? discardRest(ctx.req) : undefined;
    ctx.set(answer.headers as Record<string, string>);
    ctx.status = answer.status;
    ctx.type = "application/json";
    const text = JSON.stringify(answer.body);
    if (discarded === undefined || ctx.res.shouldKeepAlive) ctx.body = text;
    else {
      // Node closes such a connection with the end of the answer, even while the client is still sending.
      ctx.body = Readable.from(endingAfter(text, discarded));
      ctx.length = Buffer.byteLength(text);
    }
  }

  /**
   * Elsewhere a final slash is not part of a path. After `data` it means an empty id, which no record has (and
   * no insert is meant).
   */
  function refuseEmptyId(ctx: Context): void {
    if (!/^\/db\/[^/]+\/tables\/[^/]+\/data\/$/.test(ctx.path)) return;
    keyring.authenticate(ctx.get("authorization"));
    throw new LodestoneError("NOT_FOUND", "A record's id cannot be empty.");
  }

  return {
    koa,
    admission,
    proxies,
    log: options.log,
    drain: () => {
      draining = true;
      options.replicas?.drain();
    },
    endRequests: () => endAll("The server is shutting down, and ended this request. Nothing was changed: try again.", "end"),
    answerRequests: () =>
      endAll("The server is shutting down, and cannot wait for this request any longer. It may be carried out all the same.", "answer"),
  };
}

async function* endingAfter(text: string, condition: Promise<void>): AsyncGenerator<string, void, undefined> {
  yield text;
  await condition;
}

function requestIdOf(ctx: Context): string {
  const given = ctx.get("x-request-id");
  return /^[\w.-]{1,128}$/.test(given) ? given : randomUUID();
}

function corsMiddleware(origins: readonly string[]): Koa.Middleware {
  return cors({
    origin: (ctx) => (origins.includes("*") ? "*" : origins.includes(ctx.get("origin")) ? ctx.get("origin") : ""),
    allowMethods: "GET,HEAD,PUT,PATCH,POST,DELETE",
    exposeHeaders: "X-Request-Id,X-RateLimit-Reset,Retry-After,Lodestone-Read,ETag",
    maxAge: 600,
  });
}
