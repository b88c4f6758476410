import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, it } from "vitest";
import { type Expected, expectAnswers } from "../packages/outcome.ts";
import { openPage } from "../packages/page.ts";
import { ESM_PROGRAM, PAGE_MAIN } from "../packages/program.ts";
import { describeWith } from "../support/requirements.ts";
import { launchChromium } from "./launch.ts";
import { type StaticFile, serveStatic } from "./static-server.ts";

const built = (name: string) => readFileSync(fileURLToPath(new URL(`../../dist/packages/library/dist/${name}`, import.meta.url)));
const script = (body: string | Uint8Array, headers: Record<string, string> = {}): StaticFile => ({
  type: "text/javascript",
  body,
  headers,
});

const LIBRARY = script(built("index.js"), { "access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin" });
const program = (library: string, before = "") =>
  `${ESM_PROGRAM.replace('from "lodestone"', `from "${library}"`)}${before === "" ? "" : `import { init } from "${library}";\n${before}\n`}`;

/** Headers of a page, where it gets the worker from, and what happens. */
const PAGES: Record<string, { headers?: Record<string, string>; init?: string; expected?: Expected }> = {
  "without headers": {},
  "cross-origin isolated": { headers: { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" } },
  "policy with wasm-unsafe-eval and blob workers": {
    headers: { "content-security-policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:" },
  },
  "policy without wasm-unsafe-eval": {
    headers: { "content-security-policy": "default-src 'self'; script-src 'self'; worker-src blob:" },
    expected: { parallel: "workers", build: "scalar" },
  },
  "policy that forbids blob workers": {
    headers: { "content-security-policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'" },
    expected: { parallel: /a worker did not start.*worker-src blob:.*workerUrl/ },
  },
  "worker-src 'none'": {
    headers: { "content-security-policy": "script-src 'self' 'wasm-unsafe-eval'; worker-src 'none'" },
    expected: { parallel: /a worker did not start.*worker-src blob:/ },
  },
  "policy that allows workers of its own origin, and the worker as a file": {
    headers: { "content-security-policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'" },
    init: `init({ workerUrl: new URL("/shard-worker.js", location.href) });`,
  },
  "a worker's file that is not there": {
    init: `init({ workerUrl: "/missing.js" });`,
    expected: { parallel: /did not start from \/missing\.js/ },
  },
};

describeWith("chromium", "pages with policies", (executablePath) => {
  let browser: Browser;
  let server: Awaited<ReturnType<typeof serveStatic>>;
  let other: Awaited<ReturnType<typeof serveStatic>>;

  beforeAll(async () => {
    other = await serveStatic(new Map([["/lodestone.js", LIBRARY]]));
    const files = new Map<string, StaticFile>([
      ["/lodestone.js", LIBRARY],
      ["/shard-worker.js", script(built("shard-worker.js"))],
    ]);
    const add = (path: string, text: string, headers?: Record<string, string>) => {
      files.set(`${path}/index`, {
        type: "text/html",
        body: `<!doctype html><title>p</title><script type="module" src="main.js"></script>`,
        ...(headers && { headers }),
      });
      files.set(`${path}/main.js`, script(PAGE_MAIN));
      files.set(`${path}/program.js`, script(text));
    };
    Object.values(PAGES).forEach(({ headers, init }, i) => {
      add(`/${i}`, program("/lodestone.js", init), headers);
    });
    add("/other", program(`${other.url}/lodestone.js`));
    server = await serveStatic(files);
    browser = await launchChromium(executablePath);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    await other?.close();
  });

  it.each(Object.keys(PAGES))("%s", async (name) => {
    const place = Object.keys(PAGES).indexOf(name);
    expectAnswers(await openPage(browser, `${server.url}/${place}/index`), PAGES[name]?.expected);
  });

  it("the library on another origin than the page", async () => {
    expectAnswers(await openPage(browser, `${server.url}/other/index`));
  });
});
