/**
 * Compiles the JSON Schemas of the endpoints (the same ones that /openapi.json publishes). Turns the first
 * error into a sentence that names the field, what was expected and what was got: `size: expected an integer
 * from 1 to 1,000, got 0`.
 */
import { Ajv2020, type ErrorObject, type FuncKeywordDefinition, type ValidateFunction } from "ajv/dist/2020.js";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { inWords, quoted } from "../errors/value-in-words.ts";
import { expectedFloat32, firstNotFloat32 } from "../search/query-vector.ts";

/** A JSON Schema of draft 2020-12, as OpenAPI 3.1 takes it. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/**
 * Throws LodestoneError INVALID when the value does not fit. In place: takes the nulls of optional members out of it first, and
 * makes the vectors of queries typed arrays.
 */
export type Validate = (value: unknown) => void;

interface Fault {
  /** `operations[3].insert.table`; "" for the body itself. */
  readonly path: string;
  readonly message: string;
  /** The first two steps of the path, for callers that report errors by index. */
  readonly steps: readonly string[];
  /** True when the message is whole as it is: clients compare it. */
  readonly isWhole: boolean;
}

export class SchemaFaultError extends LodestoneError {
  readonly steps: readonly string[];

  constructor(fault: Fault) {
    super("INVALID", fault.isWhole ? fault.message : `${fault.path === "" ? "body" : fault.path}: ${fault.message}`);
    this.steps = fault.steps;
  }
}

/**
 * What the schemas say beside JSON Schema. `x-beyond-maximum`: the retired service's text for a number above the maximum.
 * `x-not-offered`: sentences for values and members that the retired service took. `x-vector`: see below.
 */
const EXTENSIONS = ["x-beyond-maximum", "x-not-offered"];

const ajv = new Ajv2020({
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  strictTypes: false,
  verbose: true,
  allErrors: false,
  // The schemas are ours: test/http/fuzz.test.ts validates them, so that not every start compiles the draft's own
  // schema for that, which would be most of the work.
  meta: false,
  validateSchema: false,
});

ajv.addVocabulary(EXTENSIONS);

/**
 * A list of numbers that becomes a Float32Array. Its elements, of which there may be thousands, are looked at here alone: neither
 * by the check of the body (json-body.ts) nor by the search.
 */
export const VECTOR: JsonSchema = { type: "array", items: { type: "number" }, "x-vector": true };

const readVector: NonNullable<FuncKeywordDefinition["validate"]> = (_schema: unknown, list: unknown[], _parent, place) => {
  const vector = new Float32Array(list.length);
  const index = firstNotFloat32(list, vector);
  if (index < 0) {
    place!.parentData[place!.parentDataProperty] = vector;
    return true;
  }
  readVector.errors = [{ keyword: "x-vector", params: { index, message: expectedFloat32(list[index]) } }];
  return false;
};

ajv.addKeyword({ keyword: "x-vector", type: "array", schemaType: "boolean", modifying: true, validate: readVector });

const isVector = (schema: unknown): boolean => (schema as JsonSchema | null)?.["x-vector"] === true;

/** Where vectors are in a body: what fits the schema holds nothing there but numbers. */
export type VectorPlaces = true | { readonly [member: string]: VectorPlaces };

/** undefined: the schema has no vectors. */
export function vectorPlaces(schema: JsonSchema): VectorPlaces | undefined {
  if (isVector(schema) || isVector(schema.items)) return true;
  const members = Object.entries((schema.properties as Record<string, JsonSchema> | undefined) ?? {});
  const places = members.flatMap(([name, member]) => {
    const place = vectorPlaces(member);
    return place === undefined ? [] : [[name, place] as const];
  });
  return places.length === 0 ? undefined : Object.fromEntries(places);
}

/** A copy for the validator, in which the keyword alone checks the elements of vectors. */
function withoutElements(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (_key, node) => {
    if (isVector(node)) delete node.items;
    return node;
  });
}

/** Compiles the schema with the first value that it is to check: no start needs all of them. */
export function compileSchema(schema: JsonSchema): Validate {
  let validate: ValidateFunction | undefined;
  let dropNulls: ReturnType<typeof nullDropper>;
  return (value) => {
    if (validate === undefined) {
      dropNulls = nullDropper(schema);
      validate = ajv.compile(vectorPlaces(schema) === undefined ? schema : withoutElements(schema));
    }
    dropNulls?.(value);
    if (validate(value)) return;
    const error = validate.errors?.[0] as ErrorObject;
    throw new SchemaFaultError(toFault(error));
  };
}

function toFault(error: ErrorObject): Fault {
  const steps = error.instancePath
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const parameters = error.params as Record<string, unknown>;
  // An error about a member is reported at the member, where the reader looks for it.
  const member = parameters.missingProperty ?? parameters.additionalProperty ?? parameters.propertyName;
  const all = typeof member === "string" ? [...steps, member] : steps;
  if (error.keyword === "x-vector")
    return { steps, path: pathOf([...steps, String(parameters.index)]), message: parameters.message as string, isWhole: false };
  const beyond = error.keyword === "maximum" ? (error.parentSchema as JsonSchema)["x-beyond-maximum"] : undefined;
  if (typeof beyond === "string") return { steps, path: pathOf(all), message: beyond, isWhole: true };
  return { steps, path: pathOf(all), message: messageOf(error), isWhole: false };
}

