/**
 * Path and query parameters: raw text to checked values. Path segments are decoded here, once, from the
 * undecoded path. So an encoded slash is part of a name (and then rejected or, in a record's id, accepted) and
 * never a separator.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";
import { COLUMN_NAME, NAME } from "../records/identifiers.ts";
import type { BranchRef } from "../records/schema.ts";
import type { QueryParameter, QueryValues } from "./endpoint.ts";

export interface PathValues {
  readonly path: Record<string, string>;
  readonly ref: BranchRef;
}

/** @param captures the raw segments, by the names in the endpoint's path. */
export function parsePath(names: readonly string[], captures: readonly (string | undefined)[]): PathValues {
  const path: Record<string, string> = {};
  let ref: BranchRef = { database: "", branch: "" };
  for (const [i, name] of names.entries()) {
    const value = decodeSegment(captures[i] ?? "");
    if (name === "dbBranch") ref = parseRef(value);
    else if (name === "id") path.id = checkId(value);
    else path[name] = checkName(value, name);
  }
  return { path, ref };
}

function decodeSegment(raw: string): string {
  let value: string;
  try {
    value = decodeURIComponent(raw);
  } catch {
    throw invalid(`The path segment ${quoted(raw)} is not valid percent-encoding of UTF-8.`);
  }
  if (value.includes("\u0000")) throw invalid(`The path segment ${quoted(raw)} contains the character NUL.`);
  return value;
}

function parseRef(segment: string): BranchRef {
  const parts = segment.split(":");
  if (parts.length !== 2) throw invalid(`The path needs {database}:{branch} in one segment, as in "demo:main"; got ${quoted(segment)}.`);
  return { database: checkName(parts[0] as string, "database"), branch: checkName(parts[1] as string, "branch") };
}

function checkName(value: string, what: string): string {
  const isColumn = what === "column";
  if ((isColumn ? COLUMN_NAME : NAME).test(value)) return value;
  const letters = isColumn ? "a-z A-Z 0-9 _ - ~ ." : "a-z A-Z 0-9 _ - ~";
  throw invalid(`${what}: a name has 1 to 255 characters of ${letters}; got ${quoted(value)}.`);
}

/** Any id may be asked for, since SQL may have written it; the record store decides which ids may be created. */
function checkId(value: string): string {
  if (value === "") throw invalid("id: a record's id cannot be empty.");
  return value;
}

/** @param querystring what stands behind the "?". Its length is bounded by that of the headers. */
export function parseQuery(specs: readonly QueryParameter[], querystring: string): QueryValues {
  const values: Record<string, unknown> = {};
  if (querystring === "") return values;
  const parameters = new URLSearchParams(querystring);
  for (const name of new Set(parameters.keys())) {
    const raw = parameters.getAll(name);
    const spec = specs.find((candidate) => candidate.name === name);
    if (spec === undefined) {
      const known = specs.map((candidate) => `"${candidate.name}"`).join(", ");
      throw invalid(`The query parameter ${quoted(name)} is not known here; ${known === "" ? "none are" : `expected ${known}`}.`);
    }
    values[name] = spec.kind === "columns" ? parseColumns(raw) : parseSingle(spec, raw);
  }
  return values;
}

/** `columns=a,b`, `columns=a&columns=b`, and what the SDK sends for a list: joined by commas. */
function parseColumns(texts: readonly string[]): string[] {
  const columns = texts.flatMap((text) => text.split(",")).map((column) => column.trim());
  for (const column of columns) {
    if (column === "") throw invalid('columns: expected names separated by commas, or "*"; got an empty name.');
    if (!column.isWellFormed() || column.includes("\u0000")) throw invalid(`columns: ${quoted(column)} is not a name.`);
  }
  return columns;
}

function parseSingle(spec: QueryParameter, [raw = "", ...more]: readonly string[]): unknown {
  if (more.length > 0) throw invalid(`${spec.name}: expected one value, got ${more.length + 1}.`);
  switch (spec.kind) {
    case "boolean":
      // True and False are what Python writes.
      if (!/^(?:true|false|True|False)$/.test(raw)) throw invalid(`${spec.name}: expected true or false, got ${quoted(raw)}.`);
      return raw.toLowerCase() === "true";
    case "integer":
      if (!/^(0|[1-9][0-9]{0,9})$/.test(raw) || Number(raw) > 0x7fffffff) {
        throw invalid(`${spec.name}: expected an integer from 0 to 2,147,483,647, got ${quoted(raw)}.`);
      }
      return Number(raw);
    case "name":
      return checkName(raw, spec.name);
    default:
      return raw;
  }
}

const invalid = (message: string): LodestoneError => new LodestoneError("INVALID", message);
