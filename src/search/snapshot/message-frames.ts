/**
 * What the files of the search store have in common: a header, then messages, each behind a frame.
 *
 *   0  magic           8 bytes
 *   8  format u32      little-endian
 *   then per message:  length u32, checksum u32, payload (the structured-clone serialization of V8)
 *
 * A checksum is the CRC-32 of the payload, continued from that of the previous message, so it detects a
 * message that is damaged, missing, added or out of place.
 */
import type { FileHandle } from "node:fs/promises";
import { deserialize, serialize } from "node:v8";
import { crc32 } from "node:zlib";

const MAGIC_BYTES = 8;
export const HEADER_BYTES = 12;
const FRAME_BYTES = 8;
const MAX_MESSAGE_BYTES = 1 << 30;

/** @param magic  8 ASCII characters. */
export function fileHeader(magic: string, format: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(magic, "latin1");
  header.writeUInt32LE(format, MAGIC_BYTES);
  return header;
}

/** @param size  of the file. */
export async function readFormat(file: FileHandle, magic: string, size: number): Promise<{ readonly format: number } | Fault> {
  const header = await readBytes(file, 0, HEADER_BYTES, size);
  if (header === undefined) return cutOff(size);
  if (header.toString("latin1", 0, MAGIC_BYTES) !== magic) return { fault: "it does not begin as one" };
  return { format: header.readUInt32LE(MAGIC_BYTES) };
}

/** A message as it stands in a file. */
interface FramedMessage {
  readonly frame: Buffer;
  readonly payload: Buffer;
  /** Of frame and payload. */
  readonly bytes: number;
  /** The next message's continues from it. */
  readonly checksum: number;
}

/** @param previous  the checksum of the message before; 0 for the first. */
export function framed(message: unknown, previous: number): FramedMessage {
  const payload = serialize(message);
  const checksum = crc32(payload, previous);
  const frame = Buffer.alloc(FRAME_BYTES);
  frame.writeUInt32LE(payload.length, 0);
  frame.writeUInt32LE(checksum, 4);
  return { frame, payload, bytes: FRAME_BYTES + payload.length, checksum };
}

/** Writes all of the message or rejects. @param at  undefined: after what was written last. */
export async function writeFramed(file: FileHandle, { frame, payload, bytes }: FramedMessage, at?: number): Promise<void> {
  const { bytesWritten } = await file.writev([frame, payload], at);
  if (bytesWritten !== bytes) throw new Error(`Of ${bytes} bytes ${bytesWritten} could be written.`);
}

/** What is wrong with the file, as a sentence about "it". */
interface Fault {
  readonly fault: string;
}

const cutOff = (size: number): Fault => ({ fault: `it ends at byte ${size}, before its last message` });

interface ReadMessage {
  readonly message: unknown;
  /** Where the next one begins. */
  readonly end: number;
  /** The next one's continues from it. */
  readonly checksum: number;
}

/** A message that has been read and not been checked. */
interface UncheckedMessage {
  readonly at: number;
  readonly checksum: number;
  readonly payload: Buffer;
  /** The frame of the next one. */
  readonly frame: Buffer;
}

/** Reads the messages of a file in order, and the next one while the caller works on one. */
export class MessageReader {
  readonly #file: FileHandle;
  readonly #size: number;
  #checksum = 0;
  #ahead: Promise<UncheckedMessage | Fault>;

  /** @param size  of the file. @param at  where the first message begins. */
  constructor(file: FileHandle, size: number, at: number) {
    this.#file = file;
    this.#size = size;
    this.#ahead = readBytes(file, at, Math.min(FRAME_BYTES, size - at), size).then((frame) => this.#read(at, frame));
    this.#ahead.catch(() => {}); // told by `next`
  }

  /** Its typed arrays are views of a buffer of its own. Not to be called again after a fault. */
  async next(): Promise<ReadMessage | Fault> {
    const read = await this.#ahead;
    if ("fault" in read) return read;
    const { at, payload, frame } = read;
    const checksum = crc32(payload, this.#checksum);
    if (checksum !== read.checksum) return { fault: `the checksum of the message at byte ${at} does not match` };
    this.#checksum = checksum;
    const end = at + FRAME_BYTES + payload.length;
    this.#ahead = this.#read(end, frame);
    this.#ahead.catch(() => {}); // told by `next`
    return { message: deserialize(payload) as unknown, end, checksum };
  }

  /** @param frame  of the message, as much as the file has of it. */
  async #read(at: number, frame: Buffer | undefined): Promise<UncheckedMessage | Fault> {
    if (frame === undefined || frame.length < FRAME_BYTES) return cutOff(this.#size);
    const length = frame.readUInt32LE(0);
    const checksum = frame.readUInt32LE(4);
    if (length > MAX_MESSAGE_BYTES) return { fault: `a message claims ${length} bytes` };
    const begin = at + FRAME_BYTES;
    // With the next frame: one read for each message.
    const bytes = await readBytes(this.#file, begin, Math.max(length, Math.min(length + FRAME_BYTES, this.#size - begin)), this.#size);
    if (bytes === undefined) return cutOff(this.#size);
    return { at, checksum, payload: bytes.subarray(0, length), frame: Buffer.from(bytes.subarray(length)) };
  }
}

/** @param size  of the file. @returns undefined: the file ends before that. */
export async function readBytes(file: FileHandle, at: number, length: number, size: number): Promise<Buffer | undefined> {
  if (at + length > size) return undefined;
  const buffer = Buffer.allocUnsafeSlow(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(buffer, done, length - done, at + done);
    if (bytesRead === 0) return undefined;
    done += bytesRead;
  }
  return buffer;
}
