/**
 * Columns of records from a binary COPY (engine/copy-out.ts), for reading whole tables.
 */
import type { CopiedRows } from "../engine/copy-out.ts";
import { readProtocolVector } from "../vector-text.ts";
import type { FeedColumn } from "./feed-types.ts";
import { microsecondsOf } from "./stored-timestamp.ts";

type Kind = FeedColumn["kind"];

/** A column's value as SQL, in the type that `toCopiedColumn` decodes. */
export function copiedValueSql(kind: Kind, quoted: string): string {
  switch (kind) {
    case "text":
    case "json":
      return `${quoted}::text`;
    case "multiple":
      return `array_to_json(${quoted})::text`;
    case "int":
      return `${quoted}::int8`;
    case "float":
      return `${quoted}::float8`;
    default:
      return quoted;
  }
}

/** A column that is never null, as text. */
export function copiedTexts(rows: CopiedRows, column: number): string[] {
  return rows.column(column).map((place) => textAt(rows, place));
}

/** @param dimension  of a vector; otherwise not used. */
export function toCopiedColumn(rows: CopiedRows, column: number, kind: Kind, dimension: number): FeedColumn {
  const { bytes, view } = rows;
  const places = rows.column(column);
  const mapped = <Value>(read: (place: number) => Value): (Value | null)[] =>
    places.map((place) => (rows.lengthAt(place) < 0 ? null : read(place)));
  switch (kind) {
    case "text":
    case "json":
      return { kind, values: mapped((place) => textAt(rows, place)) };
    case "int":
      return { kind, values: mapped((place) => view.getBigInt64(place)) };
    case "datetime":
      return { kind, values: mapped((place) => microsecondsOf(view.getBigInt64(place))) };
    case "float":
      return { kind, values: mapped((place) => view.getFloat64(place)) };
    case "bool":
      return { kind, values: mapped((place) => bytes[place] === 1) };
    case "multiple":
      return { kind, values: mapped((place) => toList(textAt(rows, place))) };
    case "vector":
      return toVectors(rows, places, dimension);
  }
}

/** Of an array of texts as JSON. SQL can nest arrays; to the API `multiple` is one flat list. */
export function toList(json: string): (string | null)[] {
  return (JSON.parse(json) as (string | null)[]).flat(6);
}

function textAt(rows: CopiedRows, place: number): string {
  return rows.bytes.toString("utf8", place, place + rows.lengthAt(place));
}

function toVectors(rows: CopiedRows, places: readonly number[], dimension: number): FeedColumn {
  const present = Uint32Array.from(places.keys()).filter((row) => rows.lengthAt(places[row]!) >= 0);
  const elements = new Float32Array(present.length * dimension);
  present.forEach((row, n) => {
    const place = places[row]!;
    readProtocolVector(rows.view, place, rows.lengthAt(place), elements.subarray(n * dimension, (n + 1) * dimension));
  });
  return { kind: "vector", dimension, rows: present, elements };
}
