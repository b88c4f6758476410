/**
 * The rows with the lowest bounds of a batch: scored first, they give a k-th best score that is nearly the final one, so that far fewer of the
 * other rows survive. A heap whose root has the highest bound; which of equal bounds stay does not matter.
 *
 *   entry, 8 bytes: | bound f32 | row u32 |
 */
let ptr: usize = 0;
let capacity: i32 = 0;
let count: i32 = 0;

export function resetSeeds(at: usize, k: i32): void {
  ptr = at;
  capacity = k;
  count = 0;
}

export function seedCount(): i32 {
  return count;
}

export function seedRow(i: i32): u32 {
  return load<u32>(ptr + ((<usize>i) << 3), 4);
}

function boundAt(i: i32): f32 {
  return load<f32>(ptr + ((<usize>i) << 3));
}

function put(i: i32, bound: f32, row: u32): void {
  store<f32>(ptr + ((<usize>i) << 3), bound);
  store<u32>(ptr + ((<usize>i) << 3), row, 4);
}

/** A row whose bound is not below this is not taken. */
export function seedLimit(): f32 {
  return count < capacity ? Infinity : boundAt(0);
}

/** Takes a row whose bound is below seedLimit(), dropping the one with the highest bound when full. */
export function addSeed(bound: f32, row: u32): void {
  let i = 0;
  if (count < capacity) {
    i = count++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!(bound > boundAt(parent))) break;
      put(i, boundAt(parent), seedRow(parent));
      i = parent;
    }
  } else {
    while (true) {
      let child = 2 * i + 1;
      if (child >= count) break;
      if (child + 1 < count && boundAt(child + 1) > boundAt(child)) child++;
      if (!(boundAt(child) > bound)) break;
      put(i, boundAt(child), seedRow(child));
      i = child;
    }
  }
  put(i, bound, row);
}
