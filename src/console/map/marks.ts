/** Draws what is over the points: the query with its nearest records, and their names. */
import { type Box, type Ink, overlap, writeText } from "./labels.ts";
import type { Neighbor } from "./messages.ts";
import type { Viewport } from "./viewport.ts";

/** What is drawn over the points. */
export interface Marks {
  readonly neighbors: readonly Neighbor[];
  /** Where the query lies in the plane; undefined if it has no place there, like words. */
  readonly from: { readonly x: number; readonly y: number } | undefined;
  /** An id to highlight, if it is among them. */
  readonly highlighted: string | undefined;
}

const LABEL_HEIGHT = 16;
const MAX_LABEL_LENGTH = 28;

/**
 * Draws the query and its nearest records over the points: lines to each, rings around them, and names where
 * there is room.
 * @param taken  where no names may be.
 */
export function drawNearest(
  context: CanvasRenderingContext2D,
  points: Float32Array,
  factors: Float32Array | undefined,
  { neighbors, from, highlighted }: Marks,
  viewport: Viewport,
  ratio: number,
  ink: Ink,
  radius: number,
  nameOf: (id: string) => string,
  taken: readonly Box[],
): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const places = neighbors.map(({ id, row }) => ({
    id,
    x: viewport.toX(points[2 * row]!),
    y: viewport.toY(points[2 * row + 1]!),
    size: radius * (factors?.[row] ?? 1),
  }));
  const query = from && { x: viewport.toX(from.x), y: viewport.toY(from.y) };
  if (query !== undefined) drawLines(context, query, places, ink.accent, highlighted);
  for (const place of places) ring(context, place.x, place.y, place.size + 2.5, ink.accent, place.id === highlighted ? 3 : 1.75);
  if (query !== undefined) cross(context, query.x, query.y, ink);
  drawLabels(
    context,
    places,
    nameOf,
    ink,
    ratio,
    query === undefined ? taken : [...taken, { left: query.x - 9, top: query.y - 9, right: query.x + 9, bottom: query.y + 9 }],
  );
}

function drawLines(
  context: CanvasRenderingContext2D,
  { x, y }: { x: number; y: number },
  places: readonly { id: string; x: number; y: number }[],
  color: string,
  highlighted: string | undefined,
): void {
  context.strokeStyle = color;
  places.forEach((place, i) => {
    context.globalAlpha = place.id === highlighted ? 1 : 0.9 - (0.6 * i) / places.length;
    context.lineWidth = place.id === highlighted ? 2.5 : 1.25;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(place.x, place.y);
    context.stroke();
  });
  context.globalAlpha = 1;
}

function ring(context: CanvasRenderingContext2D, x: number, y: number, radius: number, color: string, width: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.stroke();
}

/** The query's mark, visible on any background. */
function cross(context: CanvasRenderingContext2D, x: number, y: number, ink: Ink): void {
  for (const [color, width] of [
    [ink.ground, 5],
    [ink.text, 2],
  ] as const) {
    context.strokeStyle = color;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x - 7, y);
    context.lineTo(x + 7, y);
    context.moveTo(x, y - 7);
    context.lineTo(x, y + 7);
    context.stroke();
  }
}

/**
 * Draws names, nearest first. A name that would cover another, or a caption, is left out (the list beside the map has
 * them all).
 */
function drawLabels(
  context: CanvasRenderingContext2D,
  places: readonly { id: string; x: number; y: number; size: number }[],
  nameOf: (id: string) => string,
  ink: Ink,
  ratio: number,
  others: readonly Box[],
): void {
  // Not read from the element: that would force a layout of the page in every frame.
  const [width, height] = [context.canvas.width / ratio, context.canvas.height / ratio];
  const taken = [...others];
  context.font = "500 12px system-ui, sans-serif";
  for (const { id, x, y, size } of places) {
    const name = nameOf(id);
    const text = name.length > MAX_LABEL_LENGTH ? `${name.slice(0, MAX_LABEL_LENGTH - 1)}…` : name;
    const length = context.measureText(text).width;
    const gap = size + 7;
    const box = [
      { left: x + gap, top: y - LABEL_HEIGHT / 2 },
      { left: x - gap - length, top: y - LABEL_HEIGHT / 2 },
      { left: x - length / 2, top: y - gap - LABEL_HEIGHT },
      { left: x - length / 2, top: y + gap },
    ]
      .map(({ left, top }) => ({ left, top, right: left + length, bottom: top + LABEL_HEIGHT }))
      .find(
        (candidate) =>
          candidate.left > 0 &&
          candidate.right < width &&
          candidate.top > 0 &&
          candidate.bottom < height &&
          !taken.some((other) => overlap(candidate, other)),
      );
    if (box === undefined) continue;
    taken.push(box);
    writeText(context, text, box, ink);
  }
}
