/** Answers as gzip, to those who ask for it and to nobody else. */
import { request } from "node:http";
import { connect } from "node:net";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMIT_MS } from "../support/patience.ts";
import { startServer, type TestServer } from "../support/server.ts";

const TABLE = "/db/zip:main/tables/things";

describe("compressed answers", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer();
    await server.put("/db/zip:main");
    await server.put(TABLE, { columns: [{ name: "name", type: "text" }] });
    const records = Array.from({ length: 900 }, (_, i) => ({ id: `r${i}`, name: `thing ${i} ${"of many words ".repeat(i % 40)}ü😀` }));
    expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
  });
  afterAll(() => server.stop());

  function send(method: string, path: string, encoding: string | undefined, body?: object) {
    return new Promise<{ status: number; headers: Record<string, unknown>; bytes: Buffer }>((resolve, reject) => {
      const headers = { "Content-Type": "application/json", ...(encoding !== undefined && { "Accept-Encoding": encoding }) };
      const call = request(`${server.url}${path}`, { method, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, bytes: Buffer.concat(chunks) }));
        response.on("error", reject);
      });
      call.on("error", reject);
      call.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
  const query = (size: number) => ["POST", `${TABLE}/query`, { page: { size } }] as const;

  it.each([
    ["held in one piece", ...query(20)],
    ["made in pieces", ...query(900)],
    ["of SQL", "POST", "/db/zip:main/sql", { statement: 'SELECT * FROM "things" ORDER BY "id"' }],
    ["that is text", "GET", "/metrics", undefined],
  ] as const)("an answer %s is the same, and shorter", async (_name, method, path, body) => {
    const plain = await send(method, path, undefined, body);
    expect(plain.headers).not.toHaveProperty("content-encoding");
    expect(plain.headers.vary).toMatch(/Accept-Encoding/);
    // Counters count, and each cursor is sealed anew.
    const compared = (text: string): string => (path === "/metrics" ? "" : text.replace(/"cursor":"[^"]*"/, ""));
    for (const encoding of ["gzip", "br, gzip, deflate", "gzip, deflate", "*"]) {
      const packed = await send(method, path, encoding, body);
      expect([packed.status, packed.headers["content-encoding"], packed.headers["content-type"]]).toEqual([
        200,
        "gzip",
        plain.headers["content-type"],
      ]);
      const text = gunzipSync(packed.bytes).toString();
      expect(compared(text)).toBe(compared(plain.bytes.toString()));
      expect(packed.bytes.length).toBeLessThan(text.length / 2);
    }
    for (const encoding of ["identity", "gzip;q=0", "br", ""]) {
      const { headers, bytes } = await send(method, path, encoding, body);
      expect(headers).not.toHaveProperty("content-encoding");
      expect(compared(bytes.toString())).toBe(compared(plain.bytes.toString()));
    }
  });

  it("short answers, errors and those without a body are as they were", async () => {
    for (const [method, path, body] of [
      ["GET", `${TABLE}/data/r1`],
      ["GET", `${TABLE}/data/absent`],
      ["POST", `${TABLE}/query`, { page: { size: -1 } }],
      ["DELETE", `${TABLE}/data/absent`],
      ["HEAD", "/openapi.json"],
    ] as const) {
      const [plain, asked] = [await send(method, path, undefined, body), await send(method, path, "gzip", body)];
      expect(asked.headers).not.toHaveProperty("content-encoding");
      expect([asked.status, asked.bytes.length]).toEqual([plain.status, plain.bytes.length]);
    }
  });

  it("pipelined ones come in the order of the requests", async () => {
    const socket = connect(server.port, "127.0.0.1");
    const ask = (path: string, encoding: string, more = "") =>
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: ${encoding}\r\n${more}\r\n`;
    socket.write(
      ask("/openapi.json", "gzip") + ask(`${TABLE}/data/r1`, "gzip") + ask("/openapi.json", "identity", "Connection: close\r\n"),
    );
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    const heads = Buffer.concat(chunks).toString("latin1").split("HTTP/1.1 200 OK").slice(1);
    expect(heads.map((head) => /content-encoding: gzip/i.test(head.slice(0, 600)))).toEqual([true, false, false]);
  });

  it("a reader that leaves in the middle of one, or takes it slowly, holds nobody up", async () => {
    const call = request(`${server.url}${TABLE}/query`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Accept-Encoding": "gzip" },
    });
    call.on("error", () => {});
    call.end(JSON.stringify({ page: { size: 900 } }));
    await new Promise<void>((resolve) => {
      call.on("response", (response) => {
        response.on("error", () => {});
        response.once("data", () => {
          call.destroy();
          resolve();
        });
      });
    });
    const held = async () => /lodestone_answer_memory_bytes(?:\{[^}]*\})? (\d+)/.exec((await server.get("/metrics")).text)?.[1];
    await expect.poll(held, { timeout: LIMIT_MS }).toBe("0");
    const [method, path, body] = query(900);
    expect((await send(method, path, "gzip", body)).status).toBe(200);
  });
});
