/**
 * What a backup holds, in `checksums.json` beside its files: each directory, and each file with its size and SHA-256.
 * The marker (`lodestone.json`) has the checksum of that list. So a file of a backup that was changed, cut or
 * removed later is noticed, and so is a changed or removed list.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { LodestoneError } from "../../../errors/lodestone-error.ts";

interface Checksums {
  readonly version: 1;
  /** Paths in the backup, with "/" between their steps. */
  readonly directories: readonly string[];
  readonly files: Readonly<Record<string, FileChecksum>>;
}

interface FileChecksum {
  readonly bytes: number;
  readonly sha256: string;
}

export const CHECKSUMS_NAME = "checksums.json";
/** A file of the embedded database is a hundred bytes of the list. */
const MAX_LIST_BYTES = 256 << 20;
const CHUNK_BYTES = 1 << 20;
/** Names of PostgreSQL's files. Nothing in a list leads out of the backup. */
const PATH = /^postgres(?:\/[\w-][\w.-]*)*$/;

/**
 * Writes the list, and syncs every file and directory of the backup, without holding the event loop: a thousand files
 * take seconds on a slow disk.
 * @returns the list's checksum.
 * @throws the signal's reason.
 */
export async function sealFiles(backup: string, signal?: AbortSignal): Promise<string> {
  const directories: string[] = [];
  const files: Record<string, FileChecksum> = {};
  const seal = async (path: string): Promise<void> => {
    directories.push(path);
    for (const entry of await readdir(join(backup, path), { withFileTypes: true })) {
      signal?.throwIfAborted();
      const child = `${path}/${entry.name}`;
      if (entry.isDirectory()) await seal(child);
      else if (entry.isFile()) files[child] = await withFile(join(backup, child), "r+", sealFile);
    }
    await withFile(join(backup, path), "r", (directory) => directory.sync());
  };
  await seal("postgres");
  const list: Checksums = { version: 1, directories, files };
  const text = `${JSON.stringify(list, null, 1)}\n`;
  await withFile(join(backup, CHECKSUMS_NAME), "wx", async (file) => {
    await file.writeFile(text);
    await file.sync();
  });
  await withFile(backup, "r", (directory) => directory.sync());
  return sha256(text);
}

/**
 * Copies the files of a backup, and compares each with its checksum on the way. What the list does not name is not
 * copied. The copies are on disk when it resolves.
 *
 * @param stated  the list's checksum, as the backup's marker has it.
 * @throws {LodestoneError} CORRUPT, with the file that is not what it was. The signal's reason.
 */
export async function copySealed(backup: string, stated: string, target: string, signal: AbortSignal): Promise<void> {
  const { directories, files } = await readList(backup, stated);
  for (const path of directories) await mkdir(join(target, path), { recursive: true, mode: 0o700 });
  for (const [path, expected] of Object.entries(files)) {
    signal.throwIfAborted();
    if (!existsSync(join(backup, path))) throw damaged(backup, `${path} is missing`);
    const found = await withFile(join(backup, path), "r", (from) =>
      withFile(join(target, path), "wx", async (to) => {
        const copied = await readThrough(from, async (chunk) => void (await to.writeFile(chunk)));
        await to.sync();
        return copied;
      }),
    );
    if (found.bytes !== expected.bytes) throw damaged(backup, `${path} has ${found.bytes} bytes instead of ${expected.bytes}`);
    if (found.sha256 !== expected.sha256) throw damaged(backup, `${path} does not have its checksum`);
  }
  for (const path of directories) await withFile(join(target, path), "r", (directory) => directory.sync());
}

async function readList(backup: string, stated: string): Promise<Checksums> {
  if (!existsSync(join(backup, CHECKSUMS_NAME))) throw damaged(backup, `${CHECKSUMS_NAME} is missing`);
  const text = await withFile(join(backup, CHECKSUMS_NAME), "r", async (file) => {
    if ((await file.stat()).size > MAX_LIST_BYTES) throw damaged(backup, `${CHECKSUMS_NAME} is not what it was`);
    return file.readFile("utf8");
  });
  if (sha256(text) !== stated) throw damaged(backup, `${CHECKSUMS_NAME} is not what it was`);
  const list = JSON.parse(text) as Checksums;
  if (list.version !== 1) {
    throw new LodestoneError(
      "CORRUPT",
      `${CHECKSUMS_NAME} has version ${list.version}; restore with the version of Lodestone that made the backup.`,
    );
  }
  const stranger = [...list.directories, ...Object.keys(list.files)].find((path) => !PATH.test(path));
  if (stranger !== undefined) throw damaged(backup, `${CHECKSUMS_NAME} names a file outside the backup`);
  return list;
}

function damaged(backup: string, what: string): LodestoneError {
  return new LodestoneError(
    "CORRUPT",
    `The backup ${backup} is not as it was made: ${what}. Nothing was restored. Use another backup. (If a server ran on this folder since, it is a data directory: serve it, or copy it whole.)`,
  );
}

async function sealFile(file: FileHandle): Promise<FileChecksum> {
  const checksum = await readThrough(file, async () => {});
  await file.sync();
  return checksum;
}

async function readThrough(file: FileHandle, take: (chunk: Buffer) => Promise<void>): Promise<FileChecksum> {
  const hash = createHash("sha256");
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let bytes = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, bytes);
    if (bytesRead === 0) return { bytes, sha256: hash.digest("hex") };
    const chunk = buffer.subarray(0, bytesRead);
    hash.update(chunk);
    await take(chunk);
    bytes += bytesRead;
  }
}

async function withFile<Result>(path: string, flags: "r" | "r+" | "wx", work: (file: FileHandle) => Promise<Result>): Promise<Result> {
  const file = await open(path, flags, 0o600);
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
