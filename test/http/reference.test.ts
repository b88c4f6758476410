/**
 * The pages of docs/reference: every request on them is sent to a server, in their order, and every answer is the one
 * that they show. They describe exactly the operations of /openapi.json, which is made from the schemas that check
 * requests: a new endpoint, parameter or member of a body has to be there, and the table of error codes as well.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { API_ERRORS } from "../../src/http/status.ts";
import { startServer, type TestServer } from "../support/server.ts";

const PAGES = ["README", "schema", "changes", "records", "query", "search", "sql", "operation"];
const read = (page: string): string => readFileSync(fileURLToPath(new URL(`../../docs/reference/${page}.md`, import.meta.url)), "utf8");

interface Example {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly status: number;
  /** The answer as JSON, or the type of another one; undefined: no body. */
  readonly answer: string | undefined;
  readonly type: string | undefined;
}

/** "```http" with a request, then "```json STATUS" with the answer, or a line "→ STATUS" for none, with the type of one that is not JSON. */
const EXAMPLE = /```http\n([A-Z]+) (\S+)(?:\n((?!```)[\s\S]*?))?\n```\n\n(?:```json (\d{3})\n([\s\S]*?)\n```|→ (\d{3})(?:, `(\S+)`)?)/g;

const examplesOf = (text: string): Example[] =>
  [...text.matchAll(EXAMPLE)].map(([, method = "", path = "", body, jsonStatus, answer, status, type]) => ({
    method,
    path,
    body,
    status: Number(jsonStatus ?? status),
    answer,
    type,
  }));

/** Each operation's part of its page, by its heading: "METHOD /path". */
const SECTIONS = new Map(
  PAGES.flatMap((page) =>
    read(page)
      .split(/^(?=##+ )/m)
      .flatMap((section) => {
        const heading = /^### `([A-Z]+ \S+)`$/m.exec(section)?.[1];
        return heading === undefined ? [] : [[heading, section] as const];
      }),
  ),
);

/** What differs each time or is left out is "…": a part of a text, the rest of a list, the other members of an object. */
function expected(shown: unknown): unknown {
  if (typeof shown === "string" && shown.includes("…")) {
    const pattern = shown.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return shown === "…" ? expect.anything() : expect.stringMatching(new RegExp(`^${pattern.join("[^]*")}$`));
  }
  if (Array.isArray(shown)) {
    const list = shown.filter((element) => element !== "…").map(expected);
    return list.length === shown.length ? list : expect.arrayContaining(list);
  }
  if (typeof shown !== "object" || shown === null) return shown;
  const { "…": rest, ...members } = shown as Record<string, unknown>;
  const all = Object.fromEntries(Object.entries(members).map(([name, value]) => [name, expected(value)]));
  return rest === undefined ? all : expect.objectContaining(all);
}

describe("docs/reference", () => {
  const KEY = "reference-key";
  const folder = mkdtempSync(join(tmpdir(), "lodestone-reference-"));
  let server: TestServer;
  // biome-ignore lint/suspicious/noExplicitAny: OpenAPI is examined here
  let operations: { heading: string; operation: any }[];
  // biome-ignore lint/suspicious/noExplicitAny: OpenAPI is examined here
  let components: Record<string, any>;

  beforeAll(async () => {
    const keyFile = join(folder, "keys.json");
    writeFileSync(keyFile, JSON.stringify({ version: 1, keys: [] }));
    server = await startServer({ args: ["--api-key", KEY, "--key-file", keyFile] });
    const { paths, components: named } = (await server.get("/openapi.json")).body;
    components = named.schemas;
    operations = Object.entries(paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ heading: `${method.toUpperCase()} ${path}`, operation })),
    );
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(PAGES)("%s.md shows requests as they are answered", async (page) => {
    const text = read(page);
    const examples = examplesOf(text);
    // Each request has an answer.
    expect(examples).toHaveLength(text.split("```http").length - 1);
    for (const { method, path, body, status, answer, type } of examples) {
      // As agents have to send it; nothing else looks at it.
      const accept = "application/json, text/event-stream";
      const json = body === undefined ? { accept } : { accept, "content-type": "application/json" };
      const got = await server.request(method, path, body, { authorization: `Bearer ${KEY}`, ...json });
      expect({ request: `${method} ${path} ${body ?? ""}`, status: got.status, body: got.body }).toEqual({
        request: expect.anything(),
        status,
        body: answer === undefined ? (type === undefined ? undefined : got.body) : expected(JSON.parse(answer)),
      });
      if (type !== undefined) expect(got.headers["content-type"]).toContain(type);
    }
  });

  it("has exactly the operations of /openapi.json, each with its key, its parameters, its members and a request", () => {
    expect([...SECTIONS.keys()].sort()).toEqual(operations.map(({ heading }) => heading).sort());
    const missing = operations.flatMap(({ heading, operation }) => {
      const section = SECTIONS.get(heading)!;
      const access = operation["x-access"];
      const schema = operation.requestBody?.content["application/json"].schema ?? {};
      const { properties = {} } = schema.$ref === undefined ? schema : components[schema.$ref.split("/").at(-1)];
      const query = operation.parameters.filter((parameter: { in: string }) => parameter.in === "query");
      const names = [...Object.keys(properties), ...query.map(({ name }: { name: string }) => name)].map((name) => `\`${name}\``);
      const [method = "", path = ""] = heading.split(" ");
      const template = new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/?]+").replaceAll(".", "\\.")}(\\?.*)?$`);
      const isShown = examplesOf(section).some((example) => example.method === method && template.test(example.path));
      return [
        ...[access === "public" ? "(no key)" : `(key: ${access}`, ...names].filter((text) => !section.includes(text)),
        ...(isShown ? [] : ["a request"]),
      ].map((text) => `${heading}: ${text}`);
    });
    expect(missing).toEqual([]);
  });

  it("lists the codes of errors with their statuses", () => {
    const rows = Object.entries(API_ERRORS).map(([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${meaning} |`);
    expect(read("README").match(/^\| `[A-Z_]+` \| \d{3} \| .*$/gm)).toEqual(rows);
  });
});
