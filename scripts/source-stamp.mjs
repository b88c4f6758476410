/**
 * Hashes of the sources. The build leaves the hash of all sources in dist/; the tests, which run dist/, compare it,
 * so that they never test old code. It leaves the hash of the core's sources beside the core's builds, and compiles
 * these again only when it has changed: that is most of a build's time.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const SOURCES = ["adapters", "assembly", "src", "scripts"];
const SETTINGS = ["asconfig.json", "package.json", "tsconfig.json"];

/** @param root the checkout. Reads some hundred files: milliseconds. */
export const sourceStamp = (root) => stampOf(root, SOURCES, SETTINGS);

export const stampFile = (root) => join(root, "dist", ".source-stamp");

/** Whether dist/ was built from the sources as they are. */
export const isBuilt = (root) => isStamped(stampFile(root), sourceStamp(root));

/** Of what the core's builds are made from, the compiler's version included. */
export const coreStamp = (root) => stampOf(root, ["assembly"], ["asconfig.json", "node_modules/assemblyscript/package.json"]);

export const coreStampFile = (root) => join(root, "build", ".core-stamp");

/** Whether the core's builds are those of its sources as they are. */
export const isCoreBuilt = (root) => isStamped(coreStampFile(root), coreStamp(root));

function isStamped(file, stamp) {
  return existsSync(file) && readFileSync(file, "utf8") === stamp;
}

function stampOf(root, folders, singleFiles) {
  const hash = createHash("sha256");
  const files = folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name)),
    )
    .sort();
  for (const path of [...files, ...singleFiles.map((file) => join(root, file))]) {
    hash.update(`${path.slice(root.length)}\0`).update(createHash("sha256").update(readFileSync(path)).digest());
  }
  return hash.digest("hex");
}
