/** The sizes of points by a column of numbers: the area grows evenly from the lowest value to the highest. */
export interface PointSizes {
  readonly column: string;
  /** The radius of each point, of the usual one. */
  readonly factors: Float32Array<ArrayBuffer>;
  readonly lowest: number;
  readonly highest: number;
  /** How many have no number: they are as small as the lowest. */
  readonly without: number;
}

/** Of the usual radius. */
const SMALLEST = 0.4;
const LARGEST = 2.4;

/** @param values  of a column, one for each point. */
export function pointSizes(column: string, values: readonly (string | null)[]): PointSizes {
  const numbers = values.map((value) => (value === null ? Number.NaN : Number(value)));
  let [lowest, highest, without] = [Infinity, -Infinity, 0];
  for (const value of numbers) {
    if (Number.isNaN(value)) without++;
    else {
      lowest = Math.min(lowest, value);
      highest = Math.max(highest, value);
    }
  }
  const factors = Float32Array.from(numbers, (value) => factorAt(Number.isNaN(value) ? 0 : shareOf(value, lowest, highest)));
  return { column, factors, lowest, highest, without };
}

/** Halved first: the way between two numbers may be more than the largest number. */
const shareOf = (value: number, lowest: number, highest: number): number =>
  highest > lowest ? (value / 2 - lowest / 2) / (highest / 2 - lowest / 2) : 0.5;

const factorAt = (share: number): number => Math.sqrt(SMALLEST ** 2 + (LARGEST ** 2 - SMALLEST ** 2) * share);

export interface SizeLegend {
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly marks: readonly { readonly text: string; readonly x: number; readonly y: number; readonly radius: number }[];
  /** Where the texts begin. */
  readonly textX: number;
}

const { format } = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

const LINE = 18;
const GAP = 4;
const CHARACTER = 7.5;
const MOST_TITLE = 24;

/**
 * What the sizes mean, as large as the points are: from the lowest value to the highest, below the column's name.
 * @param radius  the usual one.
 */
export function sizeLegend({ column, lowest, highest, without }: PointSizes, radius: number): SizeLegend {
  const title = column.length > MOST_TITLE ? `${column.slice(0, MOST_TITLE - 1)}…` : column;
  const shares = lowest > highest ? [] : lowest === highest ? [0.5] : [0, 0.5, 1];
  const center = GAP + radius * LARGEST;
  let y = GAP + LINE;
  const marks = shares.map((share) => {
    const own = radius * factorAt(share);
    const height = Math.max(LINE, 2 * own + GAP);
    y += height;
    return { text: format(lowest * (1 - share) + highest * share), x: center, y: y - height / 2, radius: own };
  });
  if (without > 0) {
    y += LINE;
    marks.push({ text: `none: ${without.toLocaleString("en")}`, x: center, y: y - LINE / 2, radius: radius * SMALLEST });
  }
  const textX = 2 * center + GAP;
  const longest = Math.max(title.length * CHARACTER - textX, ...marks.map(({ text }) => text.length * CHARACTER));
  return { title, width: textX + longest + 2 * GAP, height: y + GAP, marks, textX };
}
