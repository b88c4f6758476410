/** A range of cells, and the block of text that is copied from it and pasted into it. */

export interface CellPlace {
  readonly row: number;
  readonly column: number;
}

interface CellRange {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
}

export const rangeBetween = (a: CellPlace, b: CellPlace): CellRange => ({
  top: Math.min(a.row, b.row),
  bottom: Math.max(a.row, b.row),
  left: Math.min(a.column, b.column),
  right: Math.max(a.column, b.column),
});

export const rowsOf = ({ top, bottom }: CellRange): readonly number[] => Array.from({ length: bottom - top + 1 }, (_, i) => top + i);

/** The farthest row on the way from one to another up to which all have been read. */
export function lastRead(rows: ReadonlyMap<number, unknown>, from: number, to: number): number {
  const step = Math.sign(to - from);
  let row = from;
  while (row !== to && rows.has(row + step)) row += step;
  return row;
}

/** @returns the cells as they are if they do not fit a whole number of times. */
export function repeated(cells: readonly (readonly string[])[], height: number, width: number): readonly (readonly string[])[] {
  const columns = cells[0]?.length ?? 0;
  const fits = height % cells.length === 0 && cells.every((line) => line.length === columns) && width % columns === 0;
  if (!fits) return cells;
  return Array.from({ length: height }, (_, i) => Array.from({ length: width }, (__, j) => cells[i % cells.length]![j % columns]!));
}

/** A cell of a line of cells: tabs and line ends would end it. */
export const tabless = (text: string): string => text.replace(/[\t\r\n]+/g, " ");
