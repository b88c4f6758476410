/**
 * Words and vectors in one search: whoever holds the vectors, every result has the score of the definition, made here
 * from the answers of both halves.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { contribution, type FusionMethod, ranksOf, SAMPLE_SIZE, spreadOf } from "../../../src/full-text/fusion.ts";
import { SIMILARITIES } from "../../reference.ts";
import { Random } from "../../reliability/workload/random.ts";
import { BASE, type SearchClient } from "./search-service.ts";

const WORDS = ["garden", "time", "river", "stone", "bee", "wasp"];
const RECORDS = 900;
/** Of the text search, the most. */
const PAGE = 200;

type Scores = ReadonlyMap<string, number>;
interface Found {
  totalCount: number;
  position?: string;
  records: { id: string; xata: { score: number } }[];
}

/** @param holdsAll  each server holds all vectors in its memory. */
export function describeWordsToo(client: SearchClient, holdsAll: boolean): void {
  describe("words and vectors in one search", () => {
    const random = new Random(20_261_125);
    const text = (): string => Array.from({ length: 1 + random.below(5) }, () => WORDS[random.below(WORDS.length)]).join(" ");
    const vector = (): number[] => [1, random.below(5) - 2, random.below(5) - 2];
    beforeAll(async () => {
      await client.createTable("notes", [
        { name: "body", type: "text" },
        { name: "n", type: "int" },
        { name: "v", type: "vector", vector: { dimension: 3 } },
      ]);
      const records = Array.from({ length: RECORDS }, (_, n) => ({
        id: `n${n}`,
        n: n % 10,
        ...(random.below(3) > 0 && { body: text() }),
        ...(random.below(8) > 0 && { v: vector() }),
      }));
      expect((await client.post(`${BASE}/tables/notes/bulk`, { records })).status).toBe(200);
    });

    const post = async <Body>(path: string, body: object): Promise<Body> => {
      const answer = await client.post(`${BASE}/tables/notes/${path}`, body);
      expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 200 });
      return answer.body as Body;
    };
    const wordsAlone = async (query: string, filter: object): Promise<Scores> => {
      const scores = new Map<string, number>();
      for (let offset = 0; offset < RECORDS; offset += PAGE) {
        const { records } = await post<Found>("search", { query, filter, page: { size: PAGE, offset } });
        for (const { id, xata } of records) scores.set(id, xata.score);
      }
      return scores;
    };
    const vectorsAlone = async (request: object, filter: object): Promise<Scores> => {
      const { results } = await post<{ results: { id: string; score: number }[] }>("vectorSearch", {
        ...request,
        filter,
        size: 1_000,
        consistency: "strong",
      });
      return new Map(results.map(({ id, score }) => [id, score]));
    };

    const expected = (words: Scores, vectors: Scores, count: number, method: FusionMethod, vectorWeight: number): [string, number][] => {
      expect(vectors.size).toBeLessThanOrEqual(SAMPLE_SIZE);
      const vectorSpread = spreadOf(Float64Array.from(vectors.values()), vectors.size, method);
      const textSpread = spreadOf(Float64Array.from(words.values()), count, method);
      const [vectorRank, textRank] = [vectors, words].map((scores) => ranksOf(Float64Array.from(scores.values())));
      const scoreOf = (id: string): number => {
        const [near, word] = [vectors.get(id), words.get(id)];
        if (method === "rrf") {
          const ofVector = near === undefined ? 0 : vectorWeight / (60 + vectorRank!(near));
          return ofVector + (word === undefined ? 0 : (1 - vectorWeight) / (60 + textRank!(word)));
        }
        return (
          (near === undefined ? 0 : contribution(near, vectorSpread, vectorWeight)) + contribution(word ?? 0, textSpread, 1 - vectorWeight)
        );
      };
      return [...new Set([...vectors.keys(), ...words.keys()])]
        .map((id): [string, number] => [id, scoreOf(id)])
        .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
    };

    it("scores every record that passes the filter, on every page and every server", async () => {
      for (let i = 0; i < 12 * client.servers; i++) {
        const method = (["standardized", "linear"] as const)[i % 2]!;
        const query = text();
        const near = { column: "v", queryVector: vector(), similarityFunction: SIMILARITIES[(i + (i >> 2)) % SIMILARITIES.length] };
        const filter = i % 4 === 3 ? { n: { $lt: 3 } } : {};
        const vectorWeight = [0.5, 0, 0.3, 1][i % 4]!;
        const request = { query, vector: near, filter, fusion: { method, vectorWeight } };
        const count = filter.n === undefined ? RECORDS : (3 * RECORDS) / 10;
        const all = expected(await wordsAlone(query, filter), await vectorsAlone(near, filter), count, method, vectorWeight);
        for (const page of [{ size: 7 }, { size: 30, offset: 150 }]) {
          const { offset = 0, size } = page;
          const { records, totalCount, position } = await post<Found>("search", { ...request, page });
          expect(totalCount).toBe(all.length);
          expect(records.map(({ id, xata }) => [id, xata.score])).toEqual(all.slice(offset, offset + size));
          expect(position).toEqual(expect.any(String));
        }
      }
    });

    it("takes phrases and boosters", async () => {
      const request = { vector: { column: "v", queryVector: [1, 0, 0] }, page: { size: PAGE }, explain: true };
      const phrase = await post<Found>("search", { ...request, query: '"garden time" -bee', syntax: "websearch" });
      const bodies = phrase.records as unknown as { body: string }[];
      expect(bodies.length).toBeGreaterThan(0);
      expect(bodies.filter(({ body }) => !/garden time/.test(body) || /bee/.test(body))).toEqual([]);
      const boosted = await post<Found>("search", {
        ...request,
        query: "wasp",
        boosters: [{ numericBooster: { column: "n", factor: 10 } }],
      });
      expect(new Set((boosted.records as unknown as { n: number }[]).slice(0, 50).map(({ n }) => n))).toEqual(new Set([9]));
    });

    it("ranks by rrf, or says which servers do", async () => {
      const near = { column: "v", queryVector: [1, 2, -1] };
      const request = { query: "river stone", vector: near, fusion: { method: "rrf" }, page: { size: 20 } };
      const answer = await client.post(`${BASE}/tables/notes/search`, request);
      if (!holdsAll) {
        expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining('fusion.method: "rrf" needs a server') } });
        return;
      }
      const all = expected(await wordsAlone("river stone", {}), await vectorsAlone(near, {}), RECORDS, "rrf", 0.5);
      expect((answer.body as Found).records.map(({ id, xata }) => [id, xata.score])).toEqual(all.slice(0, 20));
    });

    it("answers while records change, with a position only if both halves are of it", async () => {
      const near = { column: "v", queryVector: [1, 2, 2] };
      let isDone = false;
      const writing = (async () => {
        for (let i = 0; i < 20; i++) {
          const record = (id: string) => ({ insert: { table: "notes", record: { id, body: "unicorn", v: [1, 2, 2] } } });
          await client.post(`${BASE}/transaction`, { operations: [record("x1"), record("x2")] });
          await client.post(`${BASE}/transaction`, { operations: ["x1", "x2"].map((id) => ({ delete: { table: "notes", id } })) });
        }
        isDone = true;
      })();
      const request = { query: "unicorn", vector: near, filter: { id: { $startsWith: "x" } } };
      const counts = new Set<number>();
      while (!isDone) {
        const { status, body } = await client.post(`${BASE}/tables/notes/search`, request);
        // Several servers may not come to one position in time, and say so.
        expect(status === 200 || status === 503, JSON.stringify(body)).toBe(true);
        if (status === 200 && body.position !== undefined) counts.add(body.totalCount);
      }
      await writing;
      expect([...counts].filter((count) => count !== 0 && count !== 2)).toEqual([]);
      expect(await post<Found>("search", request)).toMatchObject({ totalCount: 0, position: expect.any(String) });
    });
  });
}
