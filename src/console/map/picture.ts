/** The map as a picture to keep: as it is seen, with everything on it, or its points alone as shapes. */
import { drawnRadiusFor, fromBelow, radiusFor } from "./draw-points.ts";
import type { Ink } from "./labels.ts";
import { hexOf } from "./point-colors.ts";
import { type PointSizes, sizeLegend } from "./point-sizes.ts";
import { drawSizeLegend, sizeLegendShapes } from "./size-legend.tsx";
import type { Viewport } from "./viewport.ts";

/** What the canvas shows. */
export interface ShownMap {
  /** From below to above. */
  readonly canvases: readonly HTMLCanvasElement[];
  readonly ink: Ink;
  /** Device pixels per CSS pixel. */
  readonly ratio: number;
  readonly points: Float32Array;
  readonly colors: Uint32Array;
  /** undefined: all are of one size. */
  readonly sizes: PointSizes | undefined;
  readonly hidden: ReadonlySet<number>;
  readonly viewport: Viewport;
  readonly width: number;
  readonly height: number;
}

/** With points beyond this number a picture of shapes is larger than any program likes to open. */
export const MOST_SHAPES = 50_000;

export function pngOf({ canvases, ink, ratio, colors, sizes, width, height }: ShownMap): Promise<Blob> {
  const [first] = canvases as [HTMLCanvasElement];
  const whole = new OffscreenCanvas(first.width, first.height);
  const context = whole.getContext("2d") as OffscreenCanvasRenderingContext2D;
  context.fillStyle = ink.ground;
  context.fillRect(0, 0, whole.width, whole.height);
  for (const canvas of canvases) context.drawImage(canvas, 0, 0);
  const radius = drawnRadiusFor(colors.length, Math.min(width, height));
  if (sizes !== undefined) drawSizeLegend(context, sizeLegend(sizes, radius), height, ratio, ink);
  return whole.convertToBlob({ type: "image/png" });
}

/** The points that are in view, and what their sizes mean. Those of a colour are one group, or several where sizes decide what is above. */
export function svgOf({ ink, points, colors, sizes, hidden, viewport, width, height }: ShownMap): Blob {
  const radius = radiusFor(colors.length, Math.min(width, height));
  const factors = sizes?.factors;
  const groups: { color: number; circles: string[] }[] = [];
  const groupOf = new Map<number, string[]>();
  for (const row of fromBelow(colors.length, factors)) {
    const color = colors[row]!;
    const [x, y] = [viewport.toX(points[2 * row]!), viewport.toY(points[2 * row + 1]!)];
    if (hidden.has(color) || x < 0 || y < 0 || x > width || y > height) continue;
    const isAbove = factors !== undefined && groups.at(-1)?.color !== color;
    const circles = isAbove ? [] : (groupOf.get(color) ?? []);
    if (circles.length === 0) {
      groups.push({ color, circles });
      groupOf.set(color, circles);
    }
    circles.push(`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${Number((radius * (factors?.[row] ?? 1)).toFixed(2))}"/>`);
  }
  const parts = groups.map(({ color, circles }) => `<g fill="${hexOf(color)}" fill-opacity="0.85">${circles.join("")}</g>`);
  if (sizes !== undefined) parts.push(sizeLegendShapes(sizeLegend(sizes, radius), height, ink));
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`;
  return new Blob([head, `<rect width="100%" height="100%" fill="${ink.ground}"/>`, ...parts, "</svg>\n"], { type: "image/svg+xml" });
}
