/**
 * The queries of one search in linear memory: float32 (for the float scan), float64 (for the exact score),
 * codes (to compare with those of rows), and a heap. Buffers grow by doubling and are kept for the next
 * search. Outgrown buffers stay unused (together less than what is in use).
 */

import { allocate } from "../rows/memory";
import { codeDimension, dimension, stride } from "../rows/rows";
import { CodedQuery, NO_CENTRE } from "./coded-query";
import { exactSquares } from "./exact";
import { Seeds } from "./seeds";
import { ENTRY_BYTES, resetTopK, TopK } from "./top-k";

/**
 * Number of steps whose l1 codes are kept at a time, a power of two: those of eight octaves, or fewer where
 * many queries would take more than MAX_SLOT_BYTES.
 */
export let stepSlots: u32 = 0;
const MAX_STEP_SLOTS: u32 = 64;
const MIN_STEP_SLOTS: u32 = 16;
const MAX_SLOT_BYTES: u64 = 4 << 20;

/** One query, and its whole codes. Its addresses point to its own part of the buffers. */
@unmanaged
export class Query extends CodedQuery {
  floats: usize;
  doubles: usize;
  /** Σ q². */
  squares: f64;

  /** Its number in the search. */
  number: i32;

  /** Codes for dot products, in the layout of dot/dot-of-four.ts. */
  dotCodes: usize;
  /** ‖p̂‖ of the head, an upper bound, and the factor of losses over the head. */
  headCodedNorm: f64;
  headLossFactor: f32;

  /** Codes for l1; see l1/slots.ts. */
  slots: usize;
  slotMisses: i32;

  /** Number of segments until heads are tried again, and the length of the next pause; see plans/heads.ts. */
  headPause: u32;
  nextHeadPause: u32;

  /** Whether it has a sketch; see sketch/query-sketch.ts. */
  isSketched: bool;

  /** The segment from which the cascade may be tried again, and the length of its last pause in segments. */
  floatsUntilSegment: u32;
  backoff: u32;

  /** Whether the cascade handles it in the current batch. */
  isActive: bool;
  seeds: Seeds;
  heap: TopK;
}

/** Bytes before a slot's codes; see l1/slots.ts. */
export const SLOT_HEADER_BYTES: usize = 32;
export function slotBytes(): usize {
  return SLOT_HEADER_BYTES + <usize>codeDimension;
}

/**
 * Size of the codes for dot products, including the starting values of sums, in the larger of
 * dot/dot-of-four.ts's two layouts.
 */
function dotCodeBytes(): usize {
  return ((<usize>codeDimension) << 1) + 32;
}

/** Size of all codes of a query: those for dot products, then the slots and one more for none. */
function codeBytes(): usize {
  return dotCodeBytes() + <usize>(stepSlots + 1) * slotBytes();
}

@unmanaged
class Buffer {
  ptr: usize;
  bytes: u64;
}

const floats = changetype<Buffer>(memory.data(16, 8));
const doubles = changetype<Buffer>(memory.data(16, 8));
const codes = changetype<Buffer>(memory.data(16, 8));
const heaps = changetype<Buffer>(memory.data(16, 8));
const heapStates = changetype<Buffer>(memory.data(16, 8));
const states = changetype<Buffer>(memory.data(16, 8));
const filterBits = changetype<Buffer>(memory.data(16, 8));
const bounds = changetype<Buffer>(memory.data(16, 8));
const many = changetype<Buffer>(memory.data(16, 8));
const seeds = changetype<Buffer>(memory.data(16, 8));
const seedStates = changetype<Buffer>(memory.data(16, 8));

function ensure(buffer: Buffer, bytes: u64): bool {
  if (buffer.bytes >= bytes) return true;
  let wanted = max<u64>(bytes, min<u64>(buffer.bytes * 2, bytes * 2));
  let ptr = allocate(wanted);
  if (ptr === 0) {
    wanted = bytes;
    ptr = allocate(wanted);
    if (ptr === 0) return false;
  }
  buffer.ptr = ptr;
  buffer.bytes = wanted;
  return true;
}

