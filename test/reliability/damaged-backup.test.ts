/**
 * `lodestone restore` of backups that were damaged after they were made: each is refused with what is wrong, and
 * nothing is left behind. Backups with checksums of their files, and those of early versions without.
 */
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CommandResult, runCommand, startServer, TestServer } from "../support/server.ts";

const COUNT = 400;
/** Stored apart from its row, which has no room for it, and as it is, since it cannot be compressed. */
const LONG = Array.from({ length: 1_000 }, (_, i) => createHash("sha256").update(String(i)).digest("base64")).join("");

let root: string;
/** As it was made. */
let whole: string;
let made = 0;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "lodestone-damaged-"));
  whole = join(root, "whole");
  const server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
  try {
    await server.put("/db/kept:main");
    await server.put("/db/kept:main/tables/things", { columns: [{ name: "s", type: "text" }] });
    const records = Array.from({ length: COUNT }, (_, i) => ({ id: `r${i}`, s: i === 7 ? LONG : `things-filler ${i}` }));
    expect((await server.post("/db/kept:main/tables/things/bulk", { records })).status).toBe(200);
    const backup = await runCommand(["backup", "--url", server.url]);
    expect(backup).toMatchObject({ code: 0 });
    cpSync(backup.stdout.trim(), whole, { recursive: true });
  } finally {
    await server.stop();
  }
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** The table's own file, and the one of its long values. */
function fileWith(backup: string, text: string): string {
  const base = join(backup, "postgres", "base");
  const found = readdirSync(base, { recursive: true })
    .map((name) => join(base, String(name)))
    .filter((path) => statSync(path).isFile() && readFileSync(path).includes(text));
  expect(found).toHaveLength(1);
  return found[0]!;
}
const tableFile = (backup: string): string => fileWith(backup, "things-filler 399");

/** A copy of the backup, damaged, is restored in a folder that is looked at afterwards. */
async function restored(damage: (backup: string) => void): Promise<CommandResult & { left: string[]; target: string }> {
  const at = join(root, `${++made}`);
  const [backup, target] = [join(at, "backup"), join(at, "into", "data")];
  mkdirSync(join(at, "into"), { recursive: true });
  cpSync(whole, backup, { recursive: true });
  damage(backup);
  const result = await runCommand(["restore", backup, "--data-dir", target]);
  return { ...result, left: readdirSync(join(at, "into")), target };
}

async function refused(damage: (backup: string) => void, why: string | RegExp): Promise<void> {
  const { code, stdout, stderr, left } = await restored(damage);
  expect({ code, stdout, stderr, left }).toEqual({ code: 1, stdout: "", stderr: expect.stringMatching(why), left: [] });
  expect(stderr).toContain("Nothing was restored.");
  expect(stderr).not.toMatch(/\n\s+at /);
}

async function isWhole(dataDir: string): Promise<void> {
  const copy = new TestServer({ dataDir, env: { LODESTONE_LOG_LEVEL: "warn" } });
  try {
    await copy.start();
    expect((await copy.post("/db/kept:main/sql", { statement: 'SELECT count(*)::int AS n FROM "things"' })).body.records).toEqual([
      { n: COUNT },
    ]);
    expect((await copy.get("/db/kept:main/tables/things/data/r7")).body.s).toBe(LONG);
  } finally {
    await copy.end("SIGTERM");
  }
}

const flip = (path: string, at: (bytes: Buffer) => number): void => {
  const bytes = readFileSync(path);
  bytes[at(bytes)]! ^= 1;
  writeFileSync(path, bytes);
};
const flipLast = (path: string): void => flip(path, (bytes) => bytes.length - 1);

