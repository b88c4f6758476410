/** What the host gives to a shard: imports of the module "host". */

/** Whether the id of row `a` sorts before that of row `b` (a ≠ b), by code points. Asked only when two scores are equal to the last bit. */
export declare function isIdBefore(a: u32, b: u32): i32;

/** Tells the other shards of the same search what this one has scored: `count` entries of a heap (exact/top-k.ts) at `ptr`. */
export declare function tellScores(ptr: usize, count: i32): void;

/**
 * A score that the k-th best row of all shards is known to reach; −1, which every row reaches, until one is. It grows while the others
 * work.
 */
export declare function sharedFloor(): f64;
