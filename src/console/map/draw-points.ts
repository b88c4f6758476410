/**
 * Draws the points. Few are drawn as discs. Many are drawn as squares, written into the picture's bytes,
 * which takes milliseconds for 100,000.
 */
import { hexOf } from "./point-colors.ts";
import type { Viewport } from "./viewport.ts";

export interface PointPicture {
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
