import { cpSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launchChromium } from "../../browser/launch.ts";
import { freePort } from "../../support/ports.ts";
import { describeWith } from "../../support/requirements.ts";
import { expectAnswers, runTool } from "../outcome.ts";
import { createProject, removeFolder } from "../packed.ts";
import { openPage, startServer } from "../page.ts";
import { ESM_PROGRAM, type ProgramResult } from "../program.ts";
import { tool } from "../tools.ts";

const FILES = {
  "app/layout.jsx": `export default function Layout({ children }) { return <html lang="en"><body>{children}</body></html>; }\n`,
  "app/page.jsx": `import { Search } from "./search";\nexport default function Page() { return <Search />; }\n`,
  "app/search.jsx": `"use client";
import { useEffect, useState } from "react";
import { run } from "./program";
export function Search() {
  const [state, setState] = useState("searching");
  useEffect(() => {
    run().then(
      (result) => { globalThis.outcome = { result }; setState("done"); },
      (error) => { globalThis.outcome = { failure: String(error.stack) }; setState("failed"); },
    );
  }, []);
  return <p>{state}</p>;
}
`,
  "app/api/search/route.js": `import { run } from "../../program";
export const dynamic = "force-dynamic";
export async function GET() { return Response.json(await run()); }
`,
  "app/program.js": ESM_PROGRAM,
};

describeWith("chromium", "Next.js", (executablePath) => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium(executablePath);
  });
  afterAll(() => browser?.close());

  async function check(url: string): Promise<void> {
    expectAnswers(await openPage(browser, url));
    const response = await fetch(`${url}api/search`);
    expect(response.status).toBe(200);
    expectAnswers((await response.json()) as ProgramResult);
  }

  it.each([
    ["Turbopack", []],
    ["webpack", ["--webpack"]],
  ])("%s: a client component and a route handler", async (_, flags) => {
    const project = createProject("next", FILES, {});
    try {
      runTool(project, process.execPath, [tool("next/dist/bin/next"), "build", ...flags]);
      const port = await freePort();
      const url = `http://127.0.0.1:${port}/`;
      const server = await startServer(
        project,
        process.execPath,
        [tool("next/dist/bin/next"), "start", "-p", `${port}`, "-H", "127.0.0.1"],
        url,
      );
      try {
        await check(url);
      } finally {
        await server.stop();
      }
    } finally {
      removeFolder(project);
    }
  });

  it("a standalone build needs no file of the library beside it", async () => {
    const project = createProject(
      "next",
      { ...FILES, "next.config.mjs": `export default { output: "standalone", outputFileTracingRoot: import.meta.dirname + "/../.." };\n` },
      {},
    );
    try {
      runTool(project, process.execPath, [tool("next/dist/bin/next"), "build"]);
      const standalone = join(project, ".next/standalone/work", project.split("/").at(-1)!);
      cpSync(join(project, ".next/static"), join(standalone, ".next/static"), { recursive: true });
      const port = await freePort();
      const url = `http://127.0.0.1:${port}/`;
      const server = await startServer(standalone, process.execPath, ["server.js"], url, { PORT: `${port}`, HOSTNAME: "127.0.0.1" });
      try {
        await check(url);
      } finally {
        await server.stop();
      }
    } finally {
      removeFolder(project);
    }
  });
});
