/**
 * How many random cases the tests try, and which. Also a setup file of vitest, for fast-check's own seeds.
 *
 * LODESTONE_RUNS multiplies the number of cases (`npm test`: 0.2, all tests: 1, a soak: as you like). LODESTONE_SEED makes them the same
 * each time (`npm test`: 1); without it they are new in each run, and a failure prints the seed.
 */
import fc from "fast-check";

const SHARE = Number(process.env.LODESTONE_RUNS ?? 1);

export const SEED = process.env.LODESTONE_SEED === undefined ? Date.now() & 0x7fff_ffff : Number(process.env.LODESTONE_SEED);

/** @param full  the number of cases of a whole run. */
export const runs = (full: number): number => Math.max(1, Math.ceil(full * SHARE));

/** Of cases that differ little, every so many, as LODESTONE_RUNS says; all in a whole run. */
export function sampleOf<Case>(cases: readonly Case[]): Case[] {
  return cases.filter((_, i) => Math.floor((i + 1) * Math.min(1, SHARE)) > Math.floor(i * Math.min(1, SHARE)));
}

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED, numRuns: runs(100) });
