/**
 * /openapi.json: OpenAPI 3.1 from the list of endpoints. Schemas that have a name (NAMED_SCHEMAS, recognised by
 * identity) become components.
 */

import { COLUMN_NAME_PATTERN, NAME_PATTERN } from "../records/identifiers.ts";
import type { Endpoint, QueryParameter } from "./endpoint.ts";
import { ERROR, NAMED_SCHEMAS } from "./schemas.ts";
import { API_ERRORS } from "./status.ts";
import type { JsonSchema } from "./validation.ts";

const NAMES = new Map<unknown, string>(Object.entries(NAMED_SCHEMAS).map(([name, schema]) => [schema, name]));

const PATH_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  db: { type: "string", pattern: NAME_PATTERN },
  branch: { type: "string", pattern: NAME_PATTERN },
  table: { type: "string", pattern: NAME_PATTERN },
  column: { type: "string", pattern: COLUMN_NAME_PATTERN },
  id: { type: "string", minLength: 1 },
  other: { type: "string", pattern: NAME_PATTERN },
  workspace: { type: "string", pattern: NAME_PATTERN },
  job: { type: "string", pattern: NAME_PATTERN },
  key: { type: "string", pattern: NAME_PATTERN },
};

const QUERY_SCHEMAS: Readonly<Record<QueryParameter["kind"], JsonSchema>> = {
  columns: { type: "array", items: { type: "string" } },
  boolean: { type: "boolean" },
  integer: { type: "integer", minimum: 0, maximum: 0x7fffffff },
  name: { type: "string", pattern: NAME_PATTERN },
  text: { type: "string" },
};

/** Errors that any endpoint may answer with, by status; those particular to one endpoint are declared with it. */
const ERROR_DESCRIPTIONS = new Map<number, string>();
for (const { status, meaning } of Object.values(API_ERRORS)) {
  const known = ERROR_DESCRIPTIONS.get(status);
  // A method that is not there is no operation's answer.
  if (status !== API_ERRORS.METHOD_NOT_ALLOWED.status)
    ERROR_DESCRIPTIONS.set(status, known === undefined ? meaning : `${known} Or: ${meaning}`);
}

export function describeApi(endpoints: readonly Endpoint[], version: string): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const endpoint of endpoints) {
    paths[endpoint.path] ??= {};
    (paths[endpoint.path] as Record<string, unknown>)[endpoint.method.toLowerCase()] = describeEndpoint(endpoint);
  }
  const schemas = Object.fromEntries(Object.entries(NAMED_SCHEMAS).map(([name, schema]) => [name, withReferences(schema, true)]));
  return {
    openapi: "3.1.0",
    info: {
      title: "Lodestone",
      version,
      description: "Records, SQL over HTTP, transactions and exact vector search.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(endpoints.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { schemas, securitySchemes: { key: { type: "http", scheme: "bearer" } } },
  };
}

function describeEndpoint(endpoint: Endpoint): object {
  const pathParameters = [...endpoint.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: PATH_SCHEMAS[name],
  }));
  const queryParameters = (endpoint.query ?? []).map(({ name, kind, description }) => ({
    name,
    in: "query",
    description,
    schema: QUERY_SCHEMAS[kind],
    ...(kind === "columns" ? { style: "form", explode: false } : {}),
  }));
  return {
    operationId: endpoint.name,
    summary: endpoint.summary,
    tags: [endpoint.tag],
    security: endpoint.access === "public" ? [] : [{ key: [] }],
    "x-access": endpoint.access,
    parameters: [...pathParameters, ...queryParameters],
    ...(endpoint.body === undefined
      ? {}
      : { requestBody: { required: endpoint.body.required, content: json(withReferences(endpoint.body.schema)) } }),
    responses: describeResponses(endpoint),
  };
}

function describeResponses(endpoint: Endpoint): Record<string, unknown> {
  const responses: Record<string, unknown> = {};
  if (endpoint.access !== "public") {
    for (const [status, description] of ERROR_DESCRIPTIONS) {
      responses[status] = { description, content: json(withReferences(ERROR)) };
    }
  }
  for (const [status, { description, schema, contentType }] of Object.entries(endpoint.responses)) {
    if (contentType !== undefined) {
      responses[status] = { description, content: { [contentType]: { schema: { type: "string", format: "binary" } } } };
      continue;
    }
    const isError = Number(status) >= 400;
    const content = schema ?? (isError ? ERROR : undefined);
    // A malformed request as a whole is answered with a message also where single operations are reported by index.
    const schemas =
      schema !== undefined && isError && schema !== ERROR
        ? { anyOf: [withReferences(schema), withReferences(ERROR)] }
        : withReferences(content);
    responses[status] = content === undefined ? { description } : { description, content: json(schemas) };
  }
  return responses;
}

const json = (schema: unknown): object => ({ "application/json": { schema } });

/** A copy in which every named schema is a reference to its component. */
function withReferences(value: unknown, isDefinition = false): unknown {
  if (Array.isArray(value)) return value.map((element) => withReferences(element));
  if (typeof value !== "object" || value === null) return value;
  const name = NAMES.get(value);
  if (name !== undefined && !isDefinition) return { $ref: `#/components/schemas/${name}` };
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withReferences(member)]));
}
