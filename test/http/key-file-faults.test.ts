/** Key files in bad condition: a change that died, a lock that somebody holds, a file that is broken, empty or gone. */
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, unwatchFile, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Keyring } from "../../src/http/keys/access-keys.ts";
import { FollowedKeyFile } from "../../src/http/keys/followed-key-file.ts";
import { createKey, readKeyFile, revokeKey } from "../../src/http/keys/key-file.ts";
import { runCommand, startServer, type TestServer } from "../support/server.ts";

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

let folder: string;
let file: string;
let boss: { authorization: string };
let server: TestServer | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "lodestone-key-file-"));
  file = join(folder, "keys.json");
  boss = bearer(await createKey(file, "boss", "admin"));
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const serve = async (env: Record<string, string> = {}, dataDir?: string): Promise<TestServer> =>
  startServer({ args: ["--key-file", file], env: { LODESTONE_LOG_LEVEL: "warn", ...env }, ...(dataDir === undefined ? {} : { dataDir }) });
const names = async (): Promise<string[]> => (await readKeyFile(file)).map(({ name }) => name);
const locks = (): string[] => readdirSync(folder).filter((name) => name.startsWith("keys.json.lock-"));

describe("a key change that is killed", () => {
  it("in the server, leaves the keys as they were, and they can be changed again", async () => {
    const leaked = await createKey(file, "leaked", "admin");
    const killed = await serve({ LODESTONE_CRASH_AT: "file-written" });
    try {
      await expect(killed.post("/keys", { name: "lost", scope: "read" }, boss)).rejects.toThrow();
      await expect.poll(() => killed.isRunning).toBe(false);
      expect(locks()).toHaveLength(1);
      server = await serve({}, killed.dataDir);
      expect(await names()).toEqual(["boss", "leaked"]);
      expect((await server.delete("/keys/leaked", boss)).status).toBe(204);
      expect((await server.get("/dbs", bearer(leaked))).status).toBe(401);
      expect((await server.post("/keys", { name: "found", scope: "read" }, boss)).status).toBe(201);
      expect(await names()).toEqual(["boss", "found"]);
      // Nothing of the killed change is left.
      expect(readdirSync(folder)).toEqual(["keys.json"]);
      await server.end("SIGTERM");
    } finally {
      await killed.stop();
    }
  });

  it.each(["file-locked", "file-written"])("at %s by the command line, delays nobody", async (point) => {
    expect(await runCommand(["keys", "create", "lost", "--scope", "read", "--file", file], { LODESTONE_CRASH_AT: point })).toMatchObject({
      code: null,
    });
    expect(locks()).toHaveLength(1);
    await createKey(file, "found", "read");
    await revokeKey(file, "boss");
    expect(await names()).toEqual(["found"]);
    expect(readdirSync(folder)).toEqual(["keys.json"]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe("a server whose key file cannot be read", () => {
  const FAULT = "The server's key file cannot be read: keys that were revoked in it since may still be accepted.";

  it("says so once, loudly and without the path, and works with the keys that it has until the file is mended", async () => {
    const late = bearer(await createKey(file, "late", "read"));
    server = await serve();
    const at = server;
    const good = readFileSync(file, "utf8");
    const faults = () => at.log.split("\n").filter((line) => line.includes("the key file cannot be read"));
    const ready = async () => (await at.get("/readyz")).body;
    expect(await ready()).not.toHaveProperty("keyFile");
    let seen = 0;
    for (const [damage, cause] of [
      [() => writeFileSync(file, ""), "Unexpected end of JSON input"],
      [() => writeFileSync(file, good.slice(0, -20)), "is damaged"],
      [() => writeFileSync(file, '{"version":1,"keys":[{"name":"x"}]}'), "is damaged"],
      [() => renameSync(file, `${file}.away`), "There is no key file"],
    ] as const) {
      damage();
      await expect.poll(() => faults().length).toBe(++seen);
      expect(faults().at(-1)).toContain(cause);
      expect(await ready()).toMatchObject({ status: "ready", keyFile: expect.stringContaining(FAULT) });
      // Asked again, it does not say the same again.
      for (const answer of [
        await at.get("/keys", boss),
        await at.post("/keys", { name: "new", scope: "read" }, boss),
        await at.delete("/keys/late", boss),
      ]) {
        expect(answer).toMatchObject({ status: 503, body: { message: expect.stringContaining(FAULT) } });
        expect(answer.text).not.toContain(folder);
      }
      expect((await at.get("/dbs", late)).status).toBe(200);
      expect(faults()).toHaveLength(seen);
    }
    expect(readdirSync(folder)).toEqual(["keys.json.away"]);
    // Mended, and a key fewer.
    const { keys } = JSON.parse(good);
    writeFileSync(file, JSON.stringify({ version: 1, keys: keys.filter(({ name }: { name: string }) => name !== "late") }));
    await expect.poll(() => at.log).toContain("the key file can be read again");
    expect(await ready()).not.toHaveProperty("keyFile");
    expect((await at.get("/dbs", late)).status).toBe(401);
    expect((await at.get("/keys", boss)).status).toBe(200);
    expect((await at.delete("/keys/late", boss)).text).not.toContain(folder);
  });

  it("notices the end of a fault that is no change of the file", async () => {
    const keyring = new Keyring(await readKeyFile(file));
    const followed = new FollowedKeyFile(file, keyring, [], pino({ level: "silent" }));
    try {
      // As if the file system had failed: there is no change to be seen.
      unwatchFile(file);
      const good = readFileSync(file);
      writeFileSync(file, "");
      await expect(followed.read()).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect(followed.fault).toContain(FAULT);
      writeFileSync(file, good);
      await expect.poll(() => followed.fault).toBeUndefined();
      expect(keyring.authenticate(boss.authorization)).toMatchObject({ name: "boss" });
    } finally {
      followed.close();
    }
  });
});
