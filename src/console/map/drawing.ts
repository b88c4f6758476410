/** Draws the map: points, and over them the query with its nearest records. */

import type { Neighbor } from "./messages.ts";
import { hexOf } from "./point-colors.ts";

interface PointPicture {
  readonly context: CanvasRenderingContext2D;
  /** x0, y0, x1, y1, … in the plane. */
  readonly points: Float32Array;
  /** 0xRRGGBB of each point. */
  readonly colors: Uint32Array;
  readonly viewport: Viewport;
  /** Device pixels per CSS pixel. */
  readonly ratio: number;
}

/** Above this number points are drawn as squares. */
const MOST_DISCS = 4_000;

/**
 * Draws the points. Few are drawn as discs. Many are drawn as squares, written into the picture's bytes,
 * which takes milliseconds for 100,000.
 */
export function drawPoints(picture: PointPicture, outline: string): void {
  const { context, colors } = picture;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  if (colors.length <= MOST_DISCS) drawDiscs(picture, outline);
  else drawSquares(picture);
}

/**
 * In CSS pixels; smaller for many points and for small pictures.
 * @param side  the shorter side of the picture.
 */
export function radiusFor(count: number, side: number): number {
  return (count <= 300 ? 7 : count <= 1_500 ? 4.5 : 3) * Math.min(1, Math.max(0.6, side / 560));
}

function drawDiscs({ context, points, colors, viewport, ratio }: PointPicture, outline: string): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const radius = radiusFor(colors.length, Math.min(context.canvas.width, context.canvas.height) / ratio);
  context.lineWidth = 1;
  context.strokeStyle = outline;
  for (let i = 0; i < colors.length; i++) {
    context.beginPath();
    context.arc(viewport.toX(points[2 * i]!), viewport.toY(points[2 * i + 1]!), radius, 0, 2 * Math.PI);
    context.fillStyle = hexOf(colors[i]!);
    context.fill();
    context.stroke();
  }
}

function drawSquares({ context, points, colors, viewport, ratio }: PointPicture): void {
  const { width, height } = context.canvas;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const side = Math.max(2, Math.round((colors.length > 30_000 ? 1.5 : 2.2) * ratio));
  for (let i = 0; i < colors.length; i++) {
    const left = Math.round(viewport.toX(points[2 * i]!) * ratio);
    const top = Math.round(viewport.toY(points[2 * i + 1]!) * ratio);
    if (left < 0 || top < 0 || left + side > width || top + side > height) continue;
    const pixel = pixelOf(colors[i]!);
    // Written one by one: calling fill for such short lines takes three times as long.
    for (let y = 0, at = top * width + left; y < side; y++, at += width) for (let x = 0; x < side; x++) pixels[at + x] = pixel;
  }
  context.putImageData(image, 0, 0);
}

/** The bytes R, G, B, A in the memory order of little-endian machines, on which all browsers run. */
function pixelOf(color: number): number {
  return ((0xdd << 24) | ((color & 0xff) << 16) | (color & 0xff00) | (color >> 16)) >>> 0;
}

export interface Ink {
  readonly text: string;
  readonly ground: string;
  readonly accent: string;
}

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

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/**
 * Draws the query and its nearest records over the points: lines to each, rings around them, and names where
 * there is room.
 */
export function drawNearest(
  context: CanvasRenderingContext2D,
  points: Float32Array,
  { neighbors, from, highlighted }: Marks,
  viewport: Viewport,
  ratio: number,
  ink: Ink,
  radius: number,
): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const places = neighbors.map(({ id, row }) => ({
    id,
    x: viewport.toX(points[2 * row]!),
    y: viewport.toY(points[2 * row + 1]!),
  }));
  const query = from && { x: viewport.toX(from.x), y: viewport.toY(from.y) };
  if (query !== undefined) drawLines(context, query, places, ink.accent, highlighted);
  for (const place of places) ring(context, place.x, place.y, radius + 2.5, ink.accent, place.id === highlighted ? 3 : 1.75);
  if (query !== undefined) cross(context, query.x, query.y, ink);
  drawLabels(
    context,
    places,
    ink,
    radius,
    ratio,
    query && { left: query.x - 9, top: query.y - 9, right: query.x + 9, bottom: query.y + 9 },
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
 * Draws names, nearest first. A name that would cover another is left out (the list beside the map has them
 * all).
 */
function drawLabels(
  context: CanvasRenderingContext2D,
  places: readonly { id: string; x: number; y: number }[],
  ink: Ink,
  radius: number,
  ratio: number,
  query: Box | undefined,
): void {
  // Not read from the element: that would force a layout of the page in every frame.
  const [width, height] = [context.canvas.width / ratio, context.canvas.height / ratio];
  const taken: Box[] = query === undefined ? [] : [query];
  context.font = "500 12px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const { id, x, y } of places) {
    const text = id.length > MAX_LABEL_LENGTH ? `${id.slice(0, MAX_LABEL_LENGTH - 1)}…` : id;
    const length = context.measureText(text).width;
    const gap = radius + 7;
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
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeStyle = ink.ground;
    context.strokeText(text, box.left, box.top + LABEL_HEIGHT / 2);
    context.fillStyle = ink.text;
    context.fillText(text, box.left, box.top + LABEL_HEIGHT / 2);
  }
}

const overlap = (a: Box, b: Box): boolean => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** The visible part of the plane. Both axes have one scale, so that distances look as they are. */
export class Viewport {
  /** CSS pixels per unit of the plane. */
  readonly scale: number;
  readonly #left: number;
  readonly #top: number;

  /** @param left, top where the plane's origin lies, in CSS pixels. */
  constructor(scale: number, left: number, top: number) {
    this.scale = scale;
    this.#left = left;
    this.#top = top;
  }

  /** Shows all points, with room around them. */
  static around(points: Float32Array, width: number, height: number): Viewport {
    let [minX, maxX, minY, maxY] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < points.length; i += 2) {
      minX = Math.min(minX, points[i]!);
      maxX = Math.max(maxX, points[i]!);
      minY = Math.min(minY, points[i + 1]!);
      maxY = Math.max(maxY, points[i + 1]!);
    }
    if (minX > maxX) return new Viewport(1, width / 2, height / 2);
    const margin = Math.min(48, width / 8, height / 8);
    const scale = Math.min((width - 2 * margin) / Math.max(maxX - minX, 1e-9), (height - 2 * margin) / Math.max(maxY - minY, 1e-9));
    return new Viewport(scale, width / 2 - (scale * (minX + maxX)) / 2, height / 2 + (scale * (minY + maxY)) / 2);
  }

  toX(x: number): number {
    return this.#left + x * this.scale;
  }

  /** Larger y is higher up. */
  toY(y: number): number {
    return this.#top - y * this.scale;
  }

  fromX(pixel: number): number {
    return (pixel - this.#left) / this.scale;
  }

  fromY(pixel: number): number {
    return (this.#top - pixel) / this.scale;
  }

  /** @param factor  above 1: closer. The place under (pixelX, pixelY) stays there. */
  zoomed(factor: number, pixelX: number, pixelY: number): Viewport {
    return new Viewport(this.scale * factor, pixelX - (pixelX - this.#left) * factor, pixelY - (pixelY - this.#top) * factor);
  }

  moved(byX: number, byY: number): Viewport {
    return new Viewport(this.scale, this.#left + byX, this.#top + byY);
  }
}