describe("a backup with checksums", () => {
  test("that is as it was made is restored, without what was put beside it; the new directory is no backup", async () => {
    const { code, stdout, stderr, left, target } = await restored((backup) => writeFileSync(join(backup, "postgres", ".DS_Store"), "x"));
    expect({ code, stderr, left }).toEqual({ code: 0, stderr: "", left: ["data"] });
    expect(stdout).toContain("Restored 1 branch into");
    expect(readdirSync(join(target, "postgres"))).not.toContain(".DS_Store");
    expect(readdirSync(target)).not.toContain("checksums.json");
    expect(JSON.parse(readFileSync(join(target, "lodestone.json"), "utf8"))).not.toHaveProperty("checksums");
    await isWhole(target);
    const { code: again, stderr: why } = await runCommand(["restore", target, "--data-dir", join(root, "again")]);
    expect([again, why]).toEqual([1, expect.stringContaining("it has no postgres/backup_label")]);
  });

  test.each<[string, (backup: string) => void, RegExp]>([
    [
      "one changed bit of a value",
      (backup) => flip(tableFile(backup), (bytes) => bytes.indexOf("things-filler 399") + 16),
      /base\/\d+\/\d+ does not have its checksum/,
    ],
    [
      "one changed bit of the last file",
      (backup) => flipLast(join(backup, "postgres", "global", "pg_control")),
      /global\/pg_control does not have its checksum/,
    ],
    ["a file that was removed", (backup) => rmSync(tableFile(backup)), /base\/\d+\/\d+ is missing/],
    ["a file that was cut to 0", (backup) => truncateSync(tableFile(backup)), /base\/\d+\/\d+ has 0 bytes instead of \d+/],
    ["a file that grew", (backup) => writeFileSync(tableFile(backup), Buffer.alloc(8192), { flag: "a" }), /has \d+ bytes instead of \d+/],
    ["no label", (backup) => rmSync(join(backup, "postgres", "backup_label")), /postgres\/backup_label is missing/],
    ["no version", (backup) => rmSync(join(backup, "postgres", "PG_VERSION")), /postgres\/PG_VERSION is missing/],
    ["no list", (backup) => rmSync(join(backup, "checksums.json")), /checksums\.json is missing/],
    [
      "a list that was changed",
      (backup) => flip(join(backup, "checksums.json"), (bytes) => bytes.indexOf('"bytes": ') + 9),
      /checksums\.json is not what it was/,
    ],
    ["a marker without the list's checksum", withoutChecksum, /lodestone\.json is not what it was/],
    ["a marker that was cut", (backup) => truncateSync(join(backup, "lodestone.json"), 20), /lodestone\.json is damaged/],
  ])("and %s is refused", (_, damage, why) => refused(damage, why));
});

function withoutChecksum(backup: string): void {
  const { checksums: _, ...marker } = JSON.parse(readFileSync(join(backup, "lodestone.json"), "utf8"));
  writeFileSync(join(backup, "lodestone.json"), JSON.stringify(marker));
}

/** As earlier versions made them. */
const early =
  (damage: (backup: string) => void) =>
  (backup: string): void => {
    withoutChecksum(backup);
    rmSync(join(backup, "checksums.json"));
    damage(backup);
  };

describe("a backup of an early version", () => {
  test("is restored after a check, and what was not verified is said", async () => {
    const { code, stdout, stderr, target } = await restored(early(() => {}));
    expect([code, stdout]).toEqual([0, expect.stringContaining("Restored 1 branch into")]);
    expect(stderr).toContain("kept no checksums of its files");
    await isWhole(target);
  });

  test.each<[string, (backup: string) => void, RegExp]>([
    [
      "a table's file that was removed",
      (backup) => rmSync(tableFile(backup)),
      /fault: things The table cannot be read completely: could not open file/,
    ],
    ["a table's file that was cut to 0", (backup) => truncateSync(tableFile(backup)), /fault: things/],
    [
      "a table's page that is damaged",
      (backup) => flip(tableFile(backup), () => 19),
      /fault: things The table cannot be read completely: invalid page/,
    ],
    [
      "long values whose file was cut to 0",
      (backup) => truncateSync(fileWith(backup, LONG.slice(0, 900))),
      /fault: things The table cannot be read completely: could not read blocks? 0/,
    ],
    ["no label", (backup) => rmSync(join(backup, "postgres", "backup_label")), /it has no postgres\/backup_label/],
    ["no version", (backup) => rmSync(join(backup, "postgres", "PG_VERSION")), /it has no postgres\/PG_VERSION/],
  ])("and with %s is refused", (_, damage, why) => refused(early(damage), why));
});
