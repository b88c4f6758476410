/**
 * Finds a value in JSON text by a path, without parsing the rest; the same as PostgreSQL's `#>` over jsonb. The
 * text is valid JSON.
 */
import { endOfString, endOfValue } from "../text/json-scan.ts";

/** The text of the value at the path; undefined where there is none. */
export function jsonAt(text: string, path: readonly string[]): string | undefined {
  let start = skipSpace(text, 0);
  for (const step of path) {
    const first = text[start];
    let found = -1;
    if (first === "{") found = findMember(text, start, step);
    else if (first === "[") found = findItem(text, start, step);
    if (found === -1) return undefined;
    start = found;
  }
  return text.slice(start, endOfValue(text, start));
}

/** Where the value of the member begins, else -1. */
function findMember(text: string, object: number, name: string): number {
  let i = skipSpace(text, object + 1);
  while (text[i] === '"') {
    const end = endOfString(text, i) + 1;
    const raw = text.slice(i + 1, end - 1);
    const value = skipSpace(text, skipSpace(text, end) + 1);
    if (raw === name ? !raw.includes("\\") : raw.includes("\\") && (JSON.parse(`"${raw}"`) as string) === name) return value;
    i = skipSpace(text, endOfValue(text, value));
    if (text[i] === ",") i = skipSpace(text, i + 1);
  }
  return -1;
}

/** What strtol accepts, as `#>` does: an index, counted from the end when negative. */
const INDEX = /^[ \t\n\v\f\r]*([+-]?[0-9]+)$/;

function findItem(text: string, array: number, step: string): number {
  const index = INDEX.exec(step)?.[1];
  if (index === undefined) return -1;
  const wanted = Number(index);
  if (wanted < -(2 ** 31) || wanted > 2 ** 31 - 1) return -1;
  const starts: number[] = [];
  let i = skipSpace(text, array + 1);
  while (i < text.length && text[i] !== "]") {
    if (starts.length === wanted) return i;
    starts.push(i);
    i = skipSpace(text, endOfValue(text, i));
    if (text[i] === ",") i = skipSpace(text, i + 1);
  }
  return wanted < 0 ? (starts[starts.length + wanted] ?? -1) : -1;
}

function skipSpace(text: string, i: number): number {
  while (i < text.length && text.charCodeAt(i) <= 0x20) i++;
  return i;
}
