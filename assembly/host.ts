/** Functions that the host provides to a shard: imports of the module "host". */

/**
 * Whether the id of row `a` sorts before that of row `b` (a ≠ b), by code points. Called only when two scores
 * are equal to the last bit.
 */
export declare function isIdBefore(a: u32, b: u32): i32;

/**
 * Shares the scores of this shard with the other shards of the search: `count` heap entries (exact/top-k.ts)
 * at `ptr`.
 */
export declare function tellScores(ptr: usize, count: i32): void;

/**
 * A score that the k-th best row of all shards is known to reach. It starts at −Infinity, which every row reaches,
 * and grows while the other shards work.
 */
export declare function sharedFloor(): f64;

// Of rows whose float32 are outside (sketch/outside.ts). A row there takes stride × 4 bytes, and has a place, u32.

/**
 * Stores `count` rows, f32[count × stride] at `ptr`, and writes their places, u32[count], to `places`. Throws when there
 * is no room; nothing has changed then.
 */
export declare function storeRows(ptr: usize, count: u32, places: usize): void;

/** Reads `count` runs of adjacent places. Each of them at `runs`: | first place u32 | rows u32 | address u32 |. */
export declare function fetchRows(runs: usize, count: i32): void;

/** The row at this place is not used any more. */
export declare function freePlace(place: u32): void;

/** Throws: what was read at this place is not what was written. */
export declare function damagedRow(place: u32): void;
