/**
 * Order of texts by code point, which is the order of their UTF-8 bytes and of PostgreSQL's COLLATE "C".
 * JavaScript's `<` compares UTF-16 units instead, which puts U+E000..U+FFFF after the surrogates of U+10000 and above.
 *
 * @returns negative, 0 or positive, as for Array.sort.
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

/** Moves surrogates above every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
