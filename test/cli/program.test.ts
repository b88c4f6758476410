import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "lodestone-program-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const outputOf = (args: readonly string[]): string => execFileSync(process.execPath, [MAIN, ...args], { encoding: "utf8" });

/** The files of the project and the packages that a run of the command line imports, as the coverage of V8 lists them. */
function importsOf(args: readonly string[]): { readonly files: string[]; readonly packages: string[] } {
  const folder = mkdtempSync(join(root, "coverage-"));
  execFileSync(process.execPath, [MAIN, ...args], { env: { ...process.env, NODE_V8_COVERAGE: folder } });
  const urls = readdirSync(folder).flatMap((file) => {
    const { result } = JSON.parse(readFileSync(join(folder, file), "utf8")) as { result: { url: string }[] };
    return result.map(({ url }) => url);
  });
  const matches = (pattern: RegExp): string[] => [...new Set(urls.flatMap((url) => pattern.exec(url)?.[1] ?? []))];
  return { files: matches(/^file:.*\/dist\/((?:[^/]+\/)*[^/]+)\.js$/), packages: matches(/\/node_modules\/((?:@[^/]+\/)?[^/]+)\//) };
}

describe("a command is imported when it runs", () => {
  it.each([["--help"], ["--version"], ["help"]])("%s imports none", (option) => {
    const { files, packages } = importsOf([option]);
    expect(files).toContain("cli/program");
    expect(files.filter((file) => /-command$|^(records|search|http|core)\//.test(file))).toEqual([]);
    expect(packages).toEqual(["commander"]);
  });

  it("keys --help imports that one", () => {
    expect(importsOf(["keys", "--help"]).files.filter((file) => file.endsWith("-command"))).toEqual(["cli/keys-command"]);
  });
});

it.each([["serve"], ["import"], ["keys"], ["keys", "create"]])("help %s %s describes the command as its --help does", (...names) => {
  const text = outputOf(["help", ...names]);
  expect(text).toContain(`Usage: lodestone ${names.join(" ")} `);
  expect(text).toBe(outputOf([...names, "--help"]));
});
