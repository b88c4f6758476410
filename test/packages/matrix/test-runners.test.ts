import { readFileSync } from "node:fs";
import { it } from "vitest";
import { expectAnswers, runTool } from "../outcome.ts";
import { createProject, removeFolder } from "../packed.ts";
import { CJS_PROGRAM, ESM_PROGRAM, type ProgramResult } from "../program.ts";
import { tool } from "../tools.ts";

/** Test runners capture the console, so the program writes its outcome to a file. */
function outcomeOf(folder: string): ProgramResult {
  return JSON.parse(readFileSync(`${folder}/outcome.json`, "utf8")) as ProgramResult;
}

it.each(["node", "jsdom"])("Jest, environment %s, CommonJS", (environment) => {
  const test = `/** @jest-environment ${environment} */
const { run } = require("./program.js");
test("runs", async () => { require("node:fs").writeFileSync("outcome.json", JSON.stringify(await run())); }, 60000);
`;
  const project = createProject("jest", { "program.js": CJS_PROGRAM, "main.test.js": test }, {});
  try {
    runTool(project, process.execPath, [tool("jest/bin/jest.js")]);
    expectAnswers(outcomeOf(project));
  } finally {
    removeFolder(project);
  }
});

it.each(["node", "jsdom", "happy-dom"])("Vitest, environment %s", (environment) => {
  const test = `import { writeFileSync } from "node:fs";
import { test } from "vitest";
import { run } from "./program.js";
test("runs", async () => { writeFileSync("outcome.json", JSON.stringify(await run())); }, 60000);
`;
  const project = createProject("vitest", {
    "program.js": ESM_PROGRAM,
    "main.test.js": test,
    // Empty; otherwise the project's own configuration, some folders above, would be used.
    "vitest.config.js": "export default {};\n",
  });
  try {
    runTool(project, process.execPath, [tool("vitest/vitest.mjs"), "run", "--environment", environment]);
    expectAnswers(outcomeOf(project));
  } finally {
    removeFolder(project);
  }
});
