/** Words on the map, none over another: names of records, and captions of what has one colour. */
import type { Plane } from "./messages.ts";
import { numberOf } from "./point-colors.ts";
import type { Viewport } from "./viewport.ts";

export interface Ink {
  readonly text: string;
  readonly ground: string;
  readonly accent: string;
}

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export const overlap = (a: Box, b: Box): boolean => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** Readable on any ground. */
export function writeText(
  context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D,
  text: string,
  { left, top, bottom }: Box,
  ink: Ink,
): void {
  const middle = (top + bottom) / 2;
  context.textBaseline = "middle";
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = ink.ground;
  context.strokeText(text, left, middle);
  context.fillStyle = ink.text;
  context.fillText(text, left, middle);
}

export interface Caption {
  readonly text: string;
  /** In the plane. */
  readonly x: number;
  readonly y: number;
}

const MAX_CAPTION = 24;
const CAPTION_HEIGHT = 20;
/** The middle of so many, evenly chosen, is that of all as far as the eye can see. */
const MOST_SORTED = 10_000;

/** What the legend says of a colour, in the middle of its points; most frequent first. */
export function captionsOf({ points, colors, legend }: Plane, hidden: ReadonlySet<number>): readonly Caption[] {
  const rowsOf = new Map<number, number[]>(legend.map(({ color }) => [numberOf(color), []]));
  for (const [row, color] of colors.entries()) rowsOf.get(color)?.push(row);
  return legend.flatMap(({ value, color, isRest }) => {
    const number = numberOf(color);
    if (isRest || hidden.has(number)) return [];
    const all = rowsOf.get(number) as number[];
    const step = Math.ceil(all.length / MOST_SORTED);
    const rows = all.filter((_, i) => i % step === 0);
    // Half of them are on each side: far ones do not pull it away.
    const middle = (axis: number): number => rows.map((row) => points[2 * row + axis]!).toSorted((a, b) => a - b)[rows.length >> 1] ?? 0;
    const text = value.length > MAX_CAPTION ? `${value.slice(0, MAX_CAPTION - 1)}…` : value;
    return [{ text, x: middle(0), y: middle(1) }];
  });
}

/** @returns where they stand, so that nothing else is written there. */
export function drawCaptions(
  context: CanvasRenderingContext2D,
  captions: readonly Caption[],
  viewport: Viewport,
  ratio: number,
  ink: Ink,
): readonly Box[] {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = "700 15px system-ui, sans-serif";
  const taken: Box[] = [];
  for (const { text, x, y } of captions) {
    const half = context.measureText(text).width / 2;
    const [middleX, middleY] = [viewport.toX(x), viewport.toY(y)];
    const box = { left: middleX - half, right: middleX + half, top: middleY - CAPTION_HEIGHT / 2, bottom: middleY + CAPTION_HEIGHT / 2 };
    if (taken.some((other) => overlap(box, other))) continue;
    taken.push(box);
    writeText(context, text, box, ink);
  }
  return taken;
}
