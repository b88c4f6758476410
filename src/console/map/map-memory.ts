/** How many vectors the page may hold, so that it is never ended for want of memory. */

const GIB = 1024 ** 3;
/** A WebAssembly memory has 4 GiB at most, and grows in steps. */
const MOST_BYTES = 3.75 * GIB;
/** Of machines whose browser does not say it. */
const USUAL_GIB = 4;

/** The page's share of the machine: half of what the browser says that it has. */
export const pageBytes = (): number => Math.min(MOST_BYTES, ((navigator.deviceMemory ?? USUAL_GIB) * GIB) / 2);

/** With the codes and sketches that make searches fast, the id, the place and the colour. */
export const rowBytes = (dimension: number): number => 5.5 * dimension + 150;

export const mostRows = (dimension: number): number => Math.floor(pageBytes() / rowBytes(dimension));
