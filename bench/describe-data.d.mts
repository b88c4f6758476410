export function principalVariances(data: Float32Array, rows: number, dimension: number): number[];
export function energies(variances: readonly number[], shares?: readonly number[]): number[];
export function cosines(
  data: Float32Array,
  rows: number,
  dimension: number,
  queries: number,
  k?: number,
): { mean: number; deviation: number; kthBest: number };
