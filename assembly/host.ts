/** What the host gives to a shard: imports, module "assembly/host". */

/** Whether the id of row `a` sorts before that of row `b` (a ≠ b), by code points. Asked only when two scores are equal to the last bit. */
export declare function isIdBefore(a: u32, b: u32): i32;
