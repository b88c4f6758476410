/**
 * Scatter and gather: what is asked of an index goes to the shards that have its rows, and what they answer becomes one answer. Rows are
 * those of the index; row-writes.ts says which shard has which.
 */
import { compareText } from "../text/code-point-order.ts";
import { maskOfShard, rowInShard, rowOfShard, shardOfRow } from "./row-writes.ts";
import type { SearchHit } from "./search-input.ts";
import { type Asked, ShardClient } from "./shard-client.ts";
import type { ShardAnswer } from "./shard-messages.ts";
import type { Similarity } from "./similarity.ts";
import { createExchange } from "./threshold-exchange.ts";
import type { ShardSearch } from "./vector-shard.ts";

/** Starts all or none: if one fails, the others are ended. */
export async function startShards(count: number): Promise<ShardClient[]> {
  const started = await Promise.allSettled(Array.from({ length: count }, () => ShardClient.start()));
  const failed = started.find((result) => result.status === "rejected");
  const shards = started.filter((result) => result.status === "fulfilled").map(({ value }) => value);
  if (failed === undefined) return shards;
  await Promise.all(shards.map((shard) => shard.stop()));
  throw failed.reason;
}

/** Vectors of live rows, f32[rows.length × dimension]. */
export async function readFromShards(shards: readonly ShardClient[], dimension: number, rows: readonly number[]): Promise<Float32Array> {
  const count = shards.length;
  const matrix = new Float32Array(rows.length * dimension);
  const parts = shards.map(() => ({ to: [] as number[], rows: [] as number[] }));
  rows.forEach((row, i) => {
    const part = parts[shardOfRow(row, count)]!;
    part.to.push(i);
    part.rows.push(rowInShard(row, count));
  });
  await Promise.all(
    parts.map(async (part, shard) => {
      if (part.rows.length === 0) return;
      const own = await shards[shard]!.call<"read">({ type: "read", rows: Uint32Array.from(part.rows) });
      part.to.forEach((to, i) => {
        matrix.set(own.subarray(i * dimension, (i + 1) * dimension), to * dimension);
      });
    }),
  );
  return matrix;
}

/** The scores of these rows, in their order; see score-rows.ts. */
export async function scoreInShards(
  shards: readonly ShardClient[],
  query: Float32Array,
  rows: Uint32Array,
  similarity: Similarity,
  asked: Asked,
): Promise<Float64Array> {
  const count = shards.length;
  const parts: number[][] = shards.map(() => []);
  for (let i = 0; i < rows.length; i++) parts[shardOfRow(rows[i]!, count)]!.push(rowInShard(rows[i]!, count));
  const answers = await Promise.all(
    parts.map((own, i) => {
      const request = { type: "score", query, rows: Uint32Array.from(own), similarity } as const;
      return own.length === 0 ? new Float64Array(0) : shards[i]!.call<"score">(request, [], asked);
    }),
  );
  const next = answers.map(() => 0);
  const scores = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) {
    const shard = shardOfRow(rows[i]!, count);
    scores[i] = answers[shard]![next[shard]!++]!;
  }
  return scores;
}

/** What all shards answer to one query: the k best of all, best first. */
export interface GatheredAnswer {
  readonly totalCount: number;
  readonly best: readonly (SearchHit & { row: number })[];
}

/** @param queries  one or more, n × dimension. @returns an answer for each. */
export async function searchShards(
  shards: readonly ShardClient[],
  dimension: number,
  queries: Float32Array,
  search: ShardSearch,
  asked: Asked,
): Promise<GatheredAnswer[]> {
  const count = shards.length;
  const exchange = queries.length === dimension ? createExchange(count, search.k) : undefined;
  const answers = await Promise.all(
    shards.map((shard, i) => {
      const mask = search.mask && maskOfShard(search.mask, i, count);
      const request = { type: "search", queries, search: { ...search, mask }, shard: i, exchange } as const;
      return shard.call<"search">(request, mask ? [mask.buffer] : [], asked);
    }),
  );
  return answers[0]!.map((_, query) =>
    merge(
      answers.map((own) => own[query]!),
      search.k,
    ),
  );
}

/** @param answers  of all shards to one query. */
function merge(answers: readonly ShardAnswer[], k: number): GatheredAnswer {
  const best = answers.flatMap(({ ids, rows, scores }, shard) =>
    ids.map((id, i) => ({ id, row: rowOfShard(rows[i]!, shard, answers.length), score: scores[i]! })),
  );
  best.sort((a, b) => b.score - a.score || compareText(a.id, b.id));
  best.length = Math.min(best.length, k);
  return { totalCount: answers.reduce((sum, answer) => sum + answer.totalCount, 0), best };
}
