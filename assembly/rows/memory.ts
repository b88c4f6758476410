/**
 * The bump allocator. This is the only file that calls memory.grow. A shard is freed by dropping its
 * instance. Of blocks that are released earlier, one contiguous range is kept, and later blocks are taken
 * from it if they fit.
 *
 * Invariant: every address handed out lies wholly inside linear memory. Sizes are u64, so that a request past
 * 4 GiB fails instead of wrapping.
 */

const PAGE_BYTES: u64 = 65536;
/** Memory grows by at least an eighth. */
const GROWTH: i64 = 8;
/** Rows and codes start on a cache line. */
const ALIGNMENT: u64 = 64;

let top: u64 = (<u64>__heap_base + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
let limitBytes: u64 = 65536 * PAGE_BYTES;

/** The range that was released. */
let spare: u64 = 0;
let spareEnd: u64 = 0;

function aligned(bytes: u64): u64 {
  return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

/** @param pages  The maximum number of 64 KiB pages that this instance may use, 1..65536. */
export function setMemoryLimit(pages: u32): void {
  limitBytes = <u64>pages * PAGE_BYTES;
}

/**
 * @returns the address of `bytes` new zeroed bytes, or 0 when the limit is reached; nothing has changed then.
 */
export function allocate(bytes: u64): usize {
  if (aligned(bytes) <= spareEnd - spare) {
    const ptr = <usize>spare;
    spare += aligned(bytes);
    memory.fill(ptr, 0, <usize>bytes);
    return ptr;
  }
  const end = aligned(top + bytes);
  if (end > limitBytes) return 0;
  const pages = <i64>(<u32>memory.size());
  const missing = <i64>((end + PAGE_BYTES - 1) / PAGE_BYTES) - pages;
  if (missing > 0 && !growBy(missing, pages)) return 0;
  const ptr = <usize>top;
  top = end;
  return ptr;
}

/**
 * Grows by more than is missing, if it can, because V8 collects the whole heap of the thread after nearly every
 * growth. Pages that are not touched yet take no memory.
 */
function growBy(missing: i64, pages: i64): bool {
  const limit = <i64>(limitBytes / PAGE_BYTES);
  const ample = min(max(missing, pages / GROWTH), limit - pages);
  if (ample > missing && memory.grow(<i32>ample) >= 0) return true;
  return memory.grow(<i32>missing) >= 0;
}

/**
 * Releases a block, or the part of it from an aligned address on. If it is adjacent to the kept range, it is
 * joined to it. Otherwise the longer of the two is kept.
 */
export function release(ptr: usize, bytes: u64): void {
  const start = <u64>ptr;
  const end = aligned(start + bytes);
  if (start === spareEnd) {
    spareEnd = end;
  } else if (end === spare) {
    spare = start;
  } else if (end - start > spareEnd - spare) {
    spare = start;
    spareEnd = end;
  }
}

/** @returns the number of bytes handed out so far, including the module's own static data. */
export function usedBytes(): u64 {
  return top;
}
