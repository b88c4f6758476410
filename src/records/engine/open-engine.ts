/** Opens the engine that the options name. Only that one is imported: a start is quicker and smaller without the other. */

import type { FaultListeners } from "../../errors/fault-state.ts";
import type { Engine } from "./engine.ts";

interface CommonOptions extends FaultListeners {
  /**
   * Limit for a statement, or for a transaction's work. Default 60,000; 10,000 for users' SQL on the embedded
   * engine, where everybody else waits for it.
   */
  readonly statementTimeoutMs?: number;
  /** Gets words for each step of the opening when it begins: "opening the database". */
  readonly onStep?: ((words: string) => void) | undefined;
}

export interface EmbeddedOptions extends CommonOptions {
  /** Created if missing; one process at a time. */
  readonly dataDir: string;
  readonly databaseUrl?: undefined;
  /**
   * Maximum size of PostgreSQL's linear memory; default 1 GiB. Beyond it a statement fails, and nothing else.
   */
  readonly maxMemoryBytes?: number;
  /** Size of a file that holds room on the disk for a recovery. Default 0: none. */
  readonly reserveBytes?: number;
}

export interface ServerOptions extends CommonOptions {
  /** `postgres://user:password@host:port/database`, PostgreSQL 15 or later. */
  readonly databaseUrl: string;
  readonly dataDir?: undefined;
  /** Maximum number of connections, besides the one that listens. Default 10. */
  readonly poolSize?: number | undefined;
  /** Maximum number of connections as the roles of branches, for users' SQL. Default 8. */
  readonly sqlPoolSize?: number | undefined;
}

export type EngineOptions = EmbeddedOptions | ServerOptions;

const DEFAULT_STATEMENT_TIMEOUT_MS = 60_000;
const DEFAULT_EMBEDDED_SQL_TIMEOUT_MS = 10_000;

/**
 * @throws {LodestoneError} UNAVAILABLE (directory in use, server unreachable or too old), CORRUPT (a
 *   directory of another version).
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const statementTimeoutMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS;
  if (options.databaseUrl === undefined) {
    const { EmbeddedEngine } = await import("./embedded/embedded-engine.ts");
    const sqlTimeoutMs = options.statementTimeoutMs ?? DEFAULT_EMBEDDED_SQL_TIMEOUT_MS;
    return EmbeddedEngine.open({ ...options, statementTimeoutMs, sqlTimeoutMs });
  }
  options.onStep?.("connecting to the PostgreSQL server");
  const { ServerEngine } = await import("./server/server-engine.ts");
  return ServerEngine.open({ ...options, statementTimeoutMs });
}
