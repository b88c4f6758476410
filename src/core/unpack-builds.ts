/** Unpacks the WebAssembly inside the library. */
import { PACKED_BUILDS, RELAXED_BYTES, SIMD_BYTES } from "./wasm-bytes.js";

export interface UnpackedBuilds {
  simd: Uint8Array<ArrayBuffer>;
  relaxed: Uint8Array<ArrayBuffer>;
}

/** Takes about 40 ms of CPU time. Called once per process. */
export function unpackBuilds(): UnpackedBuilds {
  const both = decodeLzma(decodeBase64(PACKED_BUILDS), SIMD_BYTES + RELAXED_BYTES);
  return { simd: both.slice(0, SIMD_BYTES), relaxed: both.slice(SIMD_BYTES) };
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// Decodes LZMA (Igor Pavlov, "LZMA specification", in the public domain with the LZMA SDK). A page has to
// load the builds of the core, and LZMA packs them into half of what deflate needs. Trusts its input, which is
// the library's own. Literals by 3 bits of the byte before, positions modulo 4 (lc 3, lp 0, pb 2).

/** Start offsets of the probabilities of each kind of bit: twelve states, four positions. */
const IS_MATCH = 0;
const IS_REPEAT = IS_MATCH + 12 * 16;
const IS_REPEAT_0 = IS_REPEAT + 12;
const IS_REPEAT_1 = IS_REPEAT_0 + 12;
const IS_REPEAT_2 = IS_REPEAT_1 + 12;
const IS_LONG = IS_REPEAT_2 + 12;
const SLOT = IS_LONG + 12 * 16;
const DISTANCE = SLOT + 4 * 64;
const ALIGN = DISTANCE + 115;
const LENGTH = ALIGN + 16;
const REPEAT_LENGTH = LENGTH + 514;
const LITERAL = REPEAT_LENGTH + 514;
const PROBABILITIES = LITERAL + 0x300 * 8;

/**
 * @param packed  without the header.
 * @param length  of the unpacked data, in bytes.
 */
function decodeLzma(packed: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(length);
  const probabilities = new Uint16Array(PROBABILITIES).fill(1024);
  let range = 0xffff_ffff;
  let code = 0;
  let at = 1;
  while (at < 5) code = ((code << 8) | packed[at++]!) >>> 0;

  const normalize = (): void => {
    if (range >= 0x100_0000) return;
    range = (range << 8) >>> 0;
    code = ((code << 8) | packed[at++]!) >>> 0;
  };
  const bit = (i: number): number => {
    const p = probabilities[i]!;
    const bound = (range >>> 11) * p;
    const isOne = code >= bound;
    if (isOne) {
      range -= bound;
      code -= bound;
      probabilities[i] = p - (p >>> 5);
    } else {
      range = bound;
      probabilities[i] = p + ((2048 - p) >>> 5);
    }
    normalize();
    return isOne ? 1 : 0;
  };
  const tree = (base: number, bits: number): number => {
    let m = 1;
    for (let i = 0; i < bits; i++) m = (m << 1) | bit(base + m);
    return m - (1 << bits);
  };
  const reversed = (base: number, bits: number): number => {
    let symbol = 0;
    for (let i = 0, m = 1; i < bits; i++) {
      const next = bit(base + m);
      m = (m << 1) | next;
      symbol |= next << i;
    }
    return symbol;
  };
  const evenly = (bits: number): number => {
    let symbol = 0;
    for (let i = 0; i < bits; i++) {
      range >>>= 1;
      const next = code >= range ? 1 : 0;
      if (next === 1) code -= range;
      normalize();
      symbol = (symbol << 1) | next;
    }
    return symbol;
  };
  const lengthOf = (base: number, place: number): number => {
    if (bit(base) === 0) return 2 + tree(base + 2 + place * 8, 3);
    if (bit(base + 1) === 0) return 10 + tree(base + 130 + place * 8, 3);
    return 18 + tree(base + 258, 8);
  };
  const distanceOf = (matched: number): number => {
    const slot = tree(SLOT + Math.min(matched - 2, 3) * 64, 6);
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1;
    const base = (2 | (slot & 1)) << bits;
    return slot < 14 ? base + reversed(DISTANCE + base - slot, bits) : base + evenly(bits - 4) * 16 + reversed(ALIGN, 4);
  };

  let state = 0;
  /** The last four distances, minus one. */
  let [last, second, third, fourth] = [0, 0, 0, 0];
  for (let to = 0; to < length; ) {
    const place = to & 3;
    if (bit(IS_MATCH + state * 16 + place) === 0) {
      const base = LITERAL + 0x300 * ((out[to - 1] ?? 0) >> 5);
      let symbol = 1;
      // After a match, the bits of the byte that would have continued it predict this one, until one differs.
      for (let guess = out[to - last - 1]!, isSame = state >= 7; isSame && symbol < 0x100; guess <<= 1) {
        const expected = (guess >> 7) & 1;
        const next = bit(base + 0x100 * (1 + expected) + symbol);
        symbol = (symbol << 1) | next;
        isSame = next === expected;
      }
      while (symbol < 0x100) symbol = (symbol << 1) | bit(base + symbol);
      out[to++] = symbol;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let matched = 1;
    if (bit(IS_REPEAT + state) === 0) {
      matched = lengthOf(LENGTH, place);
      [last, second, third, fourth] = [distanceOf(matched), last, second, third];
      state = state < 7 ? 7 : 10;
    } else {
      const isLast = bit(IS_REPEAT_0 + state) === 0;
      if (!isLast) {
        if (bit(IS_REPEAT_1 + state) === 0) [last, second] = [second, last];
        else if (bit(IS_REPEAT_2 + state) === 0) [last, second, third] = [third, last, second];
        else [last, second, third, fourth] = [fourth, last, second, third];
      }
      const isLong = !isLast || bit(IS_LONG + state * 16 + place) === 1;
      if (isLong) matched = lengthOf(REPEAT_LENGTH, place);
      state = isLong ? (state < 7 ? 8 : 11) : state < 7 ? 9 : 11;
    }
    for (const end = Math.min(to + matched, length); to < end; to++) out[to] = out[to - last - 1]!;
  }
  return out;
}
