import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isBuilt } from "../../scripts/source-stamp.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));

// vitest imports it by the name in its settings:
// ignore unused exports
/**
 * Tests run what ships, dist/. Sources edited since the last build are built first, so that no test ever runs
 * old code.
 */
export default function setup(): void {
  if (isBuilt(root)) return;
  console.log("dist/ is not built from the sources as they are: building …");
  execFileSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "inherit" });
}
