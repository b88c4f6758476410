import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { launchChromium } from "../../browser/launch.ts";
import { freePort } from "../../support/ports.ts";
import { describeWith } from "../../support/requirements.ts";
import { expectAnswers, runProgram, runTool } from "../outcome.ts";
import { createProject, removeFolder } from "../packed.ts";
import { openPage, serveFolder, startServer } from "../page.ts";
import { CONSOLE_MAIN, ESM_PROGRAM, PAGE_MAIN } from "../program.ts";
import { describeRuntime, tool } from "../tools.ts";

const html = (script: string) => `<!doctype html><title>page</title>${script}`;
const SOURCES = { "src/program.js": ESM_PROGRAM, "src/index.js": PAGE_MAIN };
const FROM_DIST = { "dist/index.html": html('<script type="module" src="./main.js"></script>') };

/** Each is started as its documentation says, without a configuration file. */
const BUNDLERS: Record<string, { files: Record<string, string>; command: [string, ...string[]]; output: string }> = {
  "Vite 8": {
    files: { "index.html": html('<script type="module" src="/src/index.js"></script>') },
    command: ["vite-8/bin/vite.js", "build"],
    output: "dist",
  },
  "Vite 7": {
    files: { "index.html": html('<script type="module" src="/src/index.js"></script>') },
    command: ["vite-7/bin/vite.js", "build"],
    output: "dist",
  },
  "webpack 5": { files: FROM_DIST, command: ["webpack-cli/bin/cli.js", "--mode", "production"], output: "dist" },
  "webpack 5, development": { files: FROM_DIST, command: ["webpack-cli/bin/cli.js", "--mode", "development"], output: "dist" },
  Rspack: { files: FROM_DIST, command: ["@rspack/cli/bin/rspack.js", "build"], output: "dist" },
  Rollup: {
    files: FROM_DIST,
    command: ["rollup/dist/bin/rollup", "src/index.js", "-p", "@rollup/plugin-node-resolve", "-f", "iife", "-o", "dist/main.js"],
    output: "dist",
  },
  esbuild: {
    files: FROM_DIST,
    command: ["esbuild/bin/esbuild", "src/index.js", "--bundle", "--minify", "--outfile=dist/main.js"],
    output: "dist",
  },
  Parcel: {
    files: { "index.html": html('<script type="module" src="./src/index.js"></script>') },
    command: ["parcel/lib/bin.js", "build", "index.html"],
    output: "dist",
  },
};

describeWith("chromium", "pages that bundlers build with their default configuration", (executablePath) => {
  let browser: Browser;
  let project: string | undefined;
  beforeAll(async () => {
    browser = await launchChromium(executablePath);
  });
  afterAll(() => browser?.close());
  afterEach(() => {
    if (project !== undefined) removeFolder(project);
    project = undefined;
  });

  it.each(Object.keys(BUNDLERS))("%s", async (name) => {
    const { files, command, output } = BUNDLERS[name]!;
    project = createProject("bundler", { ...SOURCES, ...files });
    const [bin, ...args] = command;
    runTool(project, process.execPath, [tool(bin), ...args]);
    const site = await serveFolder(join(project, output));
    try {
      expectAnswers(await openPage(browser, site.url));
    } finally {
      await site.close();
    }
  });

  it.each(["vite-8", "vite-7"])("the development server of %s", async (vite) => {
    project = createProject("dev", { ...SOURCES, "index.html": html('<script type="module" src="/src/index.js"></script>') });
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;
    const server = await startServer(
      project,
      process.execPath,
      [tool(`${vite}/bin/vite.js`), "--host", "127.0.0.1", "--port", `${port}`],
      url,
    );
    try {
      expectAnswers(await openPage(browser, url));
    } finally {
      await server.stop();
    }
  });

  describeRuntime("node 22", "Astro", (node) => {
    const files = {
      "src/program.js": ESM_PROGRAM,
      "src/main.js": PAGE_MAIN,
      "src/pages/index.astro": html('<p>page</p><script>import "../main.js";</script>'),
    };

    it("astro build", async () => {
      project = createProject("astro", files);
      runTool(project, node, [tool("astro/bin/astro.mjs"), "build"]);
      const site = await serveFolder(join(project, "dist"));
      try {
        expectAnswers(await openPage(browser, site.url));
      } finally {
        await site.close();
      }
    });

    it("astro dev", async () => {
      project = createProject("astro", files);
      const port = await freePort();
      const url = `http://127.0.0.1:${port}/`;
      const server = await startServer(
        project,
        node,
        [tool("astro/bin/astro.mjs"), "dev", "--host", "127.0.0.1", "--port", `${port}`],
        url,
      );
      try {
        expectAnswers(await openPage(browser, url));
      } finally {
        await server.stop();
      }
    });
  });

  describeRuntime("bun", "Bun's bundler", (bun) => {
    it("bun build for browsers", async () => {
      project = createProject("bun", { ...SOURCES, ...FROM_DIST });
      runTool(project, bun, ["build", "src/index.js", "--outfile=dist/main.js", "--minify"]);
      const site = await serveFolder(join(project, "dist"));
      try {
        expectAnswers(await openPage(browser, site.url));
      } finally {
        await site.close();
      }
    });
  });
});

it("bundles for Node by esbuild run, in both formats", () => {
  const project = createProject("node-bundle", {
    "program.js": ESM_PROGRAM,
    "main.js": CONSOLE_MAIN.replace("await run()", "await run()"),
  });
  try {
    runTool(project, process.execPath, [
      tool("esbuild/bin/esbuild"),
      "main.js",
      "--bundle",
      "--platform=node",
      "--format=esm",
      "--outfile=out.mjs",
    ]);
    expectAnswers(runProgram(project, process.execPath, ["out.mjs"]));
    runTool(project, process.execPath, [
      tool("esbuild/bin/esbuild"),
      "program.js",
      "--bundle",
      "--platform=node",
      "--format=cjs",
      "--outfile=out.cjs",
    ]);
    const script = `require("./out.cjs").run().then((result) => console.log("OUTCOME " + JSON.stringify(result)))`;
    expectAnswers(runProgram(project, process.execPath, ["-e", script]));
    expect(project).toBeTruthy();
  } finally {
    removeFolder(project);
  }
});