let heapCapacity: i32 = 0;

/** Room for seeds, besides the k that most plans take; see plans/by-sketches.ts. */
export const SEEDS_PER_RESULT: usize = 4;

/** Makes room for `count` queries with `k` results each. @returns false at the memory limit. */
export function reserveQueries(count: i32, k: i32): bool {
  heapCapacity = k;
  const n = <u64>count;
  stepSlots = MAX_STEP_SLOTS;
  while (stepSlots > MIN_STEP_SLOTS && n * stepSlots * <u64>slotBytes() > MAX_SLOT_BYTES) stepSlots >>= 1;
  return (
    ensure(floats, n * <u64>stride * 4) &&
    ensure(doubles, n * <u64>stride * 8) &&
    ensure(codes, n * <u64>codeBytes()) &&
    ensure(heaps, n * <u64>k * <u64>ENTRY_BYTES) &&
    ensure(heapStates, n * <u64>offsetof<TopK>()) &&
    ensure(states, n * <u64>offsetof<Query>()) &&
    ensure(seeds, n * <u64>k * <u64>SEEDS_PER_RESULT * 8) &&
    ensure(seedStates, n * <u64>offsetof<Seeds>())
  );
}

/** Room for what plans/cascade.ts keeps for a batch of rows. 0 at the memory limit. */
export function reserveBounds(bytes: u64): usize {
  return ensure(bounds, bytes) ? bounds.ptr : 0;
}

/** Room for what plans/cascade-many.ts keeps for queries and rows. 0 at the memory limit. */
export function reserveMany(bytes: u64): usize {
  return ensure(many, bytes) ? many.ptr : 0;
}

/** Where the host writes f32[dimension] of query `i`; padding is set to +0 here. */
export function queryPtr(i: i32): usize {
  const ptr = floats.ptr + <usize>i * ((<usize>stride) << 2);
  for (let j = dimension; j < stride; j++) store<f32>(ptr + ((<usize>j) << 2), 0);
  return ptr;
}

/** Where the host writes the row mask, u32[words]; 0 at the memory limit. */
export function filterPtr(words: u32): usize {
  return ensure(filterBits, max<u64>((<u64>words) << 2, 64)) ? filterBits.ptr : 0;
}

export function currentFilterPtr(): usize {
  return filterBits.ptr;
}

export function queryAt(i: i32): Query {
  return changetype<Query>(states.ptr + <usize>i * offsetof<Query>());
}

/** Widens query `i` for a search by `similarity`, discards its codes and empties its heap. */
export function prepareQuery(i: i32, similarity: i32): Query {
  const query = queryAt(i);
  const q = queryPtr(i);
  const wide = doubles.ptr + <usize>i * ((<usize>stride) << 3);
  for (let j = 0; j < stride; j++) store<f64>(wide + ((<usize>j) << 3), <f64>load<f32>(q + ((<usize>j) << 2)));
  query.similarity = similarity;
  query.number = i;
  query.floats = q;
  query.doubles = wide;
  query.squares = exactSquares(q, stride);
  query.dotCodes = codes.ptr + <usize>i * codeBytes();
  query.centre = NO_CENTRE;
  query.slots = query.dotCodes + dotCodeBytes();
  query.headPause = 0;
  query.nextHeadPause = 0;
  query.isSketched = false;
  query.floatsUntilSegment = 0;
  query.backoff = 0;
  query.seeds = changetype<Seeds>(seedStates.ptr + <usize>i * offsetof<Seeds>());
  query.seeds.ptr = seeds.ptr + <usize>i * <usize>heapCapacity * SEEDS_PER_RESULT * 8;
  query.seeds.capacity = heapCapacity;
  query.heap = changetype<TopK>(heapStates.ptr + <usize>i * offsetof<TopK>());
  resetTopK(query.heap, heaps.ptr + <usize>i * <usize>heapCapacity * ENTRY_BYTES, heapCapacity);
  return query;
}
