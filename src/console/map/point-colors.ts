/** The colours of points: the records' own where they carry one, else one for each of the most frequent values of a column. */

export interface Legend {
  /** `#rrggbb` of each point. */
  readonly colors: readonly string[];
  /** What the colours mean, most frequent first; empty where each point has its own. */
  readonly entries: readonly { readonly value: string; readonly color: string }[];
}

const HEX = /^#[0-9a-f]{6}$/i;

/** Told apart also with the usual colour blindnesses (after Okabe and Ito, 2008), and on light and dark ground. */
const PALETTE = ["#3f7fd0", "#e0782f", "#2a9d73", "#c6529a", "#b8930a", "#7a5cc7", "#35a7c2", "#cf4a4a"];
const OTHERS = "#8b8d98";
const PLAIN = "#6a6fd6";

export function legendOf(values: readonly (string | null)[]): Legend {
  const given = values.filter((value) => value !== null);
  if (given.length === 0) return { colors: values.map(() => PLAIN), entries: [] };
  if (given.every((value) => HEX.test(value))) return { colors: values.map((value) => value ?? OTHERS), entries: [] };
  const counts = new Map<string, number>();
  for (const value of given) counts.set(value, (counts.get(value) ?? 0) + 1);
  const frequent = [...counts].toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, PALETTE.length);
  const colorOf = new Map(frequent.map(([value], i) => [value, PALETTE[i] as string]));
  const entries = frequent.map(([value]) => ({ value, color: colorOf.get(value) as string }));
  if (counts.size > frequent.length) entries.push({ value: "others", color: OTHERS });
  return { colors: values.map((value) => colorOf.get(value ?? "") ?? OTHERS), entries };
}

/** Whether a column's values are colours themselves, told from some of them. */
export const areColors = (values: readonly unknown[]): boolean =>
  values.length > 0 && values.every((value) => typeof value === "string" && HEX.test(value));
