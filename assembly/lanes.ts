/** Lanes of vectors: sums, largest values, masks. The one place for them. */

/** The sum of i32x4. */
export function addI32(v: v128): i32 {
  return i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1) + (i32x4.extract_lane(v, 2) + i32x4.extract_lane(v, 3));
}

function addHalvesOfTwo(a: v128, b: v128): v128 {
  return i32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
}

/** The sums of a and b, each i32x4, in lanes 0 and 1. */
export function addI32OfTwo(a: v128, b: v128): v128 {
  const halves = addHalvesOfTwo(a, b);
  return i32x4.add(halves, i64x2.shuffle(halves, halves, 1, 0));
}

/** The sums of a, b, c and d, each i32x4, as i32x4. */
export function addI32OfFour(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = addHalvesOfTwo(a, b);
  const cd = addHalvesOfTwo(c, d);
  return i32x4.add(i32x4.shuffle(ab, cd, 0, 1, 4, 5), i32x4.shuffle(ab, cd, 2, 3, 6, 7));
}

/** The sums of a, b, c and d, each i16x8, as i32x4. */
export function addI16OfFour(a: v128, b: v128, c: v128, d: v128): v128 {
  return addI32OfFour(
    i32x4.extadd_pairwise_i16x8_s(a),
    i32x4.extadd_pairwise_i16x8_s(b),
    i32x4.extadd_pairwise_i16x8_s(c),
    i32x4.extadd_pairwise_i16x8_s(d),
  );
}

/** The sum of f32x4, in float32. */
export function addF32(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}

/** The sum of f32x4, in float64. */
export function addF32Wide(v: v128): f64 {
  return <f64>f32x4.extract_lane(v, 0) + <f64>f32x4.extract_lane(v, 1) + <f64>f32x4.extract_lane(v, 2) + <f64>f32x4.extract_lane(v, 3);
}

/** Adds neighbours of two f32x4: | a0+a1 | a2+a3 | b0+b1 | b2+b3 |. */
export function addF32Neighbours(a: v128, b: v128): v128 {
  return f32x4.add(i32x4.shuffle(a, b, 0, 2, 4, 6), i32x4.shuffle(a, b, 1, 3, 5, 7));
}

/** The sum of f64x2. */
export function addF64(v: v128): f64 {
  return f64x2.extract_lane(v, 0) + f64x2.extract_lane(v, 1);
}

/** The largest of f32x4. */
export function largestF32(v: v128): f32 {
  return max(max(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)), max(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)));
}

/** The least of f32x4. */
export function leastF32(v: v128): f32 {
  return min(min(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)), min(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)));
}

/** The exact squares of f32x4, with neighbouring lanes added: f64x2. */
export function squaresOfF32(v: v128): v128 {
  const low = f64x2.promote_low_f32x4(v);
  const high = f64x2.promote_low_f32x4(i32x4.shuffle(v, v, 2, 3, 2, 3));
  return f64x2.add(f64x2.mul(low, low), f64x2.mul(high, high));
}

/** Four 32-bit values, `offset` bytes from each address. */
export function gather32(ptr0: usize, ptr1: usize, ptr2: usize, ptr3: usize, offset: usize): v128 {
  const one = v128.load32_zero(ptr0 + offset);
  const two = v128.load32_lane(ptr1 + offset, one, 1);
  const three = v128.load32_lane(ptr2 + offset, two, 2);
  return v128.load32_lane(ptr3 + offset, three, 3);
}

/** Four upper halves of float32 at `ptr`, as f32x4. */
export function loadHalves(ptr: usize): v128 {
  return i32x4.shl(i32x4.extend_low_i16x8_u(v128.load64_zero(ptr)), 16);
}

/** Expands four bits to lanes, each all ones or zero. */
export function lanesOf(four: u32): v128 {
  const bits = i32x4(1, 2, 4, 8);
  return i32x4.eq(v128.and(i32x4.splat(four), bits), bits);
}

/** A bit mask of those of the 32 float32 at `ptr` that are above the limit. NaN is not. */
export function rowsAbove(ptr: usize, limit: f32): u32 {
  const limits = f32x4.splat(limit);
  let bits: u32 = 0;
  for (let i: u32 = 0; i < 32; i += 4) bits |= (<u32>i32x4.bitmask(f32x4.gt(v128.load(ptr + ((<usize>i) << 2)), limits))) << i;
  return bits;
}

/** A bit mask of those of the 32 float32 at `ptr` that are below the limit. NaN is not. */
export function rowsBelow(ptr: usize, limit: f32): u32 {
  const limits = f32x4.splat(limit);
  let bits: u32 = 0;
  for (let i: u32 = 0; i < 32; i += 4) bits |= (<u32>i32x4.bitmask(f32x4.lt(v128.load(ptr + ((<usize>i) << 2)), limits))) << i;
  return bits;
}
