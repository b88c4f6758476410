/** Runs one statement on a session of either engine. */
import type { ClientBase, QueryConfig, QueryResult } from "pg";
import type { QueryOptions } from "./engine.ts";
import { PARSED_TYPES, RAW_TYPES } from "./pg-types.ts";
import type { SessionReadings } from "./reading.ts";

/** Rejects with the driver's error, or with the refusal to read any more of the result. */
export function querySession<Row extends object>(
  client: ClientBase,
  readings: SessionReadings,
  text: string,
  values: readonly unknown[] | undefined,
  { raw = false, rowMode, budget, isCommitted = false }: QueryOptions,
): Promise<QueryResult<Row>> {
  const config = {
    text,
    ...(values === undefined ? {} : { values: values as unknown[] }),
    types: raw ? RAW_TYPES : PARSED_TYPES,
    ...(rowMode === "array" ? { rowMode } : {}),
  } as QueryConfig;
  return readings.run(budget, isCommitted, () => client.query<Row>(config));
}
