import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** `npm test` builds first (pretest); a bare `npx vitest` on a clean checkout gets a sentence instead of a hundred import errors. */
export default function setup(): void {
  if (!existsSync(fileURLToPath(new URL("../../dist/index.js", import.meta.url)))) {
    throw new Error("dist/ is not built; tests run what ships. Run `npm run build` first, or use `npm test`.");
  }
}
