/**
 * The tables that the clients work on. The value of a record is in `val` and in its vector, so a search shows
 * which value the index holds: the l2 score of the vector [val, 0, 0, 0] against the origin is 1 / (1 +
 * val²).
 */
import type { Seen } from "../checker/history.ts";
import type { Connection } from "./connection.ts";

export const BRANCH = "/db/soak:main";
export const ITEMS = `${BRANCH}/tables/items`;
/** A group is this many records of `items` and one of `extras`, always written together. */
const GROUP_ITEMS = 3;

/** Vectors that nobody touches: the search store writes no snapshot of a branch with few. */
const BALLAST = 1_500;

export const memberIds = (group: string): string[] => Array.from({ length: GROUP_ITEMS }, (_, index) => `${group}.${index}`);

export const vectorOf = (value: number): number[] => [value, 0, 0, 0];

export function itemOf(key: string, value: number): { grp: string; val: number; embedding: number[] } {
  return { grp: key, val: value, embedding: vectorOf(value) };
}

export async function createTables(connection: Connection): Promise<void> {
  const columns = [
    { name: "grp", type: "string" },
    { name: "val", type: "int" },
    { name: "note", type: "text", notNull: true, defaultValue: "" },
    { name: "embedding", type: "vector", vector: { dimension: 4 } },
  ];
  const requests: [string, unknown][] = [
    [BRANCH, undefined],
    [ITEMS, { columns }],
    [`${BRANCH}/tables/extras`, { columns: columns.slice(0, 2) }],
    [`${BRANCH}/tables/ballast`, { columns: columns.slice(3) }],
    [`${BRANCH}/tables/counters`, { columns: [{ name: "val", type: "int", notNull: true, defaultValue: "0" }] }],
  ];
  for (const [path, body] of requests) {
    const reply = await connection.send("PUT", path, body);
    // 400 and 422: it exists already.
    if (reply === null || reply === "unsent" || reply.status >= 500) throw new Error(`PUT ${path}: ${JSON.stringify(reply)}`);
  }
  for (let from = 0; from < BALLAST; from += 1_000) {
    const records = Array.from({ length: Math.min(1_000, BALLAST - from) }, (_, index) => ({ embedding: vectorOf(from + index) }));
    const reply = await connection.send("POST", `${BRANCH}/tables/ballast/bulk`, { records });
    if (reply === null || reply === "unsent" || reply.status !== 200) throw new Error(`bulk: ${JSON.stringify(reply)}`);
  }
}

export const searchBody = (key: string, consistency: "strong" | "eventual"): object => ({
  column: "embedding",
  queryVector: vectorOf(0),
  similarityFunction: "l2",
  size: 10,
  filter: { grp: key },
  consistency,
});

export const valueOfScore = (score: number): number => Math.round(Math.sqrt(1 / score - 1));

/** What a search shows of each of a group's records. */
export function membersFound(
  body: { totalCount: number; results: { id: string; score: number }[] },
  ids: readonly string[],
): (Seen | null)[] {
  const found = new Map(body.results.map(({ id, score }) => [id, { value: valueOfScore(score) }]));
  if (body.totalCount !== found.size || [...found.keys()].some((id) => !ids.includes(id))) {
    throw new Error(`a search answers totalCount ${body.totalCount} and ${[...found.keys()]}; possible are ${ids}`);
  }
  return ids.map((id) => found.get(id) ?? null);
}
