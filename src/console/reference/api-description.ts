/** The parts of the server's own OpenAPI document that the reference shows. */
import type { Access } from "../../key-scopes.ts";

export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: JsonSchema;
}

interface Content {
  readonly "application/json"?: { readonly schema?: JsonSchema };
}

interface DescribedOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly "x-access": Access;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

export interface ApiDescription {
  readonly info: { readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

export interface Operation extends DescribedOperation {
  readonly method: string;
  readonly path: string;
}

export const operationsOf = ({ paths }: ApiDescription): readonly Operation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ ...described, method: method.toUpperCase(), path })),
  );

export const bodySchema = ({ requestBody }: Operation): JsonSchema | undefined => requestBody?.content["application/json"]?.schema;

/** "Filter" of "#/components/schemas/Filter". */
export const nameOfReference = (reference: string): string => reference.split("/").at(-1) ?? reference;

export function resolve(schema: JsonSchema, api: ApiDescription): JsonSchema {
  return schema.$ref === undefined ? schema : (api.components.schemas[nameOfReference(schema.$ref)] ?? {});
}

/** "string", "list of Column", "strong or eventual". */
export function typeInWords(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return nameOfReference(schema.$ref);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return choices.map(typeInWords).join(" or ");
  if (schema.type === "array") return schema.items === undefined ? "list" : `list of ${many(typeInWords(schema.items))}`;
  if (schema.type === undefined) return "anything";
  return typeof schema.type === "string" ? schema.type : schema.type.join(" or ");
}

/** "strings", "lists of numbers". */
const many = (types: string): string => types.replace(/\b(string|number|integer|boolean|object|list)\b/g, "$1s");

/** The bounds of a schema's values, in words. */
export function boundsInWords({ minimum, maximum, minItems, maxItems, pattern, format }: JsonSchema): string {
  const range = (least: number | undefined, most: number | undefined, unit: string): readonly string[] => {
    if (least === undefined && most === undefined) return [];
    if (most === undefined) return [`at least ${least}${unit}`];
    return [least === undefined ? `at most ${most.toLocaleString("en")}${unit}` : `${least} to ${most.toLocaleString("en")}${unit}`];
  };
  return [
    ...range(minimum, maximum, ""),
    ...range(minItems, maxItems, " elements"),
    ...(format === undefined ? [] : [format]),
    ...(pattern === undefined ? [] : [pattern]),
  ].join(", ");
}

/** Deeper levels are left empty, because schemas may contain themselves. */
const MOST_LEVELS = 4;

/** An example body: the required members, or, if there are none, all of the first level. */
export function exampleOf(schema: JsonSchema, api: ApiDescription, level = 0): unknown {
  const { type, properties, required = [], items, enum: values, anyOf, oneOf } = resolve(schema, api);
  if (values !== undefined) return values[0];
  const choice = anyOf?.[0] ?? oneOf?.[0];
  if (choice !== undefined) return exampleOf(choice, api, level);
  switch (typeof type === "string" ? type : type?.[0]) {
    case "array":
      return items === undefined || level >= MOST_LEVELS || level === 0 ? [] : [exampleOf(items, api, level + 1)].filter(isSomething);
    case "integer":
    case "number":
      return 0;
    case "boolean":
      return false;
    case "string":
      return "";
    default: {
      if (properties === undefined || level >= MOST_LEVELS) return {};
      return Object.fromEntries(
        Object.entries(properties)
          .filter(([name]) => required.includes(name))
          .map(([name, member]) => [name, exampleOf(member, api, level + 1)]),
      );
    }
  }
}

/** An empty object in a list says nothing about what belongs there. */
const isSomething = (value: unknown): boolean => typeof value !== "object" || value === null || Object.keys(value).length > 0;
