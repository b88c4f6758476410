import type { ParseArgsOptionsConfig, parseArgs } from "node:util";

export function readOptions<const Options extends ParseArgsOptionsConfig>(
  url: string,
  options: Options,
): ReturnType<typeof parseArgs<{ options: Options }>>["values"];
