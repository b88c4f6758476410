/** Runs one statement on a session of either engine. */

import type { ClientBase, CustomTypesConfig, QueryConfig, QueryResult } from "pg";
import pg from "pg";
import type { SliceOptions } from "../../threads/event-loop.ts";
import type { QueryOptions } from "./engine.ts";
import { decodeTexts, hasLongText, UndecodedText, withEncodedTexts } from "./long-texts.ts";
import { longRowsOf } from "./protocol-connection.ts";
import type { SessionReadings } from "./reading.ts";

/** What a session may be told besides the options of a caller. */
export interface SessionQueryOptions {
  /** Of the prepared statement that it is, or becomes. */
  readonly name?: string | undefined;
  /** For the encoding and decoding of long texts. Their signal ends only that; the statement itself is the engine's to end. */
  readonly slices?: SliceOptions | undefined;
}

/** Rejects with the driver's error, with the refusal to read any more of the result, or with the signal's reason. */
export async function querySession<Row extends object>(
  client: ClientBase,
  readings: SessionReadings,
  text: string,
  values: readonly unknown[] | undefined,
  options: QueryOptions,
  { name, slices }: SessionQueryOptions = {},
): Promise<QueryResult<Row>> {
  const bound = values !== undefined && hasLongText(values) ? await withEncodedTexts(values, slices) : values;
  const { result, isUndecoded } = await querySessionUndecoded<Row>(client, readings, text, bound, options, name);
  if (isUndecoded) await decodeTexts(result.rows, slices);
  return result;
}

export interface UndecodedResult<Row extends object> {
  readonly result: QueryResult<Row>;
  /** Long texts in it are to be decoded by `decodeTexts`. */
  readonly isUndecoded: boolean;
}

/** Only what needs the session: `values` are encoded before, and the result is decoded afterwards. */
export async function querySessionUndecoded<Row extends object>(
  client: ClientBase,
  readings: SessionReadings,
  text: string,
  values: readonly unknown[] | undefined,
  { raw = false, rowMode, budget, isCommitted = false }: QueryOptions,
  name: string | undefined,
): Promise<UndecodedResult<Row>> {
  const config = {
    text,
    ...(name === undefined ? {} : { name }),
    ...(values === undefined ? {} : { values: values as unknown[] }),
    types: raw ? RAW_TYPES : PARSED_TYPES,
    ...(rowMode === "array" ? { rowMode } : {}),
  } as QueryConfig;
  const longRows = longRowsOf(client);
  const result = await readings.run(budget, isCommitted, () => client.query<Row>(config));
  return { result, isUndecoded: longRowsOf(client) > longRows };
}

/**
 * What a caller gets for each PostgreSQL type, decided once for both engines. Sessions run with TimeZone UTC,
 * DateStyle ISO and extra_float_digits 1.
 *
 * | PostgreSQL                                   | JavaScript                                                           |
 * |----------------------------------------------|----------------------------------------------------------------------|
 * | bool                                         | boolean                                                              |
 * | int2, int4, oid, float4, float8              | number (NaN and infinities as such; float4 is its shortest decimal)  |
 * | int8                                         | bigint, always (`count(*)` too: cast to int4 where a number is wanted) |
 * | json, jsonb                                  | parsed                                                               |
 * | bytea                                        | Buffer                                                               |
 * | text[], varchar[]                            | (string or null)[]                                                   |
 * | int4[], float4[], float8[]                   | (number or null)[], one dimension                                    |
 * | int8[]                                       | (bigint or null)[]                                                   |
 * | numeric, timestamptz, date, xid8, pg_snapshot and all the rest | PostgreSQL's text, so that no digit is lost        |
 *
 * With `raw` every value is PostgreSQL's text. Parameters: a Buffer is sent in the type's binary format;
 * strings, numbers, bigints and booleans as text; an array as a PostgreSQL array literal; a plain object as
 * JSON (so a JSON *array* for a jsonb parameter must be stringified by the caller).
 */
const parseElements =
  <Element>(parse: (text: string) => Element) =>
  (text: string): (Element | null)[] =>
    text === "{}"
      ? []
      : text
          .slice(1, -1)
          .split(",")
          .map((element) => (element === "NULL" ? null : parse(element)));

const parseTextArray = pg.types.getTypeParser(1009 as 17); // the typings list no array types

const BY_OID: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [16, (text) => text === "t"],
  [17, pg.types.getTypeParser(17)],
  [20, BigInt],
  [21, Number],
  [23, Number],
  [26, Number],
  [114, JSON.parse],
  [700, Number],
  [701, Number],
  [1007, parseElements(Number)],
  [1009, parseTextArray],
  [1015, parseTextArray],
  [1016, parseElements(BigInt)],
  [1021, parseElements(Number)],
  [1022, parseElements(Number)],
  [3802, JSON.parse],
]);

const asItIs = (value: string | UndecodedText): string | UndecodedText => value;

/** The values of a long row are decoded, and parsed, when the result is complete (long-texts.ts). */
const getTypeParser = (oid: number): ((value: string | UndecodedText) => unknown) => {
  const parse = BY_OID.get(oid);
  if (parse === undefined) return asItIs;
  return (value) => (value instanceof UndecodedText ? value.parsedBy(parse) : parse(value));
};

const PARSED_TYPES: CustomTypesConfig = { getTypeParser: getTypeParser as CustomTypesConfig["getTypeParser"] };
const RAW_TYPES: CustomTypesConfig = { getTypeParser: (() => asItIs) as CustomTypesConfig["getTypeParser"] };
