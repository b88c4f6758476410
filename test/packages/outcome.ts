/** Runs the output of a toolchain, and compares the program's results with the oracle. */

import { spawnSync } from "node:child_process";
import { expect } from "vitest";
import { LIMIT_MS } from "../support/patience.ts";
import { expectedAnswers, type ProgramResult } from "./program.ts";

export interface Expected {
  /**
   * "workers": both kinds of index answer. Otherwise the parallel one fails with UNAVAILABLE and a matching
   * message.
   */
  readonly parallel: "workers" | RegExp;
  readonly build?: "scalar" | "simd";
}

export function expectAnswers(result: ProgramResult, { parallel, build }: Expected = { parallel: "workers" }): void {
  expect(result.answers).toEqual(expectedAnswers());
  if (build !== undefined) expect(result.build).toBe(build);
  else expect(["relaxed", "simd"]).toContain(result.build);
  if (parallel === "workers") expect(result.parallel).toEqual({ build: result.build, answers: expectedAnswers() });
  else expect(result.parallel).toMatchObject({ unavailable: expect.stringMatching(parallel) });
}

/** Runs a command and reads the line that CONSOLE_MAIN prints. */
export function runProgram(
  folder: string,
  command: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): ProgramResult {
  const output = runTool(folder, command, args, environment);
  const line = output.split("\n").find((text) => text.startsWith("OUTCOME "));
  if (line === undefined) throw new Error(`No outcome in: ${output}`);
  return JSON.parse(line.slice("OUTCOME ".length)) as ProgramResult;
}

/**
 * @returns its output.
 * @throws with its output when it fails or takes more than ten minutes.
 */
export function runTool(folder: string, command: string, args: readonly string[], environment: Record<string, string> = {}): string {
  const { status, signal, stdout, stderr, error } = spawnSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    env: toolEnvironment(environment),
    timeout: LIMIT_MS,
    maxBuffer: 64 * 2 ** 20,
  });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error ?? signal ?? `exit code ${status}`}\n${stdout}\n${stderr}`);
  return stdout;
}

/** Tools send telemetry unless told not to. */
const QUIET: Record<string, string> = {
  ASTRO_TELEMETRY_DISABLED: "1",
  NEXT_TELEMETRY_DISABLED: "1",
  WRANGLER_SEND_METRICS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  DO_NOT_TRACK: "1",
  FORCE_COLOR: "0",
};

/** The environment of a tool, without what vitest set for itself. */
export function toolEnvironment(more: Record<string, string>): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => name !== "NODE_ENV" && name !== "NODE_OPTIONS" && !name.startsWith("VITEST"));
  return { ...Object.fromEntries(own), ...QUIET, ...more };
}
