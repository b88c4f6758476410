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
