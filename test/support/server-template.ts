/**
 * A data directory as a first start leaves it, made once per run and copied for each server under test. An
 * initdb for every test file would take most of the tests' time. (First starts themselves are tested with
 * `fresh: true`.)
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const OPEN = JSON.stringify(new URL("../../dist/records/open.js", import.meta.url).href);
const START = `import(${OPEN}).then(({ openRecordStore }) => openRecordStore({ dataDir: process.argv[1] })).then((records) => records.close())`;

export function copyTemplate(target: string): void {
  const template = join(tmpdir(), "server-template");
  if (!existsSync(template)) makeTemplate(template);
  mkdirSync(target, { recursive: true });
  cpSync(template, target, { recursive: true });
}

function makeTemplate(template: string): void {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-server-template-new-"));
  const { status, stderr } = spawnSync(process.execPath, ["-e", START, folder], { encoding: "utf8" });
  if (status !== 0) throw new Error(`the template could not be made: ${stderr}`);
  try {
    renameSync(folder, template);
  } catch {
    // Another test process was faster.
    rmSync(folder, { recursive: true, force: true });
  }
}
