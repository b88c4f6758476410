/**
 * What a row's code loses, measured again: a row that was read from outside must be the one that was coded.
 *
 * Proof. e' is that of codes/codes.ts, element by element: the same difference, product and difference, which no build
 * fuses. Only the order of the float32 sum differs. Two such sums of n terms ≥ 0 are each within a relative (n + 2) 2^-24
 * of the true one, so this one's root is at most (1 + (n + 64) 2^-23) times the other's: the factor by which LOSS_L2 was
 * increased before it was rounded up. So the true row is never refused, and a row that passes lies within what the bounds
 * assume.
 */
import { addF32Wide } from "../lanes";
import { centreOf, headBytes, headPtr, LOSS_L2, lossesPtr, STEPS, stride, tailPtr, wordsPtr } from "../rows/rows";

/** Squared losses of four codes, c − 64 as i32x4. `centre` is 0 for none. */
function squaredLosses(codes: v128, x: usize, centre: usize, step: v128): v128 {
  let y = v128.load(x);
  if (centre !== 0) y = f32x4.sub(y, v128.load(centre));
  const loss = f32x4.sub(y, f32x4.mul(f32x4.convert_i32x4_s(codes), step));
  return f32x4.mul(loss, loss);
}

/** Σ e'² over float32 number `from` to `end` of a row, whose codes start at `codes`. */
function sumOfPart(codes: usize, x: usize, centre: usize, from: usize, end: usize, step: v128): v128 {
  let sum = f32x4.splat(0);
  const middle = i16x8.splat(64);
  for (let j = from; j < end; j += 16) {
    const bytes = v128.load(codes + (j - from));
    const low = i16x8.sub(i16x8.extend_low_i8x16_u(bytes), middle);
    const high = i16x8.sub(i16x8.extend_high_i8x16_u(bytes), middle);
    const at = j << 2;
    const c: usize = centre === 0 ? 0 : centre + at;
    sum = f32x4.add(sum, squaredLosses(i32x4.extend_low_i16x8_s(low), x + at, c, step));
    if (j + 4 < end) sum = f32x4.add(sum, squaredLosses(i32x4.extend_high_i16x8_s(low), x + at + 16, c === 0 ? 0 : c + 16, step));
    if (j + 8 < end) sum = f32x4.add(sum, squaredLosses(i32x4.extend_low_i16x8_s(high), x + at + 32, c === 0 ? 0 : c + 32, step));
    if (j + 12 < end) sum = f32x4.add(sum, squaredLosses(i32x4.extend_high_i16x8_s(high), x + at + 48, c === 0 ? 0 : c + 48, step));
  }
  return sum;
}

/** Whether f32[stride] at `x` lies within what the row's code claims to lose. A row that is not codable claims nothing. */
export function isWithinLoss(segment: usize, row: u32, x: usize): bool {
  const claimed = reinterpret<f32>((<u32>load<u16>(lossesPtr(segment, row), LOSS_L2)) << 16);
  if (claimed === Infinity) return true;
  const step = f32x4.splat(load<f32>(wordsPtr(segment, row), STEPS));
  const centre = centreOf(segment);
  const end = <usize>stride;
  const head = min(headBytes, end);
  let sum = sumOfPart(headPtr(segment, row), x, centre, 0, head, step);
  if (head < end) sum = f32x4.add(sum, sumOfPart(tailPtr(segment, row), x, centre, head, end, step));
  return Math.sqrt(addF32Wide(sum)) <= <f64>claimed;
}
