import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

/** The documents agree with each other and with the program: links lead somewhere, and what they quote is what the program says. */

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => readFileSync(path, "utf8");
/** What is installed, and what tests are writing there. */
const LEFT_OUT = new Set(["node_modules", "work"]);
const filesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return LEFT_OUT.has(entry.name) ? [] : filesIn(join(folder, entry.name), ending);
    return entry.name.endsWith(ending) ? [join(ROOT, folder, entry.name)] : [];
  });

const DOCUMENTS = [
  ...["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "adapters/README.md"].map((path) => join(ROOT, path)),
  ...filesIn("docs", ".md").filter((path) => !path.includes(join("docs", "api"))),
];
/** Without the code in it, where a link is not one. */
const proseOf = (text: string): string => text.replaceAll(/^```[\s\S]*?^```/gm, "").replaceAll(/`[^`\n]*`/g, "`code`");
/** The anchors of a page's headings, as GitHub makes them. */
const anchorsOf = (text: string): string[] =>
  [...text.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(/\s/g, "-"),
  );

describe("links", () => {
  it.each(DOCUMENTS)("of %s lead to a file, and to a heading in it", (document) => {
    const links = [...proseOf(read(document)).matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)].map(
      ([, link, image]) => link ?? image!,
    );
    const broken = links.filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [path, anchor] = link.split("#") as [string, string?];
      const target = path === "" ? document : resolve(dirname(document), path);
      if (!existsSync(target)) return true;
      return anchor !== undefined && target.endsWith(".md") && !anchorsOf(read(target)).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});

describe("names", () => {
  interface Manifest {
    name: string;
    scripts: Record<string, string>;
    bin: Record<string, string>;
  }
  const { name: root, scripts, bin } = JSON.parse(read(join(ROOT, "package.json"))) as Manifest;
  const sources = ["src", "assembly", "test", "bench", "scripts", "deploy", "adapters"].flatMap((folder) =>
    [".ts", ".tsx", ".mjs", ".js", ".conf"].flatMap((ending) => filesIn(folder, ending)),
  );

  it("of pages in the sources lead to a page, and to a heading in it", () => {
    const named = sources.flatMap((file) => [...read(file).matchAll(/\bdocs\/[\w/-]+\.md(?:#[\w-]+)?/g)].map(([name]) => name));
    expect(named.length).toBeGreaterThan(30);
    const isThere = (name: string): boolean => {
      const [path, anchor] = name.split("#") as [string, string?];
      const page = join(ROOT, path);
      return existsSync(page) && (anchor === undefined || anchorsOf(read(page)).includes(anchor));
    };
    expect(named.filter((name) => !isThere(name))).toEqual([]);
  });

  it.each(DOCUMENTS.filter((path) => !path.endsWith("CHANGELOG.md")))(
    "of tests and commands in %s are those that are there",
    (document) => {
      const text = read(document);
      const commands = [...text.matchAll(/npm run ([a-z][\w:-]*)/g)].map(([, name]) => name!);
      expect(commands.filter((name) => scripts[name] === undefined)).toEqual([]);
      const tests = [...text.matchAll(/\btest\/[\w/{},.-]+\.test\.ts/g)].flatMap(([path]) => {
        const [, before, some, after] = /^(.*)\{(.*)\}(.*)$/.exec(path) ?? ["", path, "", ""];
        return some!.split(",").map((one) => before! + one + after!);
      });
      expect(tests.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    },
  );

  it("of packages are those that `npm run pack:all` makes, as long as none is published, and the program is the clone's own", () => {
    const packages = ["library", "adapters", "server"].map(
      (folder) => JSON.parse(read(join(ROOT, "dist/packages", folder, "package.json"))) as { name: string; version: string },
    );
    const said = DOCUMENTS.flatMap((document) => [...read(document).matchAll(/npm install ([^`\n]*)/g)].map(([, what]) => what!));
    const installed = new Set(said.flatMap((what) => what.split(" ").filter((word) => word.startsWith("FOLDER"))));
    expect([...installed].sort()).toEqual(packages.map(({ name, version }) => `FOLDER/dist/${name}-${version}.tgz`).sort());
    const names = packages.map(({ name }) => name);
    expect(said.filter((what) => what.split(" ").some((word) => names.includes(word)))).toEqual([]);
    // `npx lodestone` in the clone; were the root called like the library, npm would take one for the other.
    expect(names).not.toContain(root);
    expect(existsSync(join(ROOT, bin.lodestone!))).toBe(true);
  });
});

describe("docs/operating.md", () => {
  it("quotes the program in its first column", () => {
    const sources = filesIn("src", ".ts").map(read).join("\n");
    const table = read(join(ROOT, "docs/operating.md")).split("## When something is wrong")[1]!;
    const quoted = [...table.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`([^`]+)`/g)].map(([, text]) => text!),
    );
    expect(quoted.length).toBeGreaterThan(15);
    // `"status": "x"` in JSON is `status: "x"` in the program.
    const said = (text: string): boolean => sources.includes(text.replace(/^"status": /, ""));
    expect(quoted.filter((text) => text !== "id" && text !== "/readyz" && !said(text))).toEqual([]);
  });
});
