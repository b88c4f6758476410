/**
 * Converts dumps that only PostgreSQL's own program can read (the custom and the directory format) to plain ones, in a
 * file of this run. The same program makes the same file of the same dump, so an interrupted import can continue in
 * the one that the next run makes.
 */
import { spawn } from "node:child_process";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import type { SourceFiles } from "../source-files.ts";

/** @returns the path of the plain dump. @throws the files' signal's reason. */
export async function toPlainDump(dump: string, { scratch, signal }: SourceFiles): Promise<string> {
  const { path, handle } = await scratch.createFile();
  try {
    await restore(dump, handle.fd, signal);
  } finally {
    await handle.close();
  }
  return path;
}

async function restore(path: string, to: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const child = spawn("pg_restore", ["--no-owner", "--no-privileges", "--file=-", path], { stdio: ["ignore", to, "pipe"] });
  const stop = (): boolean => child.kill();
  signal.addEventListener("abort", stop);
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    if (said.length < 4_000) said += chunk.toString();
  });
  try {
    await new Promise<void>((done, fail) => {
      child.once("error", (error: NodeJS.ErrnoException) => {
        fail(error.code === "ENOENT" ? missing(path) : error);
      });
      child.once("close", (code) => {
        if (code === 0) done();
        else if (signal.aborted) fail(signal.reason);
        else fail(new LodestoneError("INVALID", `pg_restore cannot read ${path}: ${said.trim() || `it ended with ${code}`}`));
      });
    });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function missing(path: string): LodestoneError {
  return new LodestoneError(
    "UNAVAILABLE",
    `${path} is a dump in a format that only PostgreSQL's own program pg_restore can read, and pg_restore is not installed. Install PostgreSQL's client programs ` +
      `(Debian: apt-get install postgresql-client; macOS: brew install libpq), or write a plain dump where they are: pg_restore --file=dump.sql ${path}`,
  );
}
