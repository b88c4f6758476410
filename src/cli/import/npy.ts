/**
 * NumPy's format 1.0 to 3.0 (numpy.lib.format): a two-dimensional C-ordered array of little-endian float32, float64 or
 * integers of up to 32 bits. Used by the command line, and for files that are dropped into the console.
 */
import { quoted } from "../../errors/value-in-words.ts";
import { SourceError } from "./source.ts";

export interface NpyLayout {
  readonly dimension: number;
  /** Of the first vector. */
  readonly headerBytes: number;
  /** From one vector to the next. */
  readonly strideBytes: number;
  readonly count: number;
  /** Elements of the vector that begins at `at`. */
  readonly decode: (bytes: Uint8Array, at: number) => number[];
}

const MAGIC = "\u0093NUMPY";
const MAX_HEADER_BYTES = 1 << 20;

/** By NumPy's type strings; "|" where byte order has no meaning. */
const ELEMENTS: Readonly<Record<string, { bytes: number; read: (view: DataView, at: number) => number }>> = {
  "<f4": { bytes: 4, read: (view, at) => view.getFloat32(at, true) },
  "<f8": { bytes: 8, read: (view, at) => view.getFloat64(at, true) },
  "|u1": { bytes: 1, read: (view, at) => view.getUint8(at) },
  "|i1": { bytes: 1, read: (view, at) => view.getInt8(at) },
  "<i2": { bytes: 2, read: (view, at) => view.getInt16(at, true) },
  "<u2": { bytes: 2, read: (view, at) => view.getUint16(at, true) },
  "<i4": { bytes: 4, read: (view, at) => view.getInt32(at, true) },
  "<u4": { bytes: 4, read: (view, at) => view.getUint32(at, true) },
};

/**
 * @param size of the file, in bytes.
 * @param read that many bytes of it, from a place on.
 * @throws {SourceError} the file is none of these.
 */
export async function readNpyLayout(size: number, read: (begin: number, length: number) => Promise<Uint8Array>): Promise<NpyLayout> {
  const head = await read(0, Math.min(size, 12));
  if (head.length < 12 || latin1(head.subarray(0, 6)) !== MAGIC) throw new SourceError("the file", "is not an npy file");
  const view = viewOf(head);
  const hasLongHeader = view.getUint8(6) >= 2;
  const headerBegin = hasLongHeader ? 12 : 10;
  const headerBytes = headerBegin + (hasLongHeader ? view.getUint32(8, true) : view.getUint16(8, true));
  if (headerBytes > size || headerBytes > MAX_HEADER_BYTES) throw new SourceError("the npy header", "is cut off");
  const header = latin1(await read(headerBegin, headerBytes - headerBegin));
  const type = /'descr': *'([^']+)'/.exec(header)?.[1] ?? "";
  const element = Object.hasOwn(ELEMENTS, type) ? ELEMENTS[type] : undefined;
  if (element === undefined) {
    throw new SourceError("the npy header", `has the type ${quoted(type)}; expected one of ${Object.keys(ELEMENTS).join(" ")}`);
  }
  if (/'fortran_order': *True/.test(header))
    throw new SourceError("the npy header", "has Fortran order; save numpy.ascontiguousarray(a) instead");
  const [, countText, dimensionText] = /'shape': *\( *(\d+) *, *(\d+) *,? *\)/.exec(header) ?? [];
  if (countText === undefined || dimensionText === undefined) {
    throw new SourceError("the npy header", "has no shape (rows, dimension)");
  }
  const dimension = Number(dimensionText);
  const count = Number(countText);
  const strideBytes = dimension * element.bytes;
  if (dimension < 1 || size !== headerBytes + count * strideBytes) {
    throw new SourceError("the file", `has ${size} bytes; by its header it should have ${headerBytes + count * strideBytes}`);
  }
  return {
    dimension,
    headerBytes,
    strideBytes,
    count,
    decode(bytes, at) {
      const elements = viewOf(bytes);
      return Array.from({ length: dimension }, (_, i) => element.read(elements, at + i * element.bytes));
    },
  };
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const latin1 = (bytes: Uint8Array): string => String.fromCharCode(...bytes.subarray(0, 1 << 16));
