/**
 * Where the members of a tar archive lie in its file, so that each can be read, and resumed, like a file of its
 * own. Headers are those of POSIX ustar and of GNU tar's long sizes, which is what `pg_dump --format=tar`
 * writes. Nothing is unpacked. (Libraries for tar give streams, not positions.)
 */
import { type FileHandle, open } from "node:fs/promises";
import { SourceError } from "../source.ts";

export interface TarMember {
  readonly offset: number;
  readonly size: number;
}

export const TAR_BLOCK_BYTES = 512;
const MAX_MEMBERS = 200_000;
/** Types of members that have contents to read: "0", and the zero of older archives. */
const REGULAR_FILES: ReadonlySet<number> = new Set([0x30, 0]);

/** @throws {SourceError} with the offset of the header that is wrong. The signal's reason. */
export async function readTarIndex(path: string, signal: AbortSignal): Promise<ReadonlyMap<string, TarMember>> {
  const handle = await open(path, "r");
  try {
    return await readHeaders(handle, signal);
  } finally {
    await handle.close();
  }
}

/** Each step goes forward, and by at least one block. */
async function readHeaders(handle: FileHandle, signal: AbortSignal): Promise<Map<string, TarMember>> {
  const members = new Map<string, TarMember>();
  const { size: fileSize } = await handle.stat();
  const header = Buffer.alloc(TAR_BLOCK_BYTES);
  for (let offset = 0; offset < fileSize; ) {
    signal.throwIfAborted();
    const refuse = (why: string): SourceError => new SourceError(`byte ${offset}`, why);
    const { bytesRead } = await handle.read(header, 0, TAR_BLOCK_BYTES, offset);
    // The end is two blocks of zeros.
    if (bytesRead === TAR_BLOCK_BYTES && header.every((byte) => byte === 0)) return members;
    if (bytesRead < TAR_BLOCK_BYTES || !hasChecksum(header)) throw refuse("is not a tar header; the file is cut off or damaged");
    const size = sizeOf(header);
    if (size === undefined) throw refuse("the member's size is not a number of bytes; the file is damaged");
    const begin = offset + TAR_BLOCK_BYTES;
    if (begin + size > fileSize) throw refuse("the archive ends within this member; the file is cut off");
    if (REGULAR_FILES.has(header[156] as number)) {
      const name = text(header.subarray(0, 100));
      if (members.size >= MAX_MEMBERS) throw refuse(`the archive has more than ${MAX_MEMBERS} members`);
      if (members.has(name)) throw refuse("the archive has two members of this name; the file is damaged");
      members.set(name, { offset: begin, size });
    }
    offset = begin + Math.ceil(size / TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES;
  }
  throw new SourceError("the archive", "has no end; the file is cut off");
}

/** True for the first bytes of a tar archive. */
export function isTar(head: Buffer): boolean {
  return head.length >= TAR_BLOCK_BYTES && head[0] !== 0 && hasChecksum(head.subarray(0, TAR_BLOCK_BYTES));
}

/** The sum of the header's bytes, its own field taken for blanks. */
function hasChecksum(header: Buffer): boolean {
  const stated = Number.parseInt(text(header.subarray(148, 156)).trim(), 8);
  let sum = 8 * 0x20;
  for (let i = 0; i < TAR_BLOCK_BYTES; i++) if (i < 148 || i >= 156) sum += header[i] as number;
  return sum === stated;
}

/** Octal digits; beyond 8 GiB (GNU tar) the number itself, behind a byte 0x80. undefined: neither, such as a negative number. */
function sizeOf(header: Buffer): number | undefined {
  if (header[124] === 0x80) return header.readUIntBE(125, 3) === 0 ? Number(header.readBigUInt64BE(128)) : undefined;
  const digits = text(header.subarray(124, 136)).trim();
  return /^[0-7]*$/.test(digits) ? Number.parseInt(digits || "0", 8) : undefined;
}

const text = (bytes: Buffer): string => {
  const end = bytes.indexOf(0);
  return bytes.toString("latin1", 0, end === -1 ? bytes.length : end);
};
