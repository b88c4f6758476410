/** The first half of a surrogate pair, which a text should not be cut behind. @param unit  UTF-16 code unit. */
export const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
