/**
 * Tells builds apart: writes the commit of the sources into dist/build.json. Sources without their history (a tarball,
 * an image) have none, and their build says the version alone, unless LODESTONE_COMMIT gives it.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";

export function writeBuildIdentity(root) {
  writeFileSync(`${root}dist/build.json`, `${JSON.stringify({ commit: process.env.LODESTONE_COMMIT ?? commitOf(root) })}\n`);
}

/** `-changed`: the sources differ from those of the commit. */
function commitOf(root) {
  const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  try {
    // Not of a repository that the sources happen to lie in.
    if (git("rev-parse", "--show-cdup") !== "") return undefined;
    return `${git("rev-parse", "--short=12", "HEAD")}${git("status", "--porcelain", "--", "src", "assembly", "scripts") === "" ? "" : "-changed"}`;
  } catch {
    return undefined;
  }
}
