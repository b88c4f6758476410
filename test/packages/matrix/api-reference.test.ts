import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { runTool } from "../outcome.ts";
import { newFolder, removeFolder } from "../packed.ts";
import { tool } from "../tools.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

it("docs/api matches the docstrings (npm run docs:api)", () => {
  const out = newFolder("api");
  try {
    runTool(ROOT, process.execPath, [tool("typedoc/bin/typedoc"), "--options", "scripts/typedoc.json", "--out", out]);
    expect(readFileSync(join(ROOT, "docs/api/README.md"), "utf8")).toBe(readFileSync(join(out, "README.md"), "utf8"));
  } finally {
    removeFolder(out);
  }
});
