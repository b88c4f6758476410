/**
 * Where the members of a tar archive lie in its file, so that each can be read, and resumed, like a file of its
 * own. Headers are those of POSIX ustar and of GNU tar's long sizes, which is what `pg_dump --format=tar`
 * writes. Nothing is unpacked. (Libraries for tar give streams, not positions.)
 */
import { open } from "node:fs/promises";
import { SourceError } from "../source.ts";

export interface TarMember {
  readonly offset: number;
  readonly size: number;
}

const BLOCK_BYTES = 512;
const MAX_MEMBERS = 200_000;

export async function readTarIndex(path: string): Promise<ReadonlyMap<string, TarMember>> {
  const members = new Map<string, TarMember>();
  const handle = await open(path, "r");
  try {
    const { size: fileSize } = await handle.stat();
    const header = Buffer.alloc(BLOCK_BYTES);
    for (let offset = 0; offset < fileSize; ) {
      const { bytesRead } = await handle.read(header, 0, BLOCK_BYTES, offset);
      // The end is two blocks of zeros.
      if (bytesRead === BLOCK_BYTES && header.every((byte) => byte === 0)) return members;
      if (bytesRead < BLOCK_BYTES || !hasChecksum(header))
        throw new SourceError(`byte ${offset}`, "is not a tar header; the file is cut off");
      const size = sizeOf(header);
      const begin = offset + BLOCK_BYTES;
      if (begin + size > fileSize) throw new SourceError(`byte ${offset}`, "the archive ends within this member; the file is cut off");
      if (members.size >= MAX_MEMBERS) throw new SourceError(`byte ${offset}`, `the archive has more than ${MAX_MEMBERS} members`);
      members.set(text(header.subarray(0, 100)), { offset: begin, size });
      offset = begin + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
    }
    throw new SourceError("the archive", "has no end; the file is cut off");
  } finally {
    await handle.close();
  }
}

/** True for the first bytes of a tar archive. */
export function isTar(head: Buffer): boolean {
  return head.length >= BLOCK_BYTES && head[0] !== 0 && hasChecksum(head.subarray(0, BLOCK_BYTES));
}

/** The sum of the header's bytes, its own field taken for blanks. */
function hasChecksum(header: Buffer): boolean {
  const stated = Number.parseInt(text(header.subarray(148, 156)).trim(), 8);
  let sum = 8 * 0x20;
  for (let i = 0; i < BLOCK_BYTES; i++) if (i < 148 || i >= 156) sum += header[i] as number;
  return sum === stated;
}

/** Octal digits; beyond 8 GiB the number itself, marked by its first bit. */
function sizeOf(header: Buffer): number {
  if (((header[124] as number) & 0x80) === 0) return Number.parseInt(text(header.subarray(124, 136)).trim() || "0", 8);
  return Number(header.readBigUInt64BE(128));
}

const text = (bytes: Buffer): string => {
  const end = bytes.indexOf(0);
  return bytes.toString("latin1", 0, end === -1 ? bytes.length : end);
};
