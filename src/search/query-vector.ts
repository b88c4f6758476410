/** An element of a query becomes float32 and is checked in one step: where the request comes in (http/validation.ts). */
import { inWords } from "../errors/value-in-words.ts";

/**
 * Rounds the list into `target`, which is as long.
 *
 * @returns the index of the first element that is not a number, or that float32 has no finite number for; −1: there is none.
 */
export function firstNotFloat32(list: readonly unknown[], target: Float32Array): number {
  for (let i = 0; i < list.length; i++) {
    const element = list[i];
    if (typeof element !== "number") return i;
    const rounded = Math.fround(element);
    // Of finite numbers alone is x − x 0.
    if (rounded - rounded !== 0) return i;
    target[i] = rounded;
  }
  return -1;
}

/** What is wrong with an element that `firstNotFloat32` found. */
export function expectedFloat32(element: unknown): string {
  return typeof element === "number"
    ? `expected a finite number within the range of float32 (±3.4028235e38), got ${element}`
    : `expected a number, got ${inWords(element)}`;
}
