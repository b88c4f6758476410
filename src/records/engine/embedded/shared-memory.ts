/**
 * Makes PostgreSQL's memory visible to another thread. A statement checks flags in its own memory now and
 * then (CHECK_FOR_INTERRUPTS), but the thread that computes it cannot set any: it does not return before the
 * statement ends. In shared memory the main thread can set them, as a signal would on a server.
 *
 * A WebAssembly module declares whether the memory it imports is shared, and links only to a memory of that
 * kind. Nothing else in it depends on that: loads and stores are the same. So this one bit is set before a
 * module is compiled, both in PostgreSQL's own module and in those that it loads (plpgsql).
 */

const HEADER_BYTES = 8;
const IMPORT_SECTION = 2;
const FUNCTION = 0;
const TABLE = 1;
const MEMORY = 2;
const GLOBAL = 3;
const HAS_MAXIMUM = 1;
const IS_SHARED = 2;
/** Page limit of a 32-bit memory, so that it allows every maximum. A shared memory must declare one. */
const MOST_PAGES = 65_536;

/** The limits of the imported memory, and where they stand in the module. */
interface Limits {
  readonly start: number;
  readonly end: number;
  readonly minimum: number;
  readonly maximum: number | undefined;
}

/**
 * Returns the same module with the memory that it imports marked as shared. A module that imports none is
 * unchanged.
 */
export function withSharedMemory(source: NodeJS.TypedArray | ArrayBuffer): Uint8Array<ArrayBuffer> {
  // Emscripten's libraries come as signed bytes.
  const wasm = ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength) : new Uint8Array(source);
  const reader = new Reader(wasm, HEADER_BYTES);
  while (reader.at < wasm.length) {
    const id = reader.byte();
    const lengthAt = reader.at;
    const length = reader.number();
    const start = reader.at;
    if (id !== IMPORT_SECTION) {
      reader.at = start + length;
      continue;
    }
    const limits = importedMemory(reader);
    if (limits === undefined) break;
    const shared = Uint8Array.of(HAS_MAXIMUM | IS_SHARED, ...leb128(limits.minimum), ...leb128(limits.maximum ?? MOST_PAGES));
    const newLength = Uint8Array.from(leb128(length + shared.length - (limits.end - limits.start)));
    return Buffer.concat([wasm.subarray(0, lengthAt), newLength, wasm.subarray(start, limits.start), shared, wasm.subarray(limits.end)]);
  }
  return new Uint8Array(wasm);
}

function importedMemory(reader: Reader): Limits | undefined {
  for (let left = reader.number(); left > 0; left--) {
    reader.skipName();
    reader.skipName();
    const kind = reader.byte();
    if (kind === MEMORY) return readLimits(reader);
    if (kind === FUNCTION) reader.number();
    else if (kind === TABLE) {
      reader.byte();
      readLimits(reader);
    } else if (kind === GLOBAL) reader.at += 2;
    else throw new Error(`The module imports something of an unknown kind (${kind}).`);
  }
  return undefined;
}

function readLimits(reader: Reader): Limits {
  const start = reader.at;
  const flags = reader.byte();
  const minimum = reader.number();
  const maximum = (flags & HAS_MAXIMUM) === 0 ? undefined : reader.number();
  return { start, end: reader.at, minimum, maximum };
}

class Reader {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  byte(): number {
    return this.#bytes[this.at++]!;
  }

  /** Unsigned LEB128. */
  number(): number {
    let number = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte();
      number += (byte & 0x7f) * scale;
      if (byte < 0x80) return number;
    }
  }

  skipName(): void {
    const length = this.number();
    this.at += length;
  }
}

function leb128(number: number): number[] {
  const bytes: number[] = [];
  let left = number;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  bytes.push(left);
  return bytes;
}
