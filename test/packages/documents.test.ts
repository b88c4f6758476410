/** The code in docs/library.md runs as pasted: in Node where possible, else in a page. TypeScript is compiled first. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, newPage } from "../browser/launch.ts";
import { type StaticFile, serveStatic } from "../browser/static-server.ts";
import { describeWith } from "../support/requirements.ts";
import { runTool } from "./outcome.ts";
import { createProject, removeFolder, write } from "./packed.ts";

const text = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");
const blocksOf = (path: string, language = "js") =>
  [...text(path).matchAll(new RegExp(`^\`\`\`${language}\\n(import [\\s\\S]*?)^\`\`\`$`, "gm"))].map(([, code]) => code!);

const TSC = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));
const isForPages = (code: string) => code.includes("OpfsStore");
const LIBRARY_BLOCKS = blocksOf("docs/library.md");
const NODE_BLOCKS = [...LIBRARY_BLOCKS.filter((code) => !isForPages(code)), ...blocksOf("README.md")];
const TYPED_BLOCKS = blocksOf("docs/library.md", "ts");
const PAGE_BLOCKS = LIBRARY_BLOCKS.filter(isForPages);

describe("code of the documents", () => {
  let project: string;
  beforeAll(() => {
    project = createProject("documents", {});
  });
  afterAll(() => removeFolder(project));

  it("exists", () => {
    expect([NODE_BLOCKS.length, TYPED_BLOCKS.length, PAGE_BLOCKS.length]).toEqual([7, 1, 1]);
  });

  it.each(NODE_BLOCKS)("runs in Node: %#", (code) => {
    write(project, { "pasted.js": `${code}\nconsole.log("to the end");\n` });
    expect(runTool(project, process.execPath, ["pasted.js"])).toMatch(/to the end\n$/);
  });

  it.each(TYPED_BLOCKS)("compiles, and runs in Node: %#", (code) => {
    write(project, { "typed.ts": `${code}\nconsole.log("to the end");\n` });
    const options = [
      "--ignoreConfig",
      "--strict",
      "--exactOptionalPropertyTypes",
      "--noUnusedLocals",
      "false",
      "--target",
      "es2022",
      "--module",
      "nodenext",
    ];
    expect(runTool(project, process.execPath, [TSC, ...options, "--types", "", "typed.ts"])).toBe("");
    expect(runTool(project, process.execPath, ["typed.js"])).toMatch(/to the end\n$/);
  });

  describeWith("chromium", "in a page", (executablePath) => {
    it.each(PAGE_BLOCKS)("runs: %#", async (code) => {
      const save = `import { VectorIndex } from "lodestone";
import { writeFileSync } from "node:fs";
writeFileSync("products.lodestone", (await VectorIndex.create({ dimension: 3 })).toBytes());`;
      write(project, { "save.js": save });
      runTool(project, process.execPath, ["save.js"]);
      const imports = { lodestone: "/lodestone.js" };
      const end = "globalThis.sizes = [again.size, fetched.size];";
      const page = `<!doctype html><title>p</title><script type="importmap">${JSON.stringify({ imports })}</script><script type="module">${code}\n${end}</script>`;
      const site = await serveStatic(
        new Map<string, StaticFile>([
          ["/", { type: "text/html", body: page }],
          ["/lodestone.js", { type: "text/javascript", body: readFileSync(join(project, "node_modules/lodestone/dist/index.js")) }],
          ["/products.lodestone", { type: "application/octet-stream", body: readFileSync(join(project, "products.lodestone")) }],
        ]),
      );
      const browser = await launchChromium(executablePath);
      try {
        const tab = await newPage(browser);
        await tab.goto(site.url);
        await tab.waitForFunction(() => "sizes" in globalThis);
        expect(await tab.evaluate(() => (globalThis as unknown as { sizes: number[] }).sizes)).toEqual([1, 0]);
      } finally {
        await browser.close();
        await site.close();
      }
    });
  });
});
