/**
 * Two cells behind the map of deploy/nginx/cells.conf: every URL reaches its tenant, and a tenant moves
 * without losing a write.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startNginx, type TestNginx } from "../support/nginx.ts";
import { describeWith } from "../support/requirements.ts";
import { runCommand, startServer, type TestServer } from "../support/server.ts";

const TABLE = { columns: [{ name: "n", type: "int" }] };
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describeWith("nginx", "Two cells behind nginx", (bin) => {
  let cells: TestServer[];
  let nginx: TestNginx;
  const folder = mkdtempSync(join(tmpdir(), "lodestone-move-"));
  beforeAll(async () => {
    cells = await Promise.all([startServer(), startServer()]);
    nginx = await startNginx(bin, "cells.conf", (text, directory) =>
      text
        .replace("cell-1-lodestone:8787", `127.0.0.1:${cells[0]!.port}`)
        .replace("cell-2-lodestone:8787", `127.0.0.1:${cells[1]!.port}`)
        .replace("/etc/nginx/lodestone-cells.map*", `${directory}/cells.map*`),
    );
  });
  afterAll(async () => {
    await nginx.stop();
    for (const cell of cells) await cell.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${nginx.port}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    return { status: response.status, headers: response.headers, body: await response.json().catch(() => undefined) };
  };
  const databasesOf = async (cell: TestServer): Promise<string[]> =>
    ((await cell.get("/dbs")).body.databases as { name: string }[]).map(({ name }) => name).sort();

  it("routes each database to its cell, however its name and its colon are written", async () => {
    for (const path of [
      "/db/acme:main",
      "/db/acme%3Aside",
      "/db/%61cme%3athird",
      "/db/other:main",
      "/db/acme2%3Amain",
      "/db/umbrella:main",
    ]) {
      expect([path, (await ask("PUT", path)).status]).toEqual([path, 201]);
    }
    expect(await databasesOf(cells[0]!)).toEqual(["acme2", "other"]);
    expect(await databasesOf(cells[1]!)).toEqual(["acme", "umbrella"]);
    expect((await ask("GET", "/dbs/acme")).body.branches.map(({ name }: { name: string }) => name).sort()).toEqual([
      "main",
      "side",
      "third",
    ]);
    // The request arrives as it was sent: an encoded slash is part of a name, and refused as such.
    expect((await ask("GET", "/db/acme%3Amain/tables/a%2Fb/schema")).status).toBe(400);
  });

  it("moves a tenant: everything acknowledged is there, and nobody writes to the old place", async () => {
    await ask("PUT", "/db/mover:main");
    await ask("PUT", "/db/mover:main/tables/t", TABLE);
    const acknowledged: number[] = [];
    let isMoving = true;
    let refused = 0;
    const writer = (async () => {
      for (let n = 0; isMoving; n++) {
        // A proxy that reloads its configuration closes idle kept-alive connections. A request just sent on
        // one gets no response, and nothing was promised.
        const answer = await ask("PUT", `/db/mover%3Amain/tables/t/data/r${n}`, { n }).catch(() => null);
        if (answer?.status === 201) acknowledged.push(n);
        else if (answer !== null) {
          expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
          refused++;
        }
        await sleep(2);
      }
    })();
    await expect.poll(() => acknowledged.length).toBeGreaterThan(20);
    await nginx.rewrite("cells.map", "mover moving;\n");
    // The writer sends one request at a time: when one is refused, all before it have been answered.
    await expect.poll(() => refused).toBeGreaterThan(0);
    expect((await runCommand(["export", "mover:main", "--out", folder, "--url", cells[0]!.url])).code).toBe(0);
    expect((await runCommand(["import", folder, "mover:main", "--create", "--url", cells[1]!.url])).code).toBe(0);
    await nginx.rewrite("cells.map", "mover cell-2;\n");
    const before = acknowledged.length;
    await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 20);
    isMoving = false;
    await writer;
    expect(refused).toBeGreaterThan(0);
    const { body } = await ask("POST", "/db/mover:main/sql", { statement: 'SELECT "n" FROM "t" ORDER BY "n" LIMIT 1000' });
    const stored = new Set(body.records.map(({ n }: { n: number }) => n));
    expect(acknowledged.filter((n) => !stored.has(n))).toEqual([]);
    expect((await cells[0]!.get(`/db/mover:main/tables/t/data/r${acknowledged.at(-1)}`)).status).toBe(404);
  });
});
