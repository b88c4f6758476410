import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../support/ports.ts";
import { expectAnswers, runProgram, runTool } from "../outcome.ts";
import { createProject, removeFolder } from "../packed.ts";
import { startServer } from "../page.ts";
import { CJS_PROGRAM, CONSOLE_MAIN, ESM_PROGRAM, type ProgramResult } from "../program.ts";
import { describeRuntime, tool } from "../tools.ts";

const FILES = {
  "program.js": ESM_PROGRAM,
  "main.js": CONSOLE_MAIN,
  "program.cjs": CJS_PROGRAM,
  "main.cjs": `require("./program.cjs").run().then((result) => console.log("OUTCOME " + JSON.stringify(result)));\n`,
};

describe("runtimes", () => {
  let project: string;
  beforeAll(() => {
    project = createProject("runtimes", FILES);
  });
  afterAll(() => removeFolder(project));

  for (const version of ["node 20.19", "node 22", "node 24"] as const) {
    describeRuntime(version, version, (node) => {
      it.each(["main.js", "main.cjs"])("%s", (main) => expectAnswers(runProgram(project, node, [main])));
    });
  }

  describeRuntime("bun", "Bun", (bun) => {
    it.each(["main.js", "main.cjs"])("bun run %s", (main) => expectAnswers(runProgram(project, bun, ["run", main])));
    it("bun build for Bun, then run", () => {
      runTool(project, bun, ["build", "main.js", "--target=bun", "--outfile=bundled.js"]);
      expectAnswers(runProgram(project, bun, ["run", "bundled.js"]));
    });
  });

  describeRuntime("deno", "Deno", (deno) => {
    const cache = { DENO_NO_UPDATE_CHECK: "1", DENO_DIR: "" };
    it.each(["main.js", "main.cjs"])("deno run %s", (main) => {
      expectAnswers(runProgram(project, deno, ["run", "--allow-read", "--allow-env", main], { ...cache, DENO_DIR: `${project}/.deno` }));
    });
  });
});

describeRuntime("node 22", "workerd, by wrangler", (node) => {
  const WORKER = `import { run } from "./program.js";
export default { async fetch() { return Response.json(await run()); } };
`;

  it.each([
    ["without nodejs_compat", "[]"],
    ["with nodejs_compat", '["nodejs_compat"]'],
  ])("%s: the WebAssembly compiled ahead; no workers, and it says so", async (_, flags) => {
    const project = createProject("workerd", {
      "src/program.js": ESM_PROGRAM,
      "src/index.js": WORKER,
      "wrangler.toml": `name = "test"\nmain = "src/index.js"\ncompatibility_date = "2026-07-01"\ncompatibility_flags = ${flags}\n`,
    });
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;
    const args = [
      tool("wrangler/bin/wrangler.js"),
      "dev",
      "--local",
      "--ip",
      "127.0.0.1",
      "--port",
      `${port}`,
      "--inspector-port",
      "0",
      "--show-interactive-dev-session=false",
    ];
    const server = await startServer(project, node, args, url, { CI: "true" });
    try {
      const result = (await (await fetch(url)).json()) as ProgramResult;
      expectAnswers(result, { parallel: /needs workers/, build: "simd" });
    } finally {
      await server.stop();
      removeFolder(project);
    }
  });

  it("what wrangler would deploy holds the core as a module of its own", () => {
    const project = createProject("workerd-out", {
      "src/program.js": ESM_PROGRAM,
      "src/index.js": WORKER,
      "wrangler.toml": `name = "test"\nmain = "src/index.js"\ncompatibility_date = "2026-07-01"\n`,
    });
    try {
      runTool(project, node, [tool("wrangler/bin/wrangler.js"), "deploy", "--dry-run", "--outdir=out"]);
      expect(readdirSync(`${project}/out`).filter((name) => name.endsWith("core.wasm"))).toHaveLength(1);
    } finally {
      removeFolder(project);
    }
  });
});
