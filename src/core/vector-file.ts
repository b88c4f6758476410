/**
 * Where an index may keep its float32 vectors instead of memory: a file in Node, or one of the origin private file
 * system in a browser's worker. Both are synchronous, because a search reads in the middle of its work.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { nodeModule } from "./node-modules.ts";
import { checkType } from "./options.ts";

/** The part of `FileSystemSyncAccessHandle` (File System Standard) that is used; handles of OPFS are of this type. */
export interface VectorFile {
  /** @returns the number of bytes read: fewer than asked for at the end of the file. */
  read(buffer: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  /** @returns the number of bytes written. @throws when there is no room. */
  write(buffer: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  getSize(): number;
  truncate(size: number): void;
  /** Returns when everything written is on the device. */
  flush(): void;
  close(): void;
}

/** The part of `FileSystemDirectoryHandle` that is used. Its files are opened in workers: pages know no `createSyncAccessHandle`. */
export interface VectorDirectory {
  getFileHandle(name: string, options: { create: boolean }): Promise<object>;
}

/** Where the workers of a ParallelVectorIndex open their files: the path of a directory in Node, or a directory handle of OPFS. */
export type VectorFolder = string | VectorDirectory;

/**
 * Opens or creates a file for the vectors of an index in Node (Bun, Deno). Only one index may use it at a time.
 *
 * @throws {LodestoneError} UNAVAILABLE where there are no files; the error of the file system, such as ENOENT or EACCES.
 */
export function openVectorFile(path: string): VectorFile {
  checkType(typeof path === "string", "path", path, "a string");
  const fs = nodeModule("node:fs");
  if (fs === undefined)
    throw new LodestoneError("UNAVAILABLE", "This runtime has no files; in a browser's worker use createSyncAccessHandle.");
  // Neither truncated nor appended to; readable by its owner only.
  const fd = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
  return {
    read(buffer, { at }) {
      let done = 0;
      while (done < buffer.length) {
        const read = fs.readSync(fd, buffer, done, buffer.length - done, at + done);
        if (read === 0) break;
        done += read;
      }
      return done;
    },
    write(buffer, { at }) {
      let done = 0;
      while (done < buffer.length) done += fs.writeSync(fd, buffer, done, buffer.length - done, at + done);
      return done;
    },
    getSize: () => fs.fstatSync(fd).size,
    truncate: (size) => fs.ftruncateSync(fd, size),
    flush: () => fs.fdatasyncSync(fd),
    close: () => fs.closeSync(fd),
  };
}

/** @throws {LodestoneError} UNAVAILABLE where this kind of folder cannot be used; the file system's error. */
export async function openInFolder(folder: VectorFolder, name: string): Promise<VectorFile> {
  if (typeof folder === "string") return openVectorFile(`${folder}/${name}`);
  const handle: { createSyncAccessHandle?(): Promise<VectorFile> } = await folder.getFileHandle(name, { create: true });
  if (handle.createSyncAccessHandle === undefined) {
    throw new LodestoneError(
      "UNAVAILABLE",
      "The folder's files cannot be read synchronously: only those of the origin private file system can, in a worker.",
    );
  }
  return handle.createSyncAccessHandle();
}
