/** Mixes directions so that the coordinates of sketches have the same spread (learn.ts says why). */

/**
 * Replaces groups of 32 of `count` float32, `step` bytes apart, by their Walsh–Hadamard transform. The
 * members of a group are count / 32 elements apart.
 */
export function mix(values: usize, count: i32, step: usize): void {
  const groups = <usize>count >> 5;
  const apart = groups * step;
  for (let group: usize = 0; group < groups; group++) {
    const first = values + group * step;
    for (let half: usize = 1; half < 32; half <<= 1) {
      for (let i: usize = 0; i < 32; i++) {
        if (i & half) continue;
        const a = first + i * apart;
        const b = a + half * apart;
        const x = load<f32>(a);
        const y = load<f32>(b);
        store<f32>(a, x + y);
        store<f32>(b, x - y);
      }
    }
    for (let i: usize = 0; i < 32; i++) store<f32>(first + i * apart, load<f32>(first + i * apart) * 0.1767767);
  }
}
