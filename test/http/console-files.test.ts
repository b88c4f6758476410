/**
 * How the console is served: its headers, its caching, who may get it, and that it changes nothing else of
 * the server.
 */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";

const BUILT = fileURLToPath(new URL("../../dist/console/", import.meta.url));
const script = readdirSync(`${BUILT}assets`).find((name) => /^main-.*\.js$/.test(name)) as string;

describe("the console's files", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ args: ["--api-key", "k"] });
  });
  afterAll(() => server.stop());

  it("need no key, and have a policy that allows this server's own files and nothing else", async () => {
    expect(server.stdout).toContain(`Console: ${server.url}/console`);
    const { status, headers, text } = await server.get("/console");
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self';/);
    expect(headers["content-security-policy"]).not.toMatch(/unsafe-inline|'unsafe-eval'|https?:|\*/);
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
      "cache-control": "no-cache",
    });
    expect(text).toContain(`console/assets/${script}`);
    // The page itself contains neither script nor style, and loads nothing from elsewhere.
    expect(text).not.toMatch(/<style|<script(?![^>]* src=)|(src|href)="(https?:)?\/\//);
  });

  it("are cached by browsers if their names depend on their content, and revalidated otherwise", async () => {
    const { headers } = await server.get(`/console/assets/${script}`);
    expect(headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    expect(headers["content-type"]).toBe("text/javascript; charset=utf-8");
    expect(headers["x-content-type-options"]).toBe("nosniff");
    const page = await server.get("/console");
    const again = await server.get("/console", { "if-none-match": page.headers.etag });
    expect(again).toMatchObject({ status: 304, text: "" });
  });

  it("are compressed for clients that accept it, and the first load is below 350 kB", async () => {
    const load = (path: string) => fetch(server.url + path, { headers: { "accept-encoding": "gzip" } });
    const page = await load("/console");
    expect(page.headers.get("vary")).toContain("Accept-Encoding");
    const paths = [...(await page.text()).matchAll(/(?:src|href)="(console\/assets\/[^"]+)"/g)].map((match) => `/${match[1]}`);
    expect(paths).toHaveLength(2);
    let bytes = 0;
    for (const path of paths) {
      const { headers } = await server.get(path, { "accept-encoding": "gzip" });
      expect(headers["content-encoding"]).toBe("gzip");
      bytes += Number(headers["content-length"]);
      const { headers: plain } = await server.get(path);
      expect(plain).not.toHaveProperty("content-encoding");
    }
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(350 * 1024);
  });

  it.each([
    "/console/assets/../../package.json",
    "/console/%2e%2e/%2e%2e/package.json",
    "/console/assets/",
    "/console/index.html",
    "/console/x",
  ])("%s is none of them", async (path) => {
    const { status, text } = await server.get(path);
    expect([401, 404]).toContain(status);
    expect(text).not.toContain("dependencies");
  });

  it("can only be read; a final slash leads to the page", async () => {
    expect((await server.post("/console", {}, { authorization: "Bearer k" })).status).toBe(404);
    const { status, headers } = await server.get("/console/");
    expect(status).toBe(302);
    expect(headers.location).toBe("../console");
    expect((await server.request("HEAD", "/console")).text).toBe("");
  });

  it("leave the API unchanged: it requires a key, and its responses have no policy", async () => {
    const { status, headers } = await server.get("/dbs");
    expect(status).toBe(401);
    expect(headers).not.toHaveProperty("content-security-policy");
    expect((await server.get("/access")).status).toBe(401);
    expect((await server.get("/access", { authorization: "Bearer k" })).body).toMatchObject({ scope: "admin", keyName: "--api-key 1" });
  });
});

describe("without keys", () => {
  it("the console's own page may write, a page of another port may not; --no-console serves none", async () => {
    const server = await startServer({ args: ["--no-console"] });
    try {
      expect(server.stdout).not.toContain("/console");
      expect((await server.get("/console")).status).toBe(404);
      const from = (origin: string, host = `127.0.0.1:${server.port}`) => server.put("/db/a:main", {}, { origin, host });
      expect((await from(`http://127.0.0.1:${server.port + 1}`)).status).toBe(403);
      expect((await from("http://localhost")).status).toBe(403);
      expect((await from("null")).status).toBe(403);
      expect((await from("http://evil.example", "evil.example")).status).toBe(403);
      expect((await server.get("/dbs")).body.databases).toEqual([]);
      expect((await from(`http://127.0.0.1:${server.port}`)).status).toBe(201);
      expect((await server.get("/access")).body).toEqual({ scope: "admin", databases: null, keyName: null, version: "0.1.0" });
    } finally {
      await server.stop();
    }
  });
});
