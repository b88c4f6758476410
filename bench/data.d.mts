/** For the tests, which are TypeScript; the programs themselves run without a step between. */
export function seededRandom(seed: number): () => number;
export function makeData(options: { kind: string; rows: number; dimension: number; queries: number; seed?: number }): Float32Array;
