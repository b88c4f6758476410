/**
 * The colours of points: the records' own if they have one, else one for each of the most frequent values of
 * a column.
 */

export interface LegendEntry {
  readonly value: string;
  /** `#rrggbb`, which only its points have. */
  readonly color: string;
  /** Of points. */
  readonly count: number;
  /** Whether it stands for what has no colour of its own. */
  readonly isRest: boolean;
}

export interface PointColors {
  /** 0xRRGGBB of each point. */
  readonly colors: Uint32Array<ArrayBuffer>;
  /**
   * The meaning of the colours, most frequent first. Empty if each point has its own colour, and if all have
   * the same.
   */
  readonly legend: readonly LegendEntry[];
}

const HEX = /^#[0-9a-f]{6}$/i;

/**
 * Distinguishable with the usual colour blindnesses (after Okabe and Ito, 2008), and on light and dark
 * backgrounds.
 */
const PALETTE = ["#3f7fd0", "#e0782f", "#2a9d73", "#c6529a", "#b8930a", "#7a5cc7", "#35a7c2", "#cf4a4a"];
const OTHERS = "#8b8d98";
const PLAIN = "#6a6fd6";

/** @param values  of a column, one for each point. */
export function pointColors(values: readonly (string | null)[]): PointColors {
  const given = values.filter((value) => value !== null);
  if (given.length === 0) return { colors: new Uint32Array(values.length).fill(numberOf(PLAIN)), legend: [] };
  if (given.every((value) => HEX.test(value)))
    return { colors: Uint32Array.from(values, (value) => numberOf(value ?? OTHERS)), legend: [] };
  const counts = new Map<string, number>();
  for (const value of given) counts.set(value, (counts.get(value) ?? 0) + 1);
  const frequent = [...counts].toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, PALETTE.length);
  const legend = frequent.map(([value, count], i) => ({ value, color: PALETTE[i] as string, count, isRest: false }));
  const colorOf = new Map(legend.map(({ value, color }) => [value, numberOf(color)]));
  const others = values.length - legend.reduce((sum, { count }) => sum + count, 0);
  if (others > 0) legend.push({ value: counts.size > frequent.length ? "others" : "none", color: OTHERS, count: others, isRest: true });
  return { colors: Uint32Array.from(values, (value) => colorOf.get(value ?? "") ?? numberOf(OTHERS)), legend };
}

/** 0xRRGGBB of `#rrggbb`. */
export const numberOf = (hex: string): number => Number.parseInt(hex.slice(1), 16);

/** `#rrggbb`. */
export const hexOf = (color: number): string => `#${color.toString(16).padStart(6, "0")}`;

/** Whether a column's values are colours, judged by some of them. */
export const areColors = (values: readonly unknown[]): boolean =>
  values.length > 0 && values.every((value) => typeof value === "string" && HEX.test(value));
