/** For those who run the server: health, metrics, and the description of all endpoints. */
import { type Endpoint, endpoint } from "../endpoint.ts";
import { describeApi } from "../openapi.ts";
import type { Services } from "./services.ts";

export function operationEndpoints(services: Services, others: readonly Endpoint[]): Endpoint[] {
  const { search, metrics, version } = services;
  const tag = "Operation";
  let description: object | undefined;
  const endpoints: Endpoint[] = [
    endpoint({
      method: "GET",
      path: "/livez",
      name: "getLiveness",
      summary: "The process is there and answers",
      tag,
      access: "public",
      always: true,
      responses: { 200: { description: "Alive.", schema: { type: "object" } } },
      handle: async () => ({ status: 200, body: { status: "alive", version } }),
    }),
    endpoint({
      method: "GET",
      path: "/readyz",
      name: "getReadiness",
      summary: "The search store has caught up with the records",
      tag,
      access: "public",
      always: true,
      responses: {
        200: { description: "Ready.", schema: { type: "object" } },
        503: { description: "Not ready, or shutting down.", schema: { type: "object" } },
      },
      async handle() {
        const { ready, pending, lagMs, rows } = search.status();
        if (services.isDraining()) return { status: 503, body: { status: "shutting down" } };
        // Names of branches are not for everybody, so only how many are pending is said.
        return ready
          ? { status: 200, body: { status: "ready", lagMs, rows } }
          : { status: 503, body: { status: "starting", pending: pending.length } };
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