function pathOf(steps: readonly string[]): string {
  const path = steps.map((step) => (/^[0-9]+$/.test(step) ? `[${step}]` : `.${step}`)).join("");
  const text = path.replace(/^\./, "");
  return text.length > 200 ? `${text.slice(0, 200).toWellFormed()}…` : text;
}

function messageOf(error: ErrorObject): string {
  const schema = error.parentSchema as JsonSchema;
  switch (error.keyword) {
    case "required":
      return "is required";
    case "additionalProperties": {
      const notOffered = notOfferedIn(schema, error.params.additionalProperty);
      if (notOffered !== undefined) return notOffered;
      const known = Object.keys((schema.properties as object | undefined) ?? {});
      return known.length === 0 ? "is not known here" : `is not known here; expected ${listOf(known, "or")}`;
    }
    case "minProperties":
    case "maxProperties": {
      const known = Object.keys((schema.properties as object | undefined) ?? {});
      const names = Object.keys(error.data as object);
      return `expected an object with exactly one of ${listOf(known, "or")}, got ${names.length === 0 ? "none" : listOf(names.slice(0, 5), "and")}`;
    }
    case "enum": {
      return notOfferedIn(schema, error.data) ?? `expected ${expectation(schema)}, got ${inWords(error.data)}`;
    }
    case "maxItems":
      return `expected at most ${grouped(schema.maxItems)} elements, got ${grouped((error.data as unknown[]).length)}`;
    case "minItems":
      return `expected at least ${grouped(schema.minItems)} elements, got ${grouped((error.data as unknown[]).length)}`;
    default:
      return `expected ${expectation(schema)}, got ${inWords(error.data)}`;
  }
}

function notOfferedIn(schema: JsonSchema, asked: unknown): string | undefined {
  const sentences = schema["x-not-offered"] as Readonly<Record<string, string>> | undefined;
  return typeof asked === "string" && sentences !== undefined && Object.hasOwn(sentences, asked) ? sentences[asked] : undefined;
}

function expectation(schema: JsonSchema): string {
  if (Array.isArray(schema.enum)) return listOf(schema.enum.map(String), "or");
  const alternatives = (schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined;
  if (alternatives !== undefined) return alternatives.map(expectation).join(" or ");
  const types = [schema.type].flat() as string[];
  const parts = types.map(
    (type) => `${article(type)} ${type === "object" ? "object" : type}${type === "null" ? "" : boundsOf(schema, type)}`,
  );
  return parts.join(" or ").replace("a null", "null");
}

function boundsOf(schema: JsonSchema, type: string): string {
  if (type === "integer" || type === "number") {
    const { minimum, maximum } = schema;
    if (minimum !== undefined && maximum !== undefined) return ` from ${grouped(minimum)} to ${grouped(maximum)}`;
    if (minimum !== undefined) return ` of at least ${grouped(minimum)}`;
    if (maximum !== undefined) return ` of at most ${grouped(maximum)}`;
  }
  if (type === "string") {
    const { minLength, maxLength, pattern } = schema;
    if (pattern !== undefined) return ` that matches ${pattern}`;
    if (minLength !== undefined && maxLength !== undefined) return ` of ${grouped(minLength)} to ${grouped(maxLength)} characters`;
    if (minLength !== undefined) return " that is not empty";
    if (maxLength !== undefined) return ` of at most ${grouped(maxLength)} characters`;
  }
  return "";
}

const article = (noun: string): string => (/^[aeiou]/.test(noun) ? "an" : "a");

const grouped = (value: unknown): string => (typeof value === "number" ? value.toLocaleString("en-US") : String(value));

function listOf(names: readonly string[], conjunction: string): string {
  const shown = names.map(quoted);
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} ${conjunction} ${shown.at(-1)}`;
}

// `null` for an optional member of a body means that the member is absent: clients in other languages send it
// for what was not given (Python's None). The rule is derived from the schema. So it holds wherever a schema
// names members, and nowhere else: values of records, filters and parameters keep their nulls.

/** Removes nulls from the value, in place. */
type DropNulls = (value: unknown) => void;

/** undefined: nothing that the schema describes is optional. */
function nullDropper(schema: JsonSchema): DropNulls | undefined {
  const alternatives = schema.anyOf as JsonSchema[] | undefined;
  if (alternatives !== undefined) return inTurn(alternatives.map(nullDropper));
  if (schema.items !== undefined) return ofItems(nullDropper(schema.items as JsonSchema));
  if (schema.properties !== undefined) return ofMembers(schema);
  return undefined;
}

function ofMembers(schema: JsonSchema): DropNulls {
  const required = new Set((schema.required as string[] | undefined) ?? []);
  const members = Object.entries(schema.properties as Record<string, JsonSchema>).map(([name, member]) => ({
    name,
    isOptional: !required.has(name),
    drop: nullDropper(member),
  }));
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return;
    const object = value as Record<string, unknown>;
    for (const { name, isOptional, drop } of members) {
      if (!Object.hasOwn(object, name)) continue;
      if (object[name] === null && isOptional) delete object[name];
      else drop?.(object[name]);
    }
  };
}

function ofItems(drop: DropNulls | undefined): DropNulls | undefined {
  if (drop === undefined) return undefined;
  return (value) => {
    if (Array.isArray(value)) for (const item of value) drop(item);
  };
}

function inTurn(droppers: readonly (DropNulls | undefined)[]): DropNulls | undefined {
  const some = droppers.filter((drop) => drop !== undefined);
  if (some.length === 0) return undefined;
  return (value) => {
    for (const drop of some) drop(value);
  };
}
