/** Points within a line that was drawn around them. */

export interface PlanePoint {
  readonly x: number;
  readonly y: number;
}

/**
 * @param line  in the plane; its end is joined to its begin.
 * @param points  x0, y0, x1, y1, …
 * @returns the rows of those within it, by the even-odd rule.
 */
export function rowsWithin(line: readonly PlanePoint[], points: Float32Array): readonly number[] {
  const rows: number[] = [];
  let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x, y } of line) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    bottom = Math.min(bottom, y);
    top = Math.max(top, y);
  }
  for (let row = 0; 2 * row < points.length; row++) {
    const [x, y] = [points[2 * row]!, points[2 * row + 1]!];
    // Most points are far from it.
    if (x >= left && x <= right && y >= bottom && y <= top && isWithin(line, x, y)) rows.push(row);
  }
  return rows;
}

function isWithin(line: readonly PlanePoint[], x: number, y: number): boolean {
  let isInside = false;
  for (const [i, a] of line.entries()) {
    const b = line[(i + 1) % line.length] as PlanePoint;
    if (a.y > y !== b.y > y && x < a.x + ((y - a.y) / (b.y - a.y)) * (b.x - a.x)) isInside = !isInside;
  }
  return isInside;
}
