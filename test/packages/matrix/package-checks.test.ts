import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runTool } from "../outcome.ts";
import { newFolder, pack, removeFolder } from "../packed.ts";
import { tool } from "../tools.ts";

describe.each(["library", "server"] as const)("the tarball of the %s", (name) => {
  let folder: string;
  let tarball: string;
  beforeAll(() => {
    folder = newFolder("checks");
    tarball = pack(name, folder);
  });
  afterAll(() => removeFolder(folder));

  it("has nothing that publint warns of", () => {
    expect(runTool(folder, process.execPath, [tool("publint/src/cli.js"), "run", tarball, "--strict"])).not.toMatch(/Warnings|Errors/);
  });

  // The server's package is a program: it has no types.
  if (name === "library") {
    const attw = (...args: string[]) =>
      runTool(folder, process.execPath, [tool("@arethetypeswrong/cli/dist/index.js"), tarball, "--format", "ascii", ...args]);

    it("has the right types in every mode of Node and of bundlers", () => {
      expect(attw("--profile", "node16")).toMatch(/"lodestone"/);
    });

    it("has the right types for compilers that do not read `exports`", () => {
      expect(attw("--profile", "strict", "--entrypoints", ".")).toMatch(/node10: 🟢/);
    });
  }
});
