/** `/mcp` as HTTP: who may call it, with which rights, and what is refused. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refuseForeignOrigin } from "../../src/http/cross-site-requests.ts";
import type { ApiRequest } from "../../src/http/endpoint.ts";
import { mcpEndpoints } from "../../src/http/endpoints/mcp.ts";
import type { Services } from "../../src/http/endpoints/services.ts";
import { runHere } from "../support/run-here.ts";
import { startServer, type TestServer } from "../support/server.ts";
import type { ServerClient } from "../support/server-client.ts";
import type { SharedServer } from "../support/shared-server.ts";
import { sharedServer } from "../support/shared-server.ts";

const ACCEPT = { accept: "application/json, text/event-stream" };
const message = (method: string, params: object = {}) => ({ jsonrpc: "2.0", id: 1, method, params });

/** The result, whichever form it has; with the generation of 2025, which needs no more than this. */
async function ask(to: ServerClient, method: string, params: object, headers = {}) {
  const { status, text } = await to.post("/mcp", message(method, params), { ...ACCEPT, "mcp-protocol-version": "2025-06-18", ...headers });
  expect(status, text).toBe(200);
  return JSON.parse(text.replace(/^event: message\ndata: /, "")).result;
}

const callOf = (name: string, asked: object) => ({ name, arguments: asked });

it("a page may call from an origin that is named, or from any", () => {
  const headers = { origin: "https://app.example", host: "api.example:8787" };
  expect(() => refuseForeignOrigin(headers, ["https://other.example"])).toThrow(/--cors-origin/);
  for (const allowed of ["https://app.example", "*"]) expect(() => refuseForeignOrigin(headers, [allowed])).not.toThrow();
});

it("what nobody foresaw ends the request, and is not told to the agent", async () => {
  const [endpoint] = mcpEndpoints({ version: "1" } as Services);
  const call = () => Promise.reject(new Error("a secret of the program"));
  const body = message("tools/call", callOf("list_databases", {}));
  const headers = { ...ACCEPT, "content-type": "application/json" };
  const request = { requestId: "r", headers, body, call, caller: undefined, signal: new AbortController().signal };
  await expect(endpoint?.handle(request as unknown as ApiRequest)).rejects.toThrow("a secret of the program");
});

describe("without keys", () => {
  let server: SharedServer;
  beforeAll(async () => {
    server = await sharedServer();
  });
  afterAll(() => server?.stop());

  it("pages from elsewhere are refused, by their origin and by a name that is rebound", async () => {
    for (const headers of [{ origin: "https://evil.example" }, { host: "evil.example" }])
      expect((await server.post("/mcp", message("tools/list"), { ...ACCEPT, ...headers })).status).toBe(403);
  });

  it("there are no tools that write, if the operator did not ask for them", async () => {
    const { tools } = await ask(server, "tools/list", {});
    expect(tools.map(({ name }: { name: string }) => name)).not.toContain("delete_records");
    const { status, text } = await server.post("/mcp", message("tools/call", callOf("delete_records", {})), ACCEPT);
    expect([status, text]).toEqual([200, expect.stringContaining("not found")]);
  });

  it("there are no streams and sessions, and no batches: a request is one message", async () => {
    for (const method of ["GET", "DELETE"]) {
      const { status, headers } = await server.request(method, "/mcp", undefined, { accept: "text/event-stream" });
      expect([status, headers.allow]).toEqual([405, "POST, OPTIONS"]);
    }
    expect((await server.post("/mcp", message("tools/list"), ACCEPT)).headers).not.toHaveProperty("mcp-session-id");
    expect((await server.post("/mcp", [message("tools/list"), message("tools/list")], ACCEPT)).status).toBe(400);
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const listen = message("subscriptions/listen", { notifications: { toolsListChanged: true }, _meta: meta });
    const headers = { ...ACCEPT, "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen" };
    expect((await server.post("/mcp", listen, headers)).text).toContain("Subscription limit reached");
  });

  it("what is no message of the protocol is refused", async () => {
    expect((await server.post("/mcp", "no JSON", { ...ACCEPT, "content-type": "application/json" })).status).toBe(400);
    expect((await server.post("/mcp", { method: 1 }, ACCEPT)).status).toBe(400);
    expect((await server.post("/mcp", message("tools/list"), { accept: "application/json" })).status).toBe(406);
    expect((await server.post("/mcp", "{}", { ...ACCEPT, "content-type": "text/plain" })).status).toBe(415);
  });

  it("SQL over HTTP takes readOnly, too", async () => {
    await server.put("/db/agents:main", {});
    await server.put("/db/agents:main/tables/t", { columns: [{ name: "n", type: "int" }] });
    const statement = 'INSERT INTO "t" ("n") VALUES (1)';
    expect((await server.post("/db/agents:main/sql", { statement, readOnly: true })).status).toBe(403);
    expect((await server.post("/db/agents:main/sql", { statement: 'SELECT * FROM "t"', readOnly: true })).body.records).toEqual([]);
    expect((await server.post("/db/agents:main/sql", { statement, readOnly: false })).status).toBe(200);
  });
});

