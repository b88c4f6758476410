#!/usr/bin/env node
/**
 * The program: runs the command line of this process. Everything else of the command line can be imported
 * without running anything.
 */
import { CommanderError } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { ApiError } from "./api-client.ts";
import { SourceError } from "./import/source.ts";
import { buildProgram } from "./program.ts";

/** Errors that a person can act on are shown as a sentence; bugs are shown with their stack. */
function describeFailure(error: unknown): string {
  if (error instanceof ApiError) return `The server answered ${error.status}: ${error.message}`;
  if (error instanceof LodestoneError || error instanceof SourceError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

try {
  await buildProgram().parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) console.error(`lodestone: ${describeFailure(error)}`);
  // It knows of the embedded database, which most commands do not import.
  const { endProcess } = await import("./process-end.ts");
  await endProcess(1);
}
