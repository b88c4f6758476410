/**
 * The files that an import or a migration reads, as UTF-8. Before anything is sent, a text is read once to its end, so
 * that a file with bytes that are not text is refused whole. A file in another encoding is converted to a file of
 * this run, in which positions are those of UTF-8.
 */
import { createReadStream, mkdtempSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { SourceError } from "./source.ts";
import { type Decoder, decoderOf, type Encoding, NotText, wholeUtf8 } from "./text-encoding.ts";

const CHUNK_BYTES = 1 << 20;

const MARKS = [
  { encoding: "utf-16le", bytes: Buffer.from([0xff, 0xfe]) },
  { encoding: "utf-16be", bytes: Buffer.from([0xfe, 0xff]) },
  { encoding: "utf-8", bytes: Buffer.from([0xef, 0xbb, 0xbf]) },
] as const;

export class SourceFiles {
  readonly scratch = new ScratchFolder();
  /** Of all text files; undefined: UTF-8, or UTF-16 if a file begins with its mark. */
  readonly encoding: Encoding | undefined;
  readonly signal: AbortSignal;
  readonly #texts = new Map<string, Promise<string>>();

  constructor(encoding: Encoding | undefined, signal: AbortSignal) {
    this.encoding = encoding;
    this.signal = signal;
  }

  /**
   * @param encoding  what the file says about itself.
   * @returns the path of the same text in UTF-8.
   * @throws {SourceError} with the line and the byte that is not text. The signal's reason.
   *
   * Cost: reads the file once; another encoding than UTF-8 takes up to three times its size of temporary disk space.
   */
  text(path: string, encoding = this.encoding): Promise<string> {
    const known = this.#texts.get(path);
    if (known !== undefined) return known;
    const made = this.#toUtf8(path, encoding);
    this.#texts.set(path, made);
    return made;
  }

  /** Removes what was converted. */
  close(): void {
    this.scratch.remove();
  }

  async #toUtf8(path: string, asked: Encoding | undefined): Promise<string> {
    const mark = await markOf(path);
    const encoding = asked === undefined ? (mark?.encoding ?? "utf-8") : asked === "utf-16" ? mark?.encoding : asked;
    if (encoding === undefined) {
      throw new LodestoneError(
        "INVALID",
        `--encoding utf-16: ${path} has no mark that says its byte order; name utf-16le (the usual one) or utf-16be.`,
      );
    }
    if (mark !== undefined && mark.encoding !== encoding) {
      throw new LodestoneError("INVALID", `--encoding ${asked}: ${path} begins with the mark of ${mark.encoding}; leave the option out.`);
    }
    if (encoding !== "utf-8") return this.#convert(path, encoding, mark?.bytes.length ?? 0);
    for await (const _ of utf8Chunks(path)) this.signal.throwIfAborted();
    return path;
  }

  async #convert(from: string, encoding: Exclude<Encoding, "utf-8" | "utf-16">, start: number): Promise<string> {
    const { path, handle } = await this.scratch.createFile();
    try {
      await decodeTo(handle, from, start, decoderOf(encoding), encoding, this.signal);
    } finally {
      await handle.close();
    }
    return path;
  }
}

