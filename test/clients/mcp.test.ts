/** The agents' endpoint and command by what other people's agents are made of: the protocol's SDK of the generation before, and its inspector. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { MAIN, startServer, type TestServer } from "../support/server.ts";

const run = promisify(execFile);
const KEY = "the-key-of-the-agent";

interface OldClient {
  connect(transport: object): Promise<void>;
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(asked: { name: string; arguments: object }): Promise<{ content: { text: string }[] }>;
  close(): Promise<void>;
}

describeWith("clients", "agents", (modules) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ args: ["--api-key", KEY] });
    await server.put("/db/shop:main", {}, { authorization: `Bearer ${KEY}` });
  });
  afterAll(() => server?.stop());

  test("@modelcontextprotocol/sdk 1.x, over streamable HTTP and over stdio", async () => {
    const load = (path: string) => import(pathToFileURL(join(modules, "@modelcontextprotocol/sdk/dist/esm/client", path)).href);
    const [{ Client }, http, stdio] = await Promise.all([load("index.js"), load("streamableHttp.js"), load("stdio.js")]);
    const headers = { Authorization: `Bearer ${KEY}` };
    const env = { PATH: process.env.PATH, LODESTONE_API_KEY: KEY };
    for (const transport of [
      new http.StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }),
      new stdio.StdioClientTransport({ command: process.execPath, args: [MAIN, "mcp", "--url", server.url], env }),
    ]) {
      const client: OldClient = new Client({ name: "test", version: "1" });
      await client.connect(transport);
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain("vector_search");
      const { content } = await client.callTool({ name: "list_databases", arguments: {} });
      expect(JSON.parse(content[0]?.text ?? "").databases).toMatchObject([{ name: "shop" }]);
      await client.close();
    }
  });

  test("the inspector lists the tools and calls one, over both", async () => {
    const inspect = async (...args: string[]) => {
      const env = { PATH: process.env.PATH, LODESTONE_API_KEY: KEY };
      const { stdout } = await run(
        process.execPath,
        [join(modules, "@modelcontextprotocol/inspector/cli/build/cli.js"), "--cli", ...args],
        { env },
      );
      return JSON.parse(stdout);
    };
    for (const target of [
      [`${server.url}/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${KEY}`],
      [process.execPath, MAIN, "mcp", "--url", server.url, "-e", `LODESTONE_API_KEY=${KEY}`],
    ]) {
      expect((await inspect(...target, "--method", "tools/list")).tools.map(({ name }: { name: string }) => name)).toContain("search");
      const asked = ["--tool-arg", "database=shop", "--tool-arg", "statement=SELECT 7 AS n"];
      const { content } = await inspect(...target, "--method", "tools/call", "--tool-name", "run_sql", ...asked);
      expect(JSON.parse(content[0].text).records).toEqual([{ n: 7 }]);
    }
  });
});
