/**
 * The queries of one search in linear memory, each as float32 (for the fast scan) and float64 (for the exact score), and its heap.
 * Buffers grow by doubling and are kept for the next search; what was outgrown stays unused (together less than what is in use).
 */
import { exactSquares } from "./exact";
import { allocate } from "./memory";
import { dimension, stride } from "./rows";
import { ENTRY_BYTES, resetTopK, TopK } from "./top-k";

@unmanaged
class Buffer {
  ptr: usize;
  bytes: u64;
}

const floats = changetype<Buffer>(memory.data(16, 8));
const doubles = changetype<Buffer>(memory.data(16, 8));
const heaps = changetype<Buffer>(memory.data(16, 8));
const heapState = changetype<Buffer>(memory.data(16, 8));
const filterBits = changetype<Buffer>(memory.data(16, 8));

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

/** Room for `count` queries with `k` results each. @returns false at the memory limit. */
export function reserveQueries(count: i32, k: i32): bool {
  heapCapacity = k;
  const elements = <u64>count * <u64>stride;
  return (
    ensure(floats, elements << 2) &&
    ensure(doubles, elements << 3) &&
    ensure(heaps, <u64>count * <u64>k * <u64>ENTRY_BYTES) &&
    ensure(heapState, <u64>count * <u64>offsetof<TopK>())
  );
}

/** Where the host writes f32[dimension] of query `i`; padding is made +0 here. */
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

export function queryDoublesPtr(i: i32): usize {
  return doubles.ptr + <usize>i * ((<usize>stride) << 3);
}

export function heapOf(i: i32): TopK {
  return changetype<TopK>(heapState.ptr + <usize>i * offsetof<TopK>());
}

/** Widens query `i` and empties its heap. @returns Σ q² as exact.ts defines it. */
export function prepareQuery(i: i32): f64 {
  const q = queryPtr(i);
  const wide = queryDoublesPtr(i);
  for (let j = 0; j < stride; j++) store<f64>(wide + ((<usize>j) << 3), <f64>load<f32>(q + ((<usize>j) << 2)));
  resetTopK(heapOf(i), heaps.ptr + <usize>i * <usize>heapCapacity * ENTRY_BYTES, heapCapacity);
  return exactSquares(q, stride);
}
