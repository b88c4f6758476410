/** Tables and columns that are made, renamed and dropped while the store follows them. */
import { beforeEach, expect, test } from "vitest";
import { describeOnEngines } from "./engines.ts";
import { item, itemsStore, REF } from "./items-store.ts";
import { withId } from "./memory-records.ts";

describeOnEngines("when the schema changes, a search store over", (start) => {
  const at = itemsStore(start);

  beforeEach(async () => {
    at.records.write(REF, "items", [item("a", [1, 2, 3], { color: "red" }), item("b", [3, 2, 1], { color: "blue" })]);
    expect(await at.ids({})).toEqual(["a", "b"]);
  });

  test("a new table and a new column can be searched at once, also by eventual searches", async () => {
    at.records.createTable(REF, "more", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
    at.records.write(REF, "more", [{ id: "x", v: [1, 1] }]);
    expect(await at.store.vectorSearch(REF, "more", { column: "v", queryVector: [1, 1], consistency: "strong" })).toEqual({
      totalCount: 1,
      results: [{ id: "x", score: 2 }],
    });
    at.records.alter(REF, (tables) => {
      const items = tables.find((t) => t.name === "items")!;
      items.columns.push(withId({ name: "second", type: "vector", vector: { dimension: 2 } }), withId({ name: "size", type: "int" }));
      // A default: rows get a value that no change announces.
      for (const record of items.records.values()) record.size = 5n;
    });
    expect(await at.search({ column: "second", queryVector: [1, 0], consistency: "eventual" })).toEqual({ totalCount: 0, results: [] });
    expect(await at.ids({ filter: { size: 5 }, consistency: "eventual" })).toEqual(["a", "b"]);
    expect(at.records.reads.all).toBe(3);
  });

  test("renamed columns and tables keep their data, even when two swap their names", async () => {
    at.records.alter(REF, (tables) => {
      const items = tables.find((t) => t.name === "items")!;
      items.name = "things";
      items.columns = items.columns.map((column) =>
        column.name === "embedding" ? { ...column, name: "color" } : column.name === "color" ? { ...column, name: "embedding" } : column,
      );
      for (const record of items.records.values()) [record.color, record.embedding] = [record.embedding, record.color];
    });
    const reads = at.records.reads.all;
    const request = { column: "color", queryVector: [1, 2, 3], filter: { embedding: "blue" } };
    expect((await at.store.vectorSearch(REF, "things", request)).results.map(({ id }) => id)).toEqual(["b"]);
    expect(at.records.reads.all).toBe(reads);
    await expect(at.search({})).rejects.toMatchObject({ code: "NOT_FOUND", message: "table [db:main/items] not found" });
    at.records.write(REF, "things", [{ id: "c", color: [9, 9, 9], embedding: "blue" }]);
    expect((await at.store.vectorSearch(REF, "things", { ...request, consistency: "strong" })).totalCount).toBe(2);
  });

  test("a column that was dropped and created again is another one", async () => {
    at.records.alter(REF, (tables) => {
      const items = tables.find((t) => t.name === "items")!;
      items.columns = items.columns.filter((column) => column.name !== "embedding");
      items.columns.push(withId({ name: "embedding", type: "vector", vector: { dimension: 2 } }));
      for (const record of items.records.values()) record.embedding = null;
    });
    at.records.write(REF, "items", [item("a", [1, 1])]);
    await expect(at.search({ consistency: "eventual" })).rejects.toMatchObject({
      code: "INVALID",
      message: 'queryVector has 3 elements; column "embedding" has dimension 2.',
    });
    expect(await at.ids({ queryVector: [1, 1] })).toEqual(["a"]);
  });

  test("a branch that was dropped and created again is another one", async () => {
    at.records.dropBranch(REF);
    await expect(at.search({})).rejects.toMatchObject({ code: "NOT_FOUND", message: 'Branch "main" does not exist in database "db".' });
    at.records.createBranch(REF);
    at.records.createTable(REF, "items", [{ name: "embedding", type: "vector", vector: { dimension: 3 } }]);
    at.records.write(REF, "items", [item("z", [1, 2, 3])]);
    expect(await at.ids({ consistency: "eventual" })).toEqual(["z"]);
    at.records.dropBranch(REF);
    await expect.poll(() => at.store.status().rows).toBe(0);
  });

  test("changes while the schema changes are not lost", async () => {
    let isWriting = true;
    const writer = (async () => {
      for (let i = 0; isWriting && i < 6_000; i++) {
        at.records.write(REF, "items", [item(`w${i}`, [1, i, 0], { [`extra${i % 7}`]: `${i}` })]);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return at.records;
    })();
    for (let n = 0; n < 12; n++) {
      at.records.alter(REF, (tables) => {
        const items = tables.find((t) => t.name === "items")!;
        const name = `extra${n % 7}`;
        if (items.columns.some((column) => column.name === name)) items.columns = items.columns.filter((column) => column.name !== name);
        else items.columns.push(withId({ name, type: "string" }));
      });
      await at.search({});
    }
    isWriting = false;
    await writer;
    const info = await at.records.branch(REF);
    for (const column of info.tables.get("items")!.columns.values()) {
      if (!column.name.startsWith("extra")) continue;
      const expected = await expectedIds(column.name);
      expect((await at.ids({ size: 1000, filter: { $exists: column.name } })).sort()).toEqual(expected);
    }
  });

  const expectedIds = async (column: string): Promise<string[]> => {
    const found: string[] = [];
    await at.records.feed.readAll(REF, [{ table: "items", columns: [column] }], async (batch) => {
      const values = batch.columns.get(column)!;
      batch.ids.forEach((id, i) => {
        if (values.kind === "text" && values.values[i] !== null) found.push(id);
      });
    });
    return found.sort();
  };
});
