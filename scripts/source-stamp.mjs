/** A hash of everything that dist/ is built from. The build leaves it in dist/; the tests, which run dist/, compare it, so that they never test old code. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const SOURCES = ["assembly", "src", "scripts"];
const SETTINGS = ["asconfig.json", "package.json", "tsconfig.json"];

/** @param root the checkout. Reads some hundred files: milliseconds. */
export function sourceStamp(root) {
  const hash = createHash("sha256");
  const files = SOURCES.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  ).sort();
  for (const path of [...files, ...SETTINGS.map((file) => join(root, file))]) {
    hash.update(`${path.slice(root.length)}\0`).update(createHash("sha256").update(readFileSync(path)).digest());
  }
  return hash.digest("hex");
}

export const stampFile = (root) => join(root, "dist", ".source-stamp");

/** Whether dist/ was built from the sources as they are. */
export function isBuilt(root) {
  return existsSync(stampFile(root)) && readFileSync(stampFile(root), "utf8") === sourceStamp(root);
}
