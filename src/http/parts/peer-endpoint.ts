/**
 * The endpoint that the servers of other parts call. It is not part of the API: API keys do not open it, only the
 * secret that the servers share does. /openapi.json does not list it, and a server without parts does not have it.
 * Bodies are bounded, and are read only after the secret was checked.
 */

import { createHash, timingSafeEqual } from "node:crypto";
import type { Context, Middleware } from "koa";
import type { AnswerBudget } from "../../budget/memory-budget.ts";
import { MAX_DIMENSION } from "../../dimension.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { LocalPart } from "../../search/parts/local-part.ts";
import { type CallHeader, decodeCall, encodeResults, PROTOCOL, split } from "../../search/parts/part-messages.ts";
import { PEER_SCHEME, PEER_SEARCH_PATH, PEER_STATUS_PATH } from "../../search/parts/peer-client.ts";
import { MAX_QUERY_VECTORS } from "../../search/request-check.ts";
import { Admission } from "../admission/admission.ts";
import { readBytes } from "../body/body-reader.ts";
import { parseJsonBody } from "../body/json-body.ts";
import { connectionOf } from "../connections/client-connection.ts";
import type { HttpLimits } from "../http-limits.ts";
import { HttpError } from "../status.ts";
import { compileSchema } from "../validation.ts";

export interface PartAccess {
  readonly local: LocalPart;
  readonly secret: string;
}

/** One user's request, or several small ones, with their filters as JSON. */
const MAX_CALL_BYTES = 64 * 2 ** 20;
const MAX_SEARCHES = 64;
const MAX_LIMIT_MS = 60_000;

const NAME = { type: "string", maxLength: 1_000 } as const;
const COUNT = { type: "integer", minimum: 0 } as const;

const checkHeader = compileSchema({
  type: "object",
  required: ["protocol", "limitMs", "part", "searches"],
  properties: {
    protocol: { const: PROTOCOL },
    limitMs: { type: "number", exclusiveMinimum: 0, maximum: MAX_LIMIT_MS },
    part: { type: "object", required: ["index", "of"], properties: { index: COUNT, of: COUNT } },
    snapshot: {
      type: "object",
      required: ["id", "position"],
      properties: { id: NAME, position: { type: "string", maxLength: 1_000_000 } },
    },
    searches: {
      type: "array",
      minItems: 1,
      maxItems: MAX_SEARCHES,
      items: {
        type: "object",
        required: ["ref", "table", "request", "count", "dimension", "maxBytes", "caller"],
        properties: {
          ref: { type: "object", required: ["database", "branch"], properties: { database: NAME, branch: NAME } },
          table: NAME,
          request: { type: "object" },
          count: { type: "integer", minimum: 1, maximum: MAX_QUERY_VECTORS },
          dimension: { type: "integer", minimum: 1, maximum: MAX_DIMENSION },
          maxBytes: COUNT,
          caller: NAME,
        },
      },
    },
  },
});

export interface PeerEndpointOptions {
  readonly access: PartAccess;
  readonly limits: HttpLimits;
  isDraining(): boolean;
  openBudget(ctx: Context, caller: string): AnswerBudget;
}

export function peerEndpoint({ access, limits, isDraining, openBudget }: PeerEndpointOptions): Middleware {
  const { local } = access;
  const expected = digestOf(access.secret);
  // Separate from the users': servers that wait for each other must not take each other's last place.
  const admission = new Admission(limits);
  const bodyLimits = { ...limits, bodyBytes: MAX_CALL_BYTES };

  function authenticate(ctx: Context): void {
    const given = new RegExp(`^${PEER_SCHEME} +(\\S+)$`).exec(ctx.get("authorization"))?.[1] ?? "";
    if (!timingSafeEqual(digestOf(given), expected))
      throw new LodestoneError("UNAUTHORIZED", "Only servers of the same parts may ask this.");
  }

  async function search(ctx: Context): Promise<Buffer> {
    const connection = connectionOf(ctx.req.socket);
    const place = admission.enter(`address ${connection.network}`, 0, connection);
    try {
      const { text, numbers } = split(await readBytes(ctx.req, bodyLimits, place.arrived));
      const header: unknown = parseJsonBody(text, limits.jsonDepth);
      checkHeader(header);
      const call = header as CallHeader;
      const caller = call.searches[0]!.caller;
      const options = { signal: connection.gone, limitMs: call.limitMs };
      return encodeResults(await local.search(decodeCall(call, numbers), options, openBudget(ctx, caller)));
    } finally {
      place.leave();
    }
  }

  return async (ctx, next) => {
    const method = { [PEER_SEARCH_PATH]: "POST", [PEER_STATUS_PATH]: "GET" }[ctx.path];
    if (method === undefined) return next();
    ctx.state.endpoint = { name: "askPart", path: ctx.path };
    authenticate(ctx);
    if (ctx.method !== method)
      throw new HttpError("METHOD_NOT_ALLOWED", `${ctx.method} is not possible here; expected ${method}.`, { Allow: method });
    if (isDraining()) throw new LodestoneError("UNAVAILABLE", "The server is shutting down.");
    if (method === "GET") {
      ctx.body = local.status;
      return;
    }
    const answer = await search(ctx);
    ctx.type = "application/octet-stream";
    ctx.body = answer;
  };
}

const digestOf = (secret: string): Buffer => createHash("sha256").update(secret, "utf8").digest();
