/**
 * The tables of the soak: some with much of everything, one that hostile requests write to, and one for the
 * others.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { until } from "../../support/patience.ts";
import { Random } from "../workload/random.ts";
import type { KeyedClient } from "./client.ts";

export const BRANCH = "/db/soak:main";
const KEYS = { judge: "admin", hostile: "write", reader: "read", others: "write" } as const;

export type KeyName = keyof typeof KEYS;

export const keyOf = (name: KeyName): string => `lds_soak_${name}`;

export function writeKeyFile(path: string): void {
  const keys = Object.entries(KEYS).map(([name, scope]) => ({
    name,
    scope,
    hash: createHash("sha256")
      .update(keyOf(name as KeyName))
      .digest("hex"),
    createdAt: "2026-01-01T00:00:00.000Z",
  }));
  writeFileSync(path, JSON.stringify({ version: 1, keys }));
}

export const VECTOR = { small: 8, others: 16 } as const;

/** The amount of data: as in the issue (1), or a fraction of that for CI. */
export interface StageSize {
  readonly texts: number;
  readonly bigRecords: number;
  readonly bigCharacters: number;
  readonly smallRecords: number;
}

export const words = (random: Random, count: number): string =>
  Array.from({ length: count }, () =>
    Math.floor(random.next() * 36 ** 6)
      .toString(36)
      .padStart(8, "w"),
  ).join(" ");

const vector = (random: Random, dimension: number): number[] =>
  Array.from({ length: dimension }, () => Math.round(random.next() * 200 - 100) / 100);

export async function prepareStage(judge: KeyedClient, size: StageSize, seed: number): Promise<void> {
  const random = new Random(seed);
  const must = async (method: string, path: string, body: unknown): Promise<void> => {
    const { status, head } = await judge.send(method, path, JSON.stringify(body));
    if (status === null || status >= 300) throw new Error(`${method} ${path} was answered ${status}: ${head.slice(0, 300)}`);
  };
  await must("PUT", BRANCH, {});
  const table = (name: string, columns: object[]) => must("PUT", `${BRANCH}/tables/${name}`, { columns });
  const bulk = (name: string, records: object[]) => must("POST", `${BRANCH}/tables/${name}/bulk`, { records });
  await table("texts", [{ name: "s", type: "text" }]);
  for (let from = 0; from < size.texts; from += 100) {
    await bulk(
      "texts",
      Array.from({ length: Math.min(100, size.texts - from) }, () => ({ s: words(random, 1_000) })),
    );
  }
  await table("big", [
    { name: "s", type: "text" },
    { name: "v", type: "vector", vector: { dimension: VECTOR.small } },
    { name: "l", type: "link", link: { table: "big" } },
  ]);
  for (let i = 0; i < size.bigRecords; i++) {
    const record = { id: `big${i}`, s: "y".repeat(size.bigCharacters), v: vector(random, VECTOR.small), ...(i > 0 ? { l: "big0" } : {}) };
    await must("PUT", `${BRANCH}/tables/big/data/${record.id}`, { ...record, id: undefined });
  }
  await table("small", [
    { name: "s", type: "text" },
    { name: "n", type: "int" },
    { name: "m", type: "multiple" },
    { name: "j", type: "json" },
    { name: "d", type: "datetime" },
    { name: "l", type: "link", link: { table: "small" } },
    { name: "v", type: "vector", vector: { dimension: VECTOR.small } },
  ]);
  for (let from = 0; from < size.smallRecords; from += 250) {
    const count = Math.min(250, size.smallRecords - from);
    const records = Array.from({ length: count }, (_, i) => ({
      id: `small${from + i}`,
      s: words(random, 650),
      n: random.below(1_000),
      m: ["a", "b", String(i)],
      j: { at: i, list: [1, [2, { three: 3 }]] },
      d: new Date(1_700_000_000_000 + i * 86_400_000).toISOString(),
      v: vector(random, VECTOR.small),
    }));
    await bulk("small", records);
  }
  await must("POST", `${BRANCH}/sql`, { statement: `UPDATE "small" SET "l" = 'small0'` });
  await table("written", [
    { name: "mark", type: "string" },
    { name: "s", type: "text" },
    { name: "n", type: "int" },
    { name: "j", type: "json" },
    { name: "v", type: "vector", vector: { dimension: VECTOR.small } },
  ]);
  await table("others", [
    { name: "n", type: "int" },
    { name: "s", type: "string" },
    { name: "v", type: "vector", vector: { dimension: VECTOR.others } },
  ]);
  await bulk(
    "others",
    Array.from({ length: 500 }, (_, i) => ({ id: `o${i}`, n: i, s: words(random, 5), v: vector(random, VECTOR.others) })),
  );
  // What others wait for is to be the hostile caller's doing, not the first reading of the stage.
  const search = JSON.stringify({ column: "v", queryVector: vector(random, VECTOR.others), consistency: "strong" });
  await until("searches see the stage", async () => {
    const { status } = await judge.send("POST", `${BRANCH}/tables/others/vectorSearch`, search);
    return status === 200;
  });
}
