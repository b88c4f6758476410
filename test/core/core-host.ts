/** What the core asks of its host (assembly/host.ts), for tests that call its exports themselves: no ties, no other shards, no file. */
const unused = (): void => {};

export const CORE_HOST = {
  isIdBefore: () => 0,
  tellScores: unused,
  sharedFloor: () => Number.NEGATIVE_INFINITY,
  storeRows: unused,
  fetchRows: unused,
  freePlace: unused,
  damagedRow: unused,
};
