import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { runHere } from "../support/run-here.ts";
import { runCommand, startServer } from "../support/server.ts";

const folder = mkdtempSync(join(tmpdir(), "lodestone-serve-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Whether new connections are accepted. */
async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

describe("lodestone", () => {
  it("shows its version and its commands", async () => {
    expect((await runCommand(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+(?: \([0-9a-f]{12}(?:-changed)?\))?\n$/);
    const { code, stdout } = await runCommand(["--help"]);
    expect(code).toBe(0);
    for (const command of ["serve", "demo", "import", "export", "keys"]) expect(stdout).toContain(`  ${command}`);
  });

  it.each([
    [
      ["serve"],
      ["--host", "--port", "--data-dir", "--database-url", "--api-key", "--key-file", "--cors-origin", "--demo", "LODESTONE_PORT"],
    ],
    [["import"], ["--create", "--vector-column", "--id-column", "--restart", "--url", "LODESTONE_URL", "fvecs"]],
    [["export"], ["--out", "--url", "--api-key"]],
    [["demo"], ["--url"]],
    [["keys"], ["create", "list", "revoke"]],
    [
      ["keys", "create"],
      ["--scope", "--database", "--file"],
    ],
  ])("%s --help tells its options", async (command, words) => {
    const { code, stdout } = await runHere([...command, "--help"]);
    expect(code).toBe(0);
    for (const word of words) expect(stdout).toContain(word);
  });

  it.each([
    [["serve"], "--host", "localhost, IPv4 and IPv6"],
    [["serve"], "--statement-timeout", "60; 10 for SQL over HTTP on the embedded database"],
    [["serve"], "--journal-size", "half of the index"],
    [["serve"], "--max-memory", "what the machine or its control group has"],
    [["import"], "--format", "by its name"],
  ])("%s --help tells the default of %s where it is not a constant", async (command, option, value) => {
    const text = (await runHere([...command, "--help"])).stdout.replaceAll(/\s+/g, " ");
    expect(text).toMatch(new RegExp(`${option} <\\w+> [^<]*\\(default: ${value}`));
  });

  it.each([
    [["serve", "--port", "70000"], "Expected a port from 0 to 65535"],
    [["serve", "--nothing"], "unknown option '--nothing'"],
    [["nothing"], "unknown command 'nothing'"],
    [["serve", "--statement-timeout", "0"], "Expected seconds"],
    [["export"], "missing required argument"],
    [["demo", "--url", "nonsense"], "--url: expected an address"],
  ])("%j is refused with a sentence", async (args, message) => {
    expect(await runHere(args)).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
  });

  it.each([[["serve", "--port", "70000"]], [["demo", "--url", "nonsense"]]])("%j ends with exit code 1, without a stack", async (args) => {
    const { code, stderr } = await runCommand(args);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/expected an? /i)]);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});

describe("lodestone serve", () => {
  it("starts on an empty folder, prints where it listens and what to try, and reads settings from the environment", async () => {
    const dataDir = join(folder, "fresh", "data");
    const server = await startServer({
      dataDir,
      env: { LODESTONE_LOG_LEVEL: "silent", LODESTONE_STATEMENT_TIMEOUT: "3600" },
      args: ["--demo"],
    });
    try {
      expect(server.stdout).toContain(`Data in ${dataDir}`);
      expect(server.stdout).toMatch(/Try:\ncurl -s http:\/\/127\.0\.0\.1:\d+\/db\/demo:main/);
      const { body } = await server.post("/db/demo:main/tables/colors/vectorSearch", {
        column: "lab",
        queryVector: [53.241, 80.092, 67.203],
        similarityFunction: "l2",
        size: 2,
        consistency: "strong",
      });
      expect(body.totalCount).toBe(148);
      expect(body.results[0].id).toBe("red");
      const printed = /Try:\n(curl [\s\S]*?)\n\n/.exec(server.stdout)?.[1] as string;
      const { stdout } = await promisify(execFile)("bash", ["-c", printed]);
      expect(JSON.parse(stdout).results[0]).toMatchObject({ id: "rebeccapurple", score: 1 });
    } finally {
      await server.stop();
    }
    expect(server.log).toBe("");
  });

  it.each(["SELECT count(*) FROM generate_series(1, 1e12)", 'INSERT INTO "t" ("n") SELECT generate_series(1, 2000000000)'])(
    "on SIGTERM gives up, with 503, what would run on: %s",
    async (statement) => {
      // The statement's own time limit must not help: the test would not wait for it.
      const server = await startServer({ args: ["--statement-timeout", "3600"] });
      try {
        await server.put("/db/s:main");
        await server.put("/db/s:main/tables/t", { columns: [{ name: "n", type: "int" }] });
        expect((await server.put("/db/s:main/tables/t/data/kept", { n: -1 })).status).toBe(201);
        const running = server.post("/db/s:main/sql", { statement }).catch((error: Error) => error);
        while (!(await server.get("/metrics")).text.includes("lodestone_http_requests_in_progress 1\n"))
          await new Promise((resolve) => setTimeout(resolve, 20));
        expect(await server.end("SIGTERM")).toBe(0);
        expect(await running).toMatchObject({ status: 503, headers: { "retry-after": expect.any(String) } });
        expect(server.log).toContain('"msg":"stopped"');
        await server.start();
        const { body } = await server.post("/db/s:main/sql", { statement: 'SELECT "id" FROM "t"' });
        expect(body.records).toEqual([{ id: "kept" }]);
      } finally {
        await server.end("SIGKILL");
        await server.stop();
      }
    },
  );

  it.each(["SIGTERM", "SIGINT"] as const)(
    "on %s completes a request in flight, refuses new ones, and keeps what it answered",
    async (signal) => {
      const server = await startServer();
      try {
        await server.put("/db/s:main");
        await server.put("/db/s:main/tables/t", { columns: [{ name: "n", type: "int" }] });
        // Half of its body has arrived when the signal comes: "100 Continue" shows that the server waits for
        // it.
        const inFlight = connect(server.port, "127.0.0.1");
        let answer = "";
        inFlight.on("data", (chunk) => {
          answer += chunk.toString();
        });
        const closed = once(inFlight, "close");
        inFlight.write("PUT /db/s:main/tables/t/data/r HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
        inFlight.write('Content-Length: 8\r\nExpect: 100-continue\r\n\r\n{"n"');
        await expect.poll(() => answer).toMatch(/^HTTP\/1\.1 100 Continue/);
        const ended = server.end(signal);
        await expect.poll(() => isListening(server.port)).toBe(false);
        inFlight.write(": 7}");
        await closed;
        expect(answer).toMatch(/\r\n\r\nHTTP\/1\.1 201 Created/);
        expect(await ended).toBe(0);
        expect(server.log).toContain('"msg":"stopped"');
        await server.start();
        expect((await server.get("/db/s:main/tables/t/data/r")).body).toMatchObject({ n: 7 });
      } finally {
        await server.stop();
      }
    },
  );

  it("refuses a data directory that another server has open, and does not disturb that server", async () => {
    const server = await startServer();
    try {
      const second = await runCommand(["serve", "--port", "0", "--data-dir", server.dataDir]);
      expect(second.code).toBe(1);
      expect(second.stdout).toBe("");
      expect(second.stderr).toMatch(/lodestone: .*(in use|another)/i);
      expect((await server.put("/db/still:main")).status).toBe(201);
      // A port in use is reported as well; the running server's port serves for that.
      const other = await runCommand(["serve", "--port", String(server.port), "--data-dir", join(folder, "other")]);
      expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining(`Port ${server.port} of 127.0.0.1 is taken`) });
    } finally {
      await server.stop();
    }
  });

  it("refuses a database server that does not exist, without revealing its password", async () => {
    const refused = await runCommand(["serve", "--port", "0", "--database-url", "postgres://user:s3cret@127.0.0.1:1/x"]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^lodestone: /m);
    expect(refused.stderr).not.toContain("s3cret");
  });
});

describe("lodestone demo", () => {
  it("loads the colours into a running server, and can be repeated", async () => {
    const server = await startServer();
    try {
      for (let i = 0; i < 2; i++) {
        const { code, stdout } = await runCommand(["demo", "--url", server.url]);
        expect(code).toBe(0);
        expect(stdout).toContain(`curl -s ${server.url}/db/demo:main/tables/colors/vectorSearch`);
      }
      const { body } = await server.post("/db/demo:main/sql", { statement: 'SELECT count(*)::int AS n FROM "colors"' });
      expect(body.records).toEqual([{ n: 148 }]);
    } finally {
      await server.stop();
    }
  });

  it("waits for a busy server, and reports when there is none", async () => {
    let requests = 0;
    // Answers "come back later" for a while, then nothing at all.
    const busy = createServer((_request, response) => {
      requests++;
      response.writeHead(503, { "content-type": "application/json" }).end('{"id": "x", "message": "starting"}');
      if (requests === 3) busy.close(() => {});
      if (requests >= 3) busy.closeAllConnections();
    });
    await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
    const { port } = busy.address() as AddressInfo;
    const { code, stderr } = await runCommand(["demo", "--url", `http://127.0.0.1:${port}`]);
    expect(code).toBe(1);
    expect(requests).toBeGreaterThanOrEqual(3);
    expect(stderr).toMatch(/No server answers at http:\/\/127\.0\.0\.1:\d+ \(.*\)\. Start one with "lodestone serve"/);
  });
});
