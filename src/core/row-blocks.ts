/**
 * How the rows of one directory are distributed over shards: in blocks, round-robin. Shards then fill evenly,
 * and a row mask is split into the shards' masks by copying words.
 *
 *   row = block · BLOCK_ROWS + rest;  shard = block mod shards
 *   row in the shard = ⌊block / shards⌋ · BLOCK_ROWS + rest
 */
const BLOCK_ROWS = 512;
const BLOCK_WORDS = BLOCK_ROWS / 32;

export function shardOfRow(row: number, shards: number): number {
  return Math.floor(row / BLOCK_ROWS) % shards;
}

export function rowInShard(row: number, shards: number): number {
  return Math.floor(row / (BLOCK_ROWS * shards)) * BLOCK_ROWS + (row % BLOCK_ROWS);
}

/** The part of a mask that belongs to `shard`, over that shard's own rows. */
export function maskOfShard(mask: Uint32Array, shard: number, shards: number): Uint32Array<ArrayBuffer> {
  const blocks = Math.ceil(mask.length / BLOCK_WORDS);
  const own = new Uint32Array(Math.max(0, Math.ceil((blocks - shard) / shards)) * BLOCK_WORDS);
  for (let block = shard, to = 0; block < blocks; block += shards, to += BLOCK_WORDS) {
    own.set(mask.subarray(block * BLOCK_WORDS, (block + 1) * BLOCK_WORDS), to);
  }
  return own;
}
