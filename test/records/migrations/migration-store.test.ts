/**
 * Schema operations and history, on both engines: a comparison leads from any schema to any other, and
 * replaying a history reproduces its schema.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import { toBranchSchema } from "../../../src/records/catalog/document.ts";
import { checksumOf } from "../../../src/records/catalog/history/history.ts";
import { MigrationStore } from "../../../src/records/migrations/migration-store.ts";
import { planMigration } from "../../../src/records/migrations/table-migrations.ts";
import type { BranchSchema, ColumnSchema } from "../../../src/records/schema.ts";
import { turnsDuring } from "../../support/event-loop.ts";
import { runs } from "../../support/random-runs.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";

const TABLES = ["a", "b", "c"];
const COLUMNS: readonly Omit<ColumnSchema, "name">[] = [
  { type: "string" },
  { type: "int", notNull: true, defaultValue: "1" },
  { type: "email", unique: true },
  { type: "vector", vector: { dimension: 3 } },
  { type: "link", link: { table: "a" } },
  { type: "link", link: { table: "c" } },
];

/** Schemas over few names, so that two of them share tables and columns and differ in some. */
const schemas: fc.Arbitrary<BranchSchema> = fc
  .uniqueArray(
    fc.record({
      name: fc.constantFrom(...TABLES),
      columns: fc.uniqueArray(
        fc.record({ name: fc.constantFrom("x", "y", "z"), kind: fc.constantFrom(...COLUMNS) }).map(({ name, kind }) => ({ name, ...kind })),
        { selector: ({ name }) => name },
      ),
    }),
    { selector: ({ name }) => name },
  )
  .map((tables) => ({
    tables: tables.map(({ name, columns }) => ({
      name,
      columns: columns.filter(({ link }) => link === undefined || tables.some((other) => other.name === link.table)),
    })),
  }));

/** Ignores order. */
const sorted = (schema: BranchSchema) =>
  [...schema.tables]
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map((table) => ({ ...table, columns: [...table.columns].sort((one, other) => (one.name < other.name ? -1 : 1)) }));

