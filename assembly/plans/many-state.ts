/**
 * The memory of a search for many queries (cascade-many.ts): the queries in pairs, with their codes, the tiles of
 * the current block, and the sums of the first segments, which are computed for the first thresholds and used
 * again.
 */
import { MAX_BLOCK_ROWS } from "../dot/many-bounds";
import { codeVectors, headVectors, tileBytes } from "../dot/many-dots";
import { ManyQuery, manyCodeBytes, manyQueryBytes } from "../dot/many-query-codes";
import { NO_CENTRE } from "../exact/coded-query";
import { queryAt, reserveBounds, reserveMany } from "../exact/query";
import { codeDimension, segmentCount, segmentRows } from "../rows/rows";

/**
 * Size of the unpacked rows of a block. It leaves room in a second-level cache of 256 KiB for the codes of
 * the queries. The kernel keeps up with that cache. A block that fits the first level (24 KiB) is 4 % slower,
 * because the per-block cost of a query arises four times as often.
 */
const BLOCK_BYTES: usize = 98304;
/**
 * One in this many segments is used for the first thresholds. With more segments, random directions need
 * fewer exact scores, but clusters, which otherwise skip most of the codes beyond the head, take longer.
 */
const SEED_SEGMENTS: u32 = 16;
/** The first pause of a head that does not help, in segments. */
export const PAUSE_SEGMENTS: u32 = 1;
/** With this many sums (4 MiB) or more, only the seeds of one batch are kept. */
const MAX_SEED_SUMS: u32 = 1 << 20;
/**
 * A batch is this share of the segments. After each batch, queries whose codes do not help change their plan.
 */
export const BATCHES: u32 = 32;

let states: usize = 0;
let codes: usize = 0;
export let residuals: usize = 0;
export let tiles: usize = 0;
export let blockRows: u32 = 0;
/**
 * Of segments 0..seedSegments−1, for each pair: | sums of a, i32[segmentRows] | of b |, in the order of the
 * blocks' rows. Then for each query the bits of its seeds.
 */
let seedSums: usize = 0;
export let seedSegments: u32 = 0;

export function seedSumsOf(s: u32, pair: i32, first: u32): usize {
  return seedSums + ((<usize>((s * <u32>pairCount + <u32>pair) * 2 * segmentRows + first)) << 2);
}

/**
 * Two queries that share each pass over the codes: whether it uses the head, for how many rows it will not, and
 * the length of its next pause in rows.
 */
@unmanaged
export class Pair {
  a: ManyQuery;
  b: ManyQuery;
  codes: usize;
  usesHead: bool;
  pause: u32;
  nextPause: u32;
}
let pairs: usize = 0;
export let pairCount: i32 = 0;

export function pairAt(i: i32): Pair {
  return changetype<Pair>(pairs + <usize>i * offsetof<Pair>());
}

export function manyAt(i: i32): ManyQuery {
  return changetype<ManyQuery>(states + <usize>i * manyQueryBytes());
}

/** Prepares queries 0..count−1. @returns false at the memory limit. */
export function beginMany(count: i32): bool {
  // Their sums take 4 bytes per row and query, and the number of queries is rounded up to even.
  const room = MAX_SEED_SUMS / (<u32>(count + 1) * segmentRows);
  seedSegments = max<u32>(1, min<u32>(max<u32>(room, segmentCount / BATCHES), segmentCount / SEED_SEGMENTS));
  pairCount = (count + 1) >> 1;
  const seedRows = seedSegments * segmentRows;
  const seedBytes = (<u64>seedRows * <u64>(2 * pairCount)) << 2;
  const seedBitBytes = <u64>seedRows >> 3;
  seedSums = reserveBounds(seedBytes + seedBitBytes * <u64>count);
  if (seedSums === 0) return false;
  const seedBits = seedSums + <usize>seedBytes;
  memory.fill(seedBits, 0, <usize>seedBitBytes * <usize>count);
  blockRows = min(MAX_BLOCK_ROWS, max<u32>(4, <u32>((BLOCK_BYTES << 2) / tileBytes()) & ~3));
  const stateBytes = (<usize>pairCount * 2 * manyQueryBytes() + 63) & ~63;
  const codeBytes = (<usize>pairCount * manyCodeBytes() + 63) & ~63;
  const residualBytes = (<usize>codeDimension) << 2;
  const pairBytes = (<usize>pairCount * offsetof<Pair>() + 63) & ~63;
  states = reserveMany(<u64>stateBytes + codeBytes + residualBytes + pairBytes + <usize>(blockRows >> 2) * tileBytes());
  if (states === 0) return false;
  codes = states + stateBytes;
  residuals = codes + codeBytes;
  pairs = residuals + residualBytes;
  tiles = pairs + pairBytes;
  memory.fill(states, 0, stateBytes + codeBytes);
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    pair.a = manyAt(2 * i);
    pair.b = manyAt(2 * i + 1);
    pair.codes = codes + <usize>i * manyCodeBytes();
    pair.usesHead = headVectors() < codeVectors();
    pair.pause = 0;
    pair.nextPause = PAUSE_SEGMENTS * segmentRows;
    pair.a.codes = pair.codes;
    pair.b.codes = pair.codes + 16;
  }
  for (let i = 0; i < count; i++) {
    manyAt(i).query = queryAt(i);
    manyAt(i).centre = NO_CENTRE;
    manyAt(i).threshold = NaN;
    manyAt(i).seedBits = seedBits + <usize>i * <usize>seedBitBytes;
  }
  return true;
}
