/**
 * Values as PostgreSQL writes them as text, in answers, in dumps and in what psql's \copy makes.
 */
import { readArray } from "./array-literal.ts";

/**
 * `2020-01-02 03:04:05.678+00`, timestamptz under ISO DateStyle, as RFC 3339. A timestamp without a zone is in
 * UTC, and a date is its midnight there. undefined for everything else.
 */
export function toRfc3339(text: string): string | undefined {
  const match = /^(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d+)?)(?:([+-]\d\d)(?::(\d\d))?)?)?$/.exec(text);
  if (match === null) return undefined;
  const [, date, time = "00:00:00", hours, minutes = "00"] = match;
  return `${date}T${time}${hours === undefined ? "Z" : `${hours}:${minutes}`}`;
}

const asText = (text: string): string => text;

/** The elements of an array of one dimension, if none of them is NULL; otherwise undefined. */
export function parseTextArray(text: string): string[] | undefined {
  const elements = readArray(text, asText);
  return elements?.every((element) => typeof element === "string") ? elements : undefined;
}

/** The same without the elements that are NULL: a list of texts has none. */
export function parseItems(text: string): string[] | undefined {
  const items = readArray(text, asText)?.filter((element) => element !== null);
  return items?.every((item) => typeof item === "string") ? items : undefined;
}
