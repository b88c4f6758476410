/**
 * `lodestone …` in this process, for commands of which only what they say and do is tested: a process for each would take
 * longer than most of them. Signals, exit codes and memory need a process (`runCommand` of `server.ts`).
 */
import { format } from "node:util";
import { CommanderError } from "commander";
import { vi } from "vitest";
import { buildProgram } from "../../src/cli/program.ts";
import type { CommandResult } from "./server.ts";

export async function runHere(args: readonly string[]): Promise<CommandResult> {
  const said = { stdout: "", stderr: "" };
  const to =
    (stream: keyof typeof said) =>
    (text: unknown): boolean => {
      said[stream] += String(text);
      return true;
    };
  const program = buildProgram();
  for (const command of [program, ...program.commands])
    command.exitOverride().configureOutput({ writeOut: to("stdout"), writeErr: to("stderr") });
  const spies = [
    vi.spyOn(console, "log").mockImplementation((...values) => void to("stdout")(`${format(...values)}\n`)),
    vi.spyOn(console, "error").mockImplementation((...values) => void to("stderr")(`${format(...values)}\n`)),
    vi.spyOn(process.stdout, "write").mockImplementation(to("stdout")),
    vi.spyOn(process.stderr, "write").mockImplementation(to("stderr")),
  ];
  let code = 0;
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    // Commander has said what is wrong, or shown its help.
    code = error instanceof CommanderError ? error.exitCode : 1;
    if (!(error instanceof CommanderError)) to("stderr")(`lodestone: ${(error as Error).message}\n`);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return { code, ...said };
}
