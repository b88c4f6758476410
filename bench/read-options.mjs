/** The options of a program of this folder. `--help` prints the comment at the top of its file. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/**
 * Ends the process for `--help`, and, with exit code 2, for options that the program does not have.
 *
 * @param url  the program's import.meta.url.
 * @param options  as parseArgs takes them.
 * @returns their values, by name.
 */
export function readOptions(url, options) {
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } } });
    if (values.help !== true) return values;
    console.log(headerOf(url));
    process.exit(0);
  } catch (error) {
    console.error(`${error.message}\n\n${headerOf(url)}`);
    process.exit(2);
  }
}

function headerOf(url) {
  const [, comment] = /\/\*\*\n(.*?)\n \*\//s.exec(readFileSync(fileURLToPath(url), "utf8"));
  return comment.replaceAll(/^ \* ?/gm, "");
}
