/**
 * `null` for an optional member of a body means that the member is absent: clients in other languages send it
 * for what was not given (Python's None). The rule is derived from the schema. So it holds wherever a schema
 * names members, and nowhere else: values of records, filters and parameters keep their nulls.
 */
import type { JsonSchema } from "./validation.ts";

/** Removes nulls from the value, in place. */
export type DropNulls = (value: unknown) => void;

/** undefined: nothing that the schema describes is optional. */
export function nullDropper(schema: JsonSchema): DropNulls | undefined {
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
