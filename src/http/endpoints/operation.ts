/** For those who run the server: health, metrics, and the description of all endpoints. */

import { SCOPES } from "../../key-scopes.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import type { Caller } from "../keys/access-keys.ts";
import { describeApi } from "../openapi.ts";
import type { Services } from "./services.ts";

export function operationEndpoints(services: Services, others: readonly Endpoint[]): Endpoint[] {
  const { records, search, metrics, version, commit } = services;
  const tag = "Operation";
  let description: object | undefined;
  const endpoints: Endpoint[] = [
    endpoint({
      method: "GET",
      path: "/livez",
      name: "getLiveness",
      summary: "Whether the process is running and answers",
      tag,
      access: "public",
      always: true,
      responses: { 200: { description: "Alive.", schema: { type: "object" } } },
      handle: async () => ({ status: 200, body: { status: "alive", version, ...(commit !== undefined && { commit }) } }),
    }),
    endpoint({
      method: "GET",
      path: "/readyz",
      name: "getReadiness",
      summary: "Whether the search store has caught up with the records",
      tag,
      access: "public",
      always: true,
      responses: {
        200: { description: "Ready.", schema: { type: "object" } },
        503: { description: "Not ready, too far behind the records, or shutting down.", schema: { type: "object" } },
      },
      async handle() {
        const { ready, pending, lagMs, fault, isSearchDatabaseAway, rows, parts } = search.status();
        if (services.isDraining()) return { status: 503, body: { status: "shutting down" } };
        const { outage, writeRefusal } = records.health();
        if (outage !== null) return { status: 503, body: { status: "database away", message: outage } };
        // Names of branches are not public, so only their number is given.
        if (!ready) return { status: 503, body: { status: "starting", pending: pending.length } };
        if (lagMs <= services.maxLagMs) {
          // A part that nobody holds is missing for all servers alike: taking them all off a balancer's list
          // would stop everything else, too.
          const { missing, index, of } = parts ?? {};
          // The same for keys that cannot be read again, the server works with those that it has; and a balancer that took a
          // server off its list because it cannot write would stop the reads, too.
          const keyFile = services.keys?.fault;
          const state = writeRefusal === null ? { status: "ready" } : { status: "read only", message: writeRefusal };
          const part = parts && { part: { index, of, missing } };
          return { status: 200, body: { ...state, lagMs, rows, ...part, ...(keyFile && { keyFile }) } };
        }
        // The fault itself may name a branch.
        const reading = isSearchDatabaseAway === true ? "the search database cannot be reached" : "the records cannot be read";
        const why = fault === undefined ? "changes wait to be applied" : reading;
        const message = `Searches are ${(lagMs / 1000).toFixed(1)} s behind the records, more than the limit of ${services.maxLagMs / 1000} s: ${why}.`;
        return { status: 503, body: { status: "behind", lagMs, message } };
      },
    }),
    endpoint({
      method: "GET",
      path: "/access",
      name: "getAccess",
      summary: "What the given key may do",
      tag,
      access: "read",
      responses: {
        200: {
          description: "The key's scope and databases, and the server's version.",
          schema: {
            type: "object",
            properties: {
              scope: { enum: SCOPES, description: "Each scope includes those before it." },
              databases: { type: ["array", "null"], items: { type: "string" }, description: "null: all." },
              keyName: { type: ["string", "null"], description: "null: the server requires no key, and everyone may do everything." },
              version: { type: "string" },
            },
            required: ["scope", "databases", "keyName", "version"],
          },
        },
      },
      async handle({ caller }) {
        const { name, scope, databases } = caller as Caller;
        return { status: 200, body: { scope, databases: databases ?? null, keyName: services.asksForKeys ? name : null, version } };
      },
    }),
    endpoint({
      method: "GET",
      path: "/metrics",
      name: "getMetrics",
      summary: "Metrics in Prometheus' text format",
      tag,
      access: "read",
      always: true,
      responses: { 200: { description: "The metrics." } },
      handle: async () => ({ status: 200, body: await metrics.render(), contentType: metrics.contentType }),
    }),
    endpoint({
      method: "GET",
      path: "/openapi.json",
      name: "getApiDescription",
      summary: "This description",
      tag,
      access: "public",
      responses: { 200: { description: "OpenAPI 3.1.", schema: { type: "object" } } },
      async handle() {
        description ??= describeApi([...others, ...endpoints], version);
        return { status: 200, body: description };
      },
    }),
  ];
  return endpoints;
}