describeOnBothEngines("Schema operations", (fixture) => {
  let count = 0;
  const open = async () => {
    const catalog = await Catalog.open(fixture.engine);
    const fresh = async () => {
      const ref = { database: "migrations", branch: `b${count++}` };
      await catalog.createBranch(ref);
      return ref;
    };
    return { catalog, store: new MigrationStore(fixture.engine, catalog), fresh };
  };

  test("the comparison of any two schemas, applied to the first, gives the second; replaying the history gives the same", async () => {
    const { catalog, store, fresh } = await open();
    await fc.assert(
      fc.asyncProperty(schemas, schemas, async (first, second) => {
        const ref = await fresh();
        for (const target of [first, second]) {
          const { operations } = await store.compareWithSchema(ref, target);
          const preview = await store.preview(ref, operations, "operations");
          await store.apply(ref, operations, "operations");
          const schema = toBranchSchema(await catalog.branch(ref));
          expect(sorted(schema)).toEqual(sorted(target));
          expect(preview.updated).toEqual(schema);
          expect((await store.compareWithSchema(ref, target)).operations).toEqual([]);
        }
        const copy = await fresh();
        const history = (await store.list(ref, { limit: 100 })).reverse();
        await store.push(copy, history);
        expect(toBranchSchema(await catalog.branch(copy))).toEqual(toBranchSchema(await catalog.branch(ref)));
        expect(await store.list(copy, { limit: 100 })).toMatchObject(
          [...history].reverse().map(({ id, checksum, parentId }) => ({ id, checksum, parentId })),
        );
      }),
      { numRuns: runs(12) },
    );
    await catalog.close();
  });

  test("every way of changing a schema is in the history, renames as renames", async () => {
    const { catalog, store, fresh } = await open();
    const ref = await fresh();
    expect(await store.last(ref)).toBeUndefined();
    await catalog.change(ref, (editor) => editor.createTable("teams", [{ name: "title", type: "string" }]));
    await catalog.change(ref, async (editor) => {
      await editor.renameTable("teams", "groups");
      await editor.renameColumn("groups", "title", "name");
      await editor.addColumn("groups", { name: "boss", type: "link", link: { table: "groups" } });
    });
    await store.apply(ref, [{ removeColumn: { table: "groups", column: "boss" } }], "operations", { title: "no bosses" });
    const recent = await store.list(ref, { limit: 10 });
    expect(recent.map(({ operations, title }) => ({ operations, title }))).toEqual([
      { title: "no bosses", operations: [{ removeColumn: { table: "groups", column: "boss" } }] },
      {
        title: undefined,
        operations: [
          { renameTable: { oldName: "teams", newName: "groups" } },
          { renameColumn: { table: "groups", oldName: "title", newName: "name" } },
          { addColumn: { table: "groups", column: { name: "boss", type: "link", link: { table: "groups" } } } },
        ],
      },
      {
        title: undefined,
        operations: [{ addTable: { table: "teams" } }, { addColumn: { table: "teams", column: { name: "title", type: "string" } } }],
      },
    ]);
    expect(recent.map(({ parentId }) => parentId)).toEqual([recent[1]?.id, recent[2]?.id, undefined]);
    for (const { checksum, parentId, operations } of recent) expect(checksum).toBe(checksumOf(parentId, operations));
    expect((await store.list(ref, { limit: 10, before: recent[0]?.id ?? "" })).map(({ id }) => id)).toEqual([recent[1]?.id, recent[2]?.id]);
    expect((await store.list(ref, { limit: 10, since: recent[1]?.id ?? "" })).map(({ id }) => id)).toEqual([recent[0]?.id]);

    // The tenth change comes after the ninth.
    for (let n = 4; n <= 12; n++) await store.apply(ref, [{ addTable: { table: `t${n}` } }], "operations", { title: String(n) });
    const titles = (await store.list(ref, { limit: 9 })).map(({ title }) => title);
    expect(titles).toEqual(["12", "11", "10", "9", "8", "7", "6", "5", "4"]);
    const history = await store.list(ref, { limit: 12 });

    const copy = { database: ref.database, branch: `copy${count++}` };
    await catalog.createBranch(copy, { from: ref.branch });
    expect((await store.list(copy, { limit: 12 })).map(({ id }) => id)).toEqual(history.map(({ id }) => id));
    await catalog.dropBranch(copy);
    await expect(store.list(copy, { limit: 10 })).rejects.toMatchObject({ code: "NOT_FOUND" });
    await catalog.close();
  });

  test("a fault in any operation undoes all, is named, and leaves no trace in the history", async () => {
    const { catalog, store, fresh } = await open();
    const ref = await fresh();
    await store.apply(ref, [{ addTable: { table: "kept" } }], "operations");
    const cases: [unknown, string][] = [
      [[{ addTable: { table: "half" } }, { removeTable: { table: "gone" } }], 'operations[1]: Table "gone" does not exist.'],
      [[{ addTable: { table: "kept" } }], 'operations[0]: Table "kept" exists already.'],
      [
        [{ addTable: { table: "x" } }, { addColumn: { table: "x", column: { name: "l", type: "link", link: { table: "y" } } } }],
        "operations[1]",
      ],
      [[{ addTable: { table: "x", columns: 1 }, removeTable: {} }], "operations[0] has to be an object with one of"],
      [[{ truncateTable: { table: "kept" } }], "truncateTable"],
      [[{ addColumn: { table: "kept", column: { name: "id", type: "int" } } }], '"id" is reserved'],
      [[null], "operations[0]"],
      ["all", "operations has to be a list"],
    ];
    for (const [operations, message] of cases) {
      const expected = { code: "INVALID", message: expect.stringContaining(message) };
      await expect(store.preview(ref, operations, "operations")).rejects.toMatchObject(expected);
      await expect(store.apply(ref, operations, "operations")).rejects.toMatchObject(expected);
    }
    expect(toBranchSchema(await catalog.branch(ref))).toEqual({ tables: [{ name: "kept", columns: [] }] });
    expect(await store.list(ref, { limit: 10 })).toHaveLength(1);
    await catalog.close();
  });

  test("a pushed migration must be complete and must follow the latest one", async () => {
    const { catalog, store, fresh } = await open();
    const [from, to] = [await fresh(), await fresh()];
    await store.apply(from, [{ addTable: { table: "one" } }], "operations");
    await store.apply(from, [{ addTable: { table: "two" } }], "operations");
    const [second, first] = await store.list(from, { limit: 2 });
    await expect(store.push(to, [second!])).rejects.toMatchObject({
      code: "INVALID",
      message: expect.stringContaining("newest migration of the branch is none"),
    });
    await expect(store.push(to, [{ ...first!, operations: [{ addTable: { table: "other" } }] }])).rejects.toMatchObject({
      code: "INVALID",
      message: expect.stringContaining("checksum"),
    });
    await store.push(to, [first!]);
    await store.push(to, [first!, second!]);
    expect(toBranchSchema(await catalog.branch(to))).toEqual(toBranchSchema(await catalog.branch(from)));
    await catalog.close();
  });

  test("compares and plans large schemas in slices, so that others are served in between", async () => {
    const catalog = await Catalog.open(fixture.engine);
    const ref = { database: "large", branch: "main" };
    await catalog.createBranch(ref);
    const store = new MigrationStore(fixture.engine, catalog);
    const columns = (count: number): ColumnSchema[] => Array.from({ length: count }, (_, i) => ({ name: `c${i}`, type: "string" }));
    const tables = Array.from({ length: 60 }, (_, i) => ({ name: `t${i}`, columns: columns(1_000) }));
    // Each of four passes over 60,000 columns, 5,000 or 10,000 a slice.
    let compared: Awaited<ReturnType<MigrationStore["compareWithSchema"]>> | undefined;
    const turns = await turnsDuring(async () => {
      compared = await store.compareWithSchema(ref, { tables });
    });
    expect(turns).toBeGreaterThan(40);
    expect(compared!.operations).toHaveLength(60 * 1_001);
    const half = { tables: tables.map((table) => ({ ...table, columns: table.columns.slice(500) })) };
    let plan: Awaited<ReturnType<typeof planMigration>> | undefined;
    expect(
      await turnsDuring(async () => {
        plan = await planMigration({ tables }, half);
      }),
    ).toBeGreaterThan(10);
    expect(plan!.tableMigrations!.t0!.removedColumns).toHaveLength(500);
    // As many columns as a table may have; more could not be made of it.
    await expect(store.compareWithSchema(ref, { tables: [{ name: "wide", columns: columns(1_001) }] })).rejects.toMatchObject({
      code: "INVALID",
      message: 'Table "wide" has 1001 columns; at most 1000 are possible.',
    });
    await catalog.close();
  });
});