describe("with keys", () => {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-mcp-"));
  const file = join(folder, "keys.json");
  const keys: Record<string, { authorization: string }> = {};
  let server: TestServer;
  beforeAll(async () => {
    for (const [name, ...scope] of [
      ["admin", "--scope", "admin"],
      ["reader", "--scope", "read"],
      ["stranger", "--scope", "write", "--database", "other"],
    ] as const) {
      const { stdout } = await runHere(["keys", "create", name, ...scope, "--file", file]);
      keys[name] = { authorization: `Bearer ${stdout.trim()}` };
    }
    server = await startServer({ args: ["--key-file", file, "--mcp-write"], env: { LODESTONE_LOG_LEVEL: "debug" } });
    await server.put("/db/shop:main", {}, keys.admin);
    await server.put("/db/shop:main/tables/t", {}, keys.admin);
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("a request without one is refused (401), and one from a page from elsewhere (403)", async () => {
    const answer = await server.post("/mcp", message("tools/list"), ACCEPT);
    expect([answer.status, answer.headers["www-authenticate"]]).toEqual([401, expect.stringMatching(/^Bearer/)]);
    const foreign = { ...ACCEPT, ...keys.reader, origin: "https://evil.example" };
    expect((await server.post("/mcp", message("tools/list"), foreign)).status).toBe(403);
  });

  it("tools have the rights of the key, and no more", async () => {
    const namesFor = async (headers = {}) => (await ask(server, "tools/list", {}, headers)).tools.map(({ name }: { name: string }) => name);
    expect(await namesFor(keys.admin)).toContain("insert_records");
    expect(await namesFor(keys.reader)).not.toContain("insert_records");
    const insert = callOf("insert_records", { database: "shop", table: "t", records: [{}] });
    expect(await ask(server, "tools/call", insert, keys.stranger)).toMatchObject({
      isError: true,
      content: [{ text: 'The given key is not for the database "shop".' }],
    });
    expect((await ask(server, "tools/call", callOf("list_databases", {}), keys.stranger)).content).toEqual([
      { type: "text", text: '{"databases":[]}' },
    ]);
    expect((await ask(server, "tools/call", insert, keys.admin)).isError).not.toBe(true);
  });

  it("keys and arguments appear in no log", async () => {
    const secret = "an argument of a tool";
    await ask(server, "tools/call", callOf("search", { database: "shop", table: "t", query: secret }), keys.reader);
    const key = (keys.reader as { authorization: string }).authorization.slice("Bearer ".length);
    expect(server.log).toContain('"endpoint":"callMcp"');
    expect(server.log).not.toContain(key);
    expect(server.log).not.toContain(secret);
  });
});
