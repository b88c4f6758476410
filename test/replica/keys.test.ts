/** A replica whose key is revoked, and one whose key is changed for another. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { hashKey } from "../../src/http/keys/access-keys.ts";
import { Replica } from "../../src/library/replica/replica.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { startServer } from "../support/server.ts";

it("ends when its key is revoked, keeps what it has, and goes on with the key that it gets then", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-keys-"));
  const file = join(folder, "keys.json");
  const keys = { admin: "admin", old: "read", new: "read" } as const;
  const write = (names: readonly (keyof typeof keys)[]): void =>
    writeFileSync(
      file,
      JSON.stringify({
        version: 1,
        keys: names.map((name) => ({ name, hash: hashKey(name), scope: keys[name], createdAt: new Date(0).toISOString() })),
      }),
    );
  write(["admin", "old"]);
  const server = await startServer({ args: ["--key-file", file] });
  const open: Replica[] = [];
  try {
    const admin = { authorization: "Bearer admin" };
    const table = "/db/k:main/tables/t";
    expect((await server.request("PUT", "/db/k:main", undefined, admin)).status).toBe(201);
    await server.request("PUT", table, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] }, admin);
    await server.request("PUT", `${table}/data/one`, { v: [1, 2] }, admin);
    const request = { url: `${server.url}/db/k:main`, table: "t", columns: ["v"] };
    await expect(Replica.open({ ...request, key: "wrong" })).rejects.toThrow(/key/);
    let key = "old";
    const [fixed, changing] = [await Replica.open({ ...request, key: "old" }), await Replica.open({ ...request, key: () => key })];
    open.push(fixed, changing);
    await changing.current();
    await fixed.current();
    key = "new";
    write(["admin", "new"]);
    await expect.poll(() => fixed.status.phase, { timeout: LIMIT_MS }).toBe("failed");
    await server.request("PUT", `${table}/data/two`, { v: [2, 2] }, admin);
    await expect.poll(() => changing.get("two"), { timeout: LIMIT_MS }).toBeDefined();
    expect([changing.status.phase, fixed.size]).toEqual(["current", 1]);
    expect((await fixed.search([1, 2])).results.map(({ id }) => id)).toEqual(["one"]);
    await expect(fixed.current()).rejects.toThrow(/key/);
  } finally {
    for (const replica of open) await replica.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
