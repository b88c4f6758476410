/**
 * Order of texts by code point: that of their UTF-8 bytes, and of COLLATE "C". JavaScript's `<` compares UTF-16 units, which puts
 * U+E000..U+FFFF above the surrogates of U+10000 and beyond.
 *
 * @returns negative, 0 or positive.
 */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Lifts surrogates above every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
