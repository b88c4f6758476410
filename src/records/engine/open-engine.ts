/** Opens the engine that the options name. Implemented by the engine's own files beside this one. */
import type { Engine } from "./engine.ts";

export type EngineOptions =
  | { readonly dataDir: string; readonly databaseUrl?: undefined; readonly statementTimeoutMs?: number }
  | { readonly databaseUrl: string; readonly dataDir?: undefined; readonly statementTimeoutMs?: number };

export type OpenEngine = (options: EngineOptions) => Promise<Engine>;
