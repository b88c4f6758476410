export interface Spectrum {
  readonly energies: readonly number[];
  readonly offset: number;
  readonly decay: number;
  readonly mean: number;
  readonly together: readonly [number, number];
}
export const ENERGY_SHARES: readonly number[];
export const SPECTRA: Readonly<Record<string, Spectrum>>;
export function variances(spectrum: Spectrum, dimension: number): Float64Array;
export function randomRotation(dimension: number, random: () => number): (vector: Float64Array) => void;
