import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isBuilt } from "../../scripts/source-stamp.mjs";
import { startTestHost } from "./test-host.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

// vitest imports it by the name in its settings:
// ignore unused exports
/**
 * Tests run what ships, dist/. Sources edited since the last build are built first, so that no test ever runs
 * old code. Vitest calls it for each of its projects.
 */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.LODESTONE_TEST_HOST !== undefined) return undefined;
  if (!isBuilt(root)) {
    console.log("dist/ is not built from the sources as they are: building …");
    execFileSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "inherit" });
  }
  return startTestHost();
}
