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
