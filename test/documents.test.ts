import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

/** The documents agree with each other and with the program: links lead somewhere, and what they quote is what the program says. */

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => readFileSync(path, "utf8");
const filesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(ending) && !path.includes("node_modules"))
    .map((path) => join(ROOT, folder, path));

const DOCUMENTS = [
  ...["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"].map((path) => join(ROOT, path)),
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
