import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { updateFile } from "../../src/files/replace-file.ts";
import { createKey, readKeyFile, revokeKey } from "../../src/http/keys/key-file.ts";

const folder = mkdtempSync(join(tmpdir(), "lodestone-replace-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a file that several writers change", () => {
  it("loses no key, however many are created at once", async () => {
    const file = join(folder, "keys.json");
    const names = Array.from({ length: 20 }, (_, i) => `key-${i}`);
    await Promise.all(names.map((name) => createKey(file, name, "read")));
    expect((await readKeyFile(file)).map(({ name }) => name).sort()).toEqual([...names].sort());
    await Promise.all(names.slice(1).map((name) => revokeKey(file, name)));
    expect((await readKeyFile(file)).map(({ name }) => name)).toEqual(["key-0"]);
  });

  it("keeps its content when an update fails, and leaves nothing beside it", async () => {
    const file = join(folder, "kept");
    writeFileSync(file, "old");
    const update = updateFile(file, () => Promise.reject(new Error("no")), 0o600);
    await expect(update).rejects.toThrow("no");
    expect(readFileSync(file, "utf8")).toBe("old");
    expect(readdirSync(folder)).not.toContain("kept.new");
  });

  it("is changed whatever a writer that crashed left beside it, with the mode that was asked for", async () => {
    const file = join(folder, "left");
    writeFileSync(`${file}.new`, "half", { mode: 0o666 });
    await updateFile(file, async () => "new", 0o600);
    expect(readFileSync(file, "utf8")).toBe("new");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).filter((name) => name.startsWith("left."))).toEqual([]);
  });
});
