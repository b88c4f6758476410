import { expect, it } from "vitest";
import { createColumn } from "../../src/columns/stored-column.ts";
import { RowDirectory } from "../../src/core/row-directory.ts";
import { parseQuery, queryTerms } from "../../src/full-text/query.ts";
import type { FollowedSchema } from "../../src/search/followed-schema.ts";
import { SearchTable } from "../../src/search/table-index.ts";
import { searchTexts, type TextJob } from "../../src/search/text/search-texts.ts";

it("a search that looks at too many words ends with an error, however fast the machine is", async () => {
  const table = new SearchTable(new RowDirectory());
  table.addColumn("text", createColumn("text"));
  table.readTexts(["text"], () => {});
  const ids = Array.from({ length: 1_000 }, (_, i) => `r${i}`);
  table.apply({
    table: "items",
    ids,
    deleted: [],
    columns: new Map([["text", { kind: "text", values: ids.map((id) => `bee wasp ${id}`) }]]),
  });
  const schema: FollowedSchema = new Map([
    ["items", { id: 1, name: "items", columns: new Map([["text", { id: 2, name: "text", type: "text" as const }]]), texts: true }],
  ]);
  const search = (query: string, maxUnits: number) => {
    const parsed = parseQuery(query, "websearch");
    const job: TextJob = {
      tables: [{ tableId: 1, targets: [{ columnId: 2, weight: 1 }], filter: undefined, boosters: [], place: "" }],
      required: parsed.required,
      excluded: parsed.excluded,
      terms: queryTerms(parsed, { fuzziness: 0, prefix: false }),
      size: 10,
      minScore: undefined,
      explain: false,
      maxBytes: Number.POSITIVE_INFINITY,
    };
    return searchTexts(
      job,
      () => schema,
      () => table,
      maxUnits,
    );
  };
  expect((await search("bee", 100_000))![0]!.totalCount).toBe(1_000);
  await expect(search("bee wasp", 3_000)).rejects.toMatchObject({ code: "TIMEOUT", message: expect.stringContaining("too many words") });
  expect((await search('"bee wasp"', 100_000))![0]!.totalCount).toBe(1_000);
  // Each record's text is read for a phrase.
  await expect(search('"bee wasp"', 20_000)).rejects.toMatchObject({ code: "TIMEOUT" });
});
