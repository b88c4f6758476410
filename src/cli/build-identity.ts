/** What tells one build from another: the version, and the commit of its sources where the build knew it. */
import { readFileSync } from "node:fs";

/** Written by scripts/build.mjs; undefined: built without the history. */
export const COMMIT: string | undefined = readCommit();

function readCommit(): string | undefined {
  try {
    return (JSON.parse(readFileSync(new URL("../build.json", import.meta.url), "utf8")) as { commit?: string }).commit;
  } catch {
    return undefined;
  }
}

/** As `0.1.0 (1a2b3c4d5e6f)`. */
export function buildInWords(version: string): string {
  return COMMIT === undefined ? version : `${version} (${COMMIT})`;
}
