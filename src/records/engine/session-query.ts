/** Runs one statement on a session of either engine. */
import type { ClientBase, QueryConfig, QueryResult } from "pg";
import type { QueryOptions } from "./engine.ts";
import { decodeTexts, hasLongText, withEncodedTexts } from "./long-texts.ts";
import { PARSED_TYPES, RAW_TYPES } from "./pg-types.ts";
import { longRowsOf } from "./protocol-connection.ts";
import type { SessionReadings } from "./reading.ts";

/** Rejects with the driver's error, or with the refusal to read any more of the result. */
export async function querySession<Row extends object>(
  client: ClientBase,
  readings: SessionReadings,
  text: string,
  values: readonly unknown[] | undefined,
  { raw = false, rowMode, budget, isCommitted = false }: QueryOptions,
): Promise<QueryResult<Row>> {
  const bound = values !== undefined && hasLongText(values) ? await withEncodedTexts(values) : values;
  const config = {
    text,
    ...(bound === undefined ? {} : { values: bound as unknown[] }),
    types: raw ? RAW_TYPES : PARSED_TYPES,
    ...(rowMode === "array" ? { rowMode } : {}),
  } as QueryConfig;
  const longRows = longRowsOf(client);
  const result = await readings.run(budget, isCommitted, () => client.query<Row>(config));
  if (longRowsOf(client) > longRows) await decodeTexts(result.rows);
  return result;
}
