/** Where the pinned tools are: test/packages/node_modules, installed by `npm run test:packages`. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe } from "vitest";

const MODULES = fileURLToPath(new URL("./node_modules/", import.meta.url));

export const tool = (path: string): string => MODULES + path;

/** Binaries of runtimes are packages for this platform only. */
const RUNTIMES = {
  "node 20.19": tool("node-20.19/bin/node"),
  "node 22": tool("node-22/bin/node"),
  "node 24": tool("node-24/bin/node"),
  bun: tool("@oven/bun-linux-x64/bin/bun"),
  deno: tool("@deno/linux-x64-glibc/deno"),
} as const;

export type Runtime = keyof typeof RUNTIMES;

/** Like describeWith of test/support, for a runtime. */
export function describeRuntime(runtime: Runtime, name: string, body: (path: string) => void): void {
  const path = RUNTIMES[runtime];
  if (existsSync(path)) describe(name, () => body(path));
  else describe.skip(`${name} [skipped: needs ${runtime}, whose package is for 64-bit Linux on x86]`, () => body(""));
}
