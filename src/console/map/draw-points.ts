/** Draws the points of the map, in their colours and sizes. */
import { hexOf } from "./point-colors.ts";
import type { Viewport } from "./viewport.ts";

interface PointPicture {
  readonly context: CanvasRenderingContext2D;
  /** x0, y0, x1, y1, … in the plane. */
  readonly points: Float32Array;
  /** 0xRRGGBB of each point. */
  readonly colors: Uint32Array;
  /** The radius of each point, of the usual one; undefined: all are of that. */
  readonly factors: Float32Array | undefined;
  /** Colours that are left out. */
  readonly hidden: ReadonlySet<number>;
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

/** Of what stands for a point: many are squares, in which there is no room for a disc of that radius. */
export const drawnRadiusFor = (count: number, side: number): number => (count <= MOST_DISCS ? radiusFor(count, side) : sideFor(count) / 2);

function drawDiscs({ context, points, colors, factors, hidden, viewport, ratio }: PointPicture, outline: string): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const radius = radiusFor(colors.length, Math.min(context.canvas.width, context.canvas.height) / ratio);
  context.lineWidth = 1;
  context.strokeStyle = outline;
  for (const i of fromBelow(colors.length, factors)) {
    if (hidden.has(colors[i]!)) continue;
    context.beginPath();
    context.arc(viewport.toX(points[2 * i]!), viewport.toY(points[2 * i + 1]!), radius * (factors?.[i] ?? 1), 0, 2 * Math.PI);
    context.fillStyle = hexOf(colors[i]!);
    context.fill();
    context.stroke();
  }
}

/** The order in which points are drawn: small ones above large ones. */
export function fromBelow(count: number, factors: Float32Array | undefined): readonly number[] {
  const rows = Array.from({ length: count }, (_, row) => row);
  return factors === undefined ? rows : rows.sort((a, b) => factors[b]! - factors[a]!);
}

/** In CSS pixels. Very many are seen as what lies on a pixel, and take a quarter of the time. */
const sideFor = (count: number): number => (count > 300_000 ? 0.75 : count > 30_000 ? 1.5 : 2.2);

/** How many points on one place make it almost opaque; the more points in all, the more. So a crowd differs from a few. */
const opacityOf = (count: number): number => Math.min(0.85, Math.max(0.2, 30_000 / count));

function drawSquares({ context, points, colors, factors, hidden, viewport, ratio }: PointPicture): void {
  const { width, height } = context.canvas;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const usual = sideFor(colors.length) * ratio;
  const least = usual < 1 ? 1 : 2;
  const sideOf = (factor: number): number => Math.max(factor < 1 ? 1 : least, Math.round(usual * factor));
  let side = sideOf(1);
  const paint = paintOf(opacityOf(colors.length));
  // Written out, with numbers of this frame: a million points are drawn while a hand moves them.
  const [scale, originX, originY] = [viewport.scale * ratio, viewport.toX(0) * ratio + 0.5, viewport.toY(0) * ratio + 0.5];
  const isSome = hidden.size > 0;
  for (let i = 0; i < colors.length; i++) {
    if (factors !== undefined) side = sideOf(factors[i]!);
    const left = Math.floor(originX + points[2 * i]! * scale - side / 2);
    const top = Math.floor(originY - points[2 * i + 1]! * scale - side / 2);
    if (left < 0 || top < 0 || left + side > width || top + side > height || (isSome && hidden.has(colors[i]!))) continue;
    const color = bytesOf(colors[i]!);
    // Written one by one: calling fill for such short lines takes three times as long.
    for (let y = 0, at = top * width + left; y < side; y++, at += width)
      for (let x = 0; x < side; x++) pixels[at + x] = painted(pixels[at + x]!, color, paint);
  }
  context.putImageData(image, 0, 0);
}

/** For each alpha of a pixel, what one more point makes of it. */
interface Paint {
  readonly alpha: Uint8Array;
  /** Of the point's colour in the mixture, of 256. */
  readonly share: Uint16Array;
}

function paintOf(opacity: number): Paint {
  const alphas = Float64Array.from({ length: 256 }, (_, under) => 255 * opacity + under * (1 - opacity));
  return {
    alpha: Uint8Array.from(alphas, (alpha) => Math.round(alpha)),
    share: Uint16Array.from(alphas, (alpha) => Math.round((256 * 255 * opacity) / alpha)),
  };
}

/** Red, blue and green of a colour where a pixel has them. */
const bytesOf = (color: number): number => ((color & 0xff) << 16) | (color & 0xff00) | (color >> 16);

/**
 * A pixel with one more point on it. Red and blue are mixed in one multiplication.
 * @param pixel  the bytes R, G, B, A in the memory order of little-endian machines, on which all browsers run.
 */
function painted(pixel: number, color: number, { alpha, share }: Paint): number {
  const under = pixel >>> 24;
  const own = share[under]!;
  const rest = 256 - own;
  const redBlue = ((Math.imul(pixel & 0xff00ff, rest) + Math.imul(color & 0xff00ff, own) + 0x800080) >>> 8) & 0xff00ff;
  const green = ((Math.imul(pixel & 0xff00, rest) + Math.imul(color & 0xff00, own) + 0x8000) >>> 8) & 0xff00;
  return ((alpha[under]! << 24) | redBlue | green) >>> 0;
}
