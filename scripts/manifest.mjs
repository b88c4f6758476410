/** What the package.json of both packages say alike, taken from the project's own. */
import { readFileSync } from "node:fs";

/** Go into the library's files when it is built, so that nothing is installed beside it. */
export const BUNDLED = ["@assemblyscript/loader"];

export function projectManifest(root) {
  return JSON.parse(readFileSync(`${root}package.json`, "utf8"));
}

/** @returns version, licence, addresses and engines, in the order in which npm shows them. */
export function commonFields({ version, license, repository, homepage, bugs, engines }) {
  return { version, license, repository, homepage, bugs, engines };
}
