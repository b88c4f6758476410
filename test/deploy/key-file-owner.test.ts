/** A key file that belongs to somebody else, as a container's user meets it: 10001, without rights. */
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { MAIN, runCommand } from "../support/server.ts";

const USER = 10_001;

describeWith("containers", "The server's user", () => {
  let folder: string;
  let file: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "lodestone-key-file-"));
    chmodSync(folder, 0o755);
    file = join(folder, "keys.json");
    expect((await runCommand(["keys", "create", "app", "--scope", "write", "--file", file])).code).toBe(0);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const asUser = (...args: string[]) => {
    const rights = ["--reuid", String(USER), "--regid", String(USER), "--clear-groups", "--no-new-privs", "--bounding-set=-all"];
    return spawnSync("setpriv", [...rights, process.execPath, MAIN, ...args], { encoding: "utf8", env: { PATH: process.env.PATH } });
  };

  it("is told in a sentence how to get a key file that it may not read, and can read it then", () => {
    const data = join(folder, "data");
    const refused = asUser("serve", "--port", "0", "--data-dir", data, "--key-file", file, "--log-level", "warn");
    expect([refused.status, refused.stderr.trim()]).toEqual([
      1,
      `lodestone: The key file ${file} may not be read by ${USER}:${USER}: give it to that user (chown ${USER}:${USER} ${file}), or create it as that user. Its folders must be open to it, too.`,
    ]);
    chownSync(file, USER, USER);
    expect(asUser("keys", "list", "--file", file)).toMatchObject({ status: 0, stdout: expect.stringContaining("app") });
  });

  it("makes one that it can read, in a folder of its own", () => {
    const own = mkdtempSync(join(folder, "keys-"));
    chownSync(own, USER, USER);
    const made = asUser("keys", "create", "app", "--scope", "write", "--file", join(own, "keys.json"));
    expect(made.status).toBe(0);
    expect(asUser("keys", "list", "--file", join(own, "keys.json"))).toMatchObject({ status: 0, stdout: expect.stringContaining("app") });
  });
});