async function decodeTo(to: FileHandle, from: string, start: number, decoder: Decoder, name: string, signal: AbortSignal): Promise<void> {
  let offset = start;
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(from, { start, highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    try {
      const { text, used } = decoder.decode(bytes);
      await to.writeFile(text);
      offset += used;
      rest = Buffer.from(bytes.subarray(used));
    } catch (error) {
      throw error instanceof NotText ? await notText(from, offset + error.at, name, decoder.unitBytes) : error;
    }
  }
  if (rest.length > 0) throw await notText(from, offset, name, decoder.unitBytes);
}

/**
 * The file's bytes, each chunk ending with a whole character.
 * @param until  the offset after the last byte; default: all.
 * @throws {SourceError} when they are not UTF-8.
 */
export async function* utf8Chunks(path: string, start = 0, until = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer, void, undefined> {
  if (until <= start) return;
  let offset = start;
  let rest: Buffer = Buffer.alloc(0);
  const stream = createReadStream(path, { start, end: until - 1, highWaterMark: CHUNK_BYTES });
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let end: number;
    try {
      end = wholeUtf8(bytes);
    } catch (error) {
      throw error instanceof NotText ? await notText(path, offset + error.at, "utf-8", 1) : error;
    }
    // A copy, since the stream may use its buffer again.
    rest = Buffer.from(bytes.subarray(end));
    offset += end;
    yield bytes.subarray(0, end);
  }
  if (rest.length > 0) throw await notText(path, offset, "utf-8", 1);
}

async function notText(path: string, offset: number, encoding: string, unitBytes: 1 | 2): Promise<SourceError> {
  const { line, bytes } = await placeOf(path, offset, unitBytes);
  const found =
    bytes.length === 0 ? "the end of the file" : Array.from(bytes, (byte) => `0x${byte.toString(16).padStart(2, "0")}`).join(" ");
  const remedy =
    encoding === "utf-8"
      ? "If the file is in another encoding, name it with --encoding: latin1, windows-1252 or utf-16le."
      : "Is it the file's encoding?";
  return new SourceError(
    `${path}, line ${line}, byte ${offset.toLocaleString("en-US")}`,
    `${found} is not text in ${encoding.toUpperCase()}. ${remedy}`,
  );
}

/** Reads the file again up to there: only for the message. */
async function placeOf(path: string, offset: number, unitBytes: 1 | 2): Promise<{ line: number; bytes: Buffer }> {
  const handle = await open(path, "r");
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    let line = 1;
    for (let at = 0; at < offset; ) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, offset - at), at);
      if (bytesRead === 0) break;
      for (let i = buffer.indexOf(0x0a); i !== -1 && i < bytesRead; i = buffer.indexOf(0x0a, i + 1)) {
        if (unitBytes === 1 || isLineEnd(buffer, i)) line++;
      }
      at += bytesRead;
    }
    const { bytesRead } = await handle.read(buffer, 0, 2 * unitBytes, offset);
    return { line, bytes: Buffer.from(buffer.subarray(0, Math.min(bytesRead, unitBytes))) };
  } finally {
    await handle.close();
  }
}

/** U+000A in either byte order; 0x0a may also be half of another character. Chunks begin at even offsets. */
const isLineEnd = (bytes: Buffer, at: number): boolean => bytes[at ^ 1] === 0;

async function markOf(path: string): Promise<(typeof MARKS)[number] | undefined> {
  const handle = await open(path, "r");
  try {
    const head = Buffer.alloc(3);
    const { bytesRead } = await handle.read(head, 0, 3, 0);
    return MARKS.find(({ bytes }) => bytesRead >= bytes.length && head.subarray(0, bytes.length).equals(bytes));
  } finally {
    await handle.close();
  }
}

/**
 * A folder of this run's own for what it needs only while it runs. Its name cannot be foreseen and nobody else may
 * enter it (`mkdtemp`, mode 0700), so nothing in it was put there by another user. It is removed when the run ends,
 * also by an error or a second Ctrl-C; only kill -9 leaves it.
 */
export class ScratchFolder {
  #path: string | undefined;
  #files = 0;
  readonly #remove = (): void => {
    if (this.#path !== undefined) rmSync(this.#path, { recursive: true, force: true });
    this.#path = undefined;
  };

  /** A new file, open for writing, which only this user may read. Close the handle. */
  async createFile(): Promise<{ readonly path: string; readonly handle: FileHandle }> {
    if (this.#path === undefined) {
      this.#path = mkdtempSync(join(tmpdir(), "lodestone-"));
      process.once("exit", this.#remove);
    }
    const path = join(this.#path, `${++this.#files}`);
    return { path, handle: await open(path, "wx", 0o600) };
  }

  remove(): void {
    process.off("exit", this.#remove);
    this.#remove();
  }
}
