/**
 * Converts dumps that only PostgreSQL's own program can read (the custom and the directory format) to plain
 * ones. A dump is converted once, and nothing is written beside the user's files.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { LodestoneError } from "../../../errors.ts";

/** @returns the plain dump: the same file for the same dump, so that an interrupted import can continue in it. */
export async function toPlainDump(path: string): Promise<string> {
  const plain = await placeOf(path);
  await mkdir(dirname(plain), { recursive: true, mode: 0o700 });
  if (await isThere(plain)) return plain;
  const partial = `${plain}.${process.pid}.partial`;
  try {
    await restore(path, partial);
    await rename(partial, plain);
  } finally {
    await rm(partial, { force: true });
  }
  return plain;
}

/** The plain form of the dump is no longer needed. */
export async function discardPlainDump(path: string): Promise<void> {
  await rm(await placeOf(path), { force: true });
}

async function placeOf(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  const name = createHash("sha256")
    .update(`${resolve(path)}\n${size}\n${mtimeMs}`)
    .digest("hex")
    .slice(0, 24);
  return join(tmpdir(), `lodestone-dumps-${process.getuid?.() ?? "user"}`, `${name}.sql`);
}

async function restore(path: string, to: string): Promise<void> {
  const child = spawn("pg_restore", ["--no-owner", "--no-privileges", "--file", to, path], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    if (said.length < 4_000) said += chunk.toString();
  });
  await new Promise<void>((done, fail) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      fail(error.code === "ENOENT" ? missing(path) : error);
    });
    child.once("close", (code) => {
      if (code === 0) done();
      else fail(new LodestoneError("INVALID", `pg_restore cannot read ${path}: ${said.trim() || `it ended with ${code}`}`));
    });
  });
}

function missing(path: string): LodestoneError {
  return new LodestoneError(
    "UNAVAILABLE",
    `${path} is a dump in a format that only PostgreSQL's own program pg_restore can read, and pg_restore is not installed. Install PostgreSQL's client programs ` +
      `(Debian: apt-get install postgresql-client; macOS: brew install libpq), or write a plain dump where they are: pg_restore --file=dump.sql ${path}`,
  );
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
