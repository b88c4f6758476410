/** Schema changes as operations: apply, preview, compare, and a branch's history, on top of the catalog. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { isUnderscored, type SystemNaming } from "../../filter/system-columns.ts";
import { Slices } from "../../threads/event-loop.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { requireColumn } from "../catalog/column-types.ts";
import { type BranchDocument, namingOf, shownSystemColumns, toBranchSchema, toColumnSchema } from "../catalog/document.ts";
import { compareSchemas } from "../catalog/history/compare.ts";
import { checksumOf, knownMigrations, type Migration, readMigrations } from "../catalog/history/history.ts";
import { requireOperations } from "../catalog/history/schema-operations.ts";
import { MAX_COLUMNS, SchemaEditor } from "../catalog/schema-editor.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import { requireTableName, schemaNameOf } from "../identifiers.ts";
import type { BranchInfo, BranchRef, BranchSchema, SchemaOperation, TableSchema } from "../schema.ts";
import { applyOperations } from "./apply-operations.ts";

export interface PushedMigration {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly title: string | undefined;
  readonly message: string | undefined;
  readonly checksum: string;
  readonly operations: readonly SchemaOperation[];
}

/** Most histories are short; this limit is for branches that scripts have changed for years. */
const MAX_PUSHED = 1_000;

/** About 10 ms of checking. */
const COLUMNS_PER_SLICE = 5_000;

export class MigrationStore {
  readonly #engine: Engine;
  readonly #catalog: Catalog;

  constructor(engine: Engine, catalog: Catalog) {
    this.#engine = engine;
    this.#catalog = catalog;
  }

  /** The id of the branch's newest change; undefined when its schema was never changed. */
  async last(ref: BranchRef): Promise<string | undefined> {
    return (await this.list(ref, { limit: 1 }))[0]?.id;
  }

  /** Newest first. NOT_FOUND for a branch that does not exist. */
  async list(ref: BranchRef, options: { readonly limit: number; readonly before?: string; readonly since?: string }): Promise<Migration[]> {
    const { schemaName } = await this.#catalog.branch(ref);
    return readMigrations(this.#engine, schemaName, options);
  }

  /**
   * All or nothing. INVALID names the operation that does not fit. Resolves to the ids of this change and of
   * the one before it.
   */
  async apply(
    ref: BranchRef,
    given: unknown,
    path: string,
    note: { readonly title?: string; readonly message?: string } = {},
  ): Promise<{ id: string | undefined; parentId: string | undefined }> {
    const operations = requireOperations(given, path);
    if (operations.length > 0) {
      await this.#catalog.change(ref, async (editor) => {
        await applyOperations(editor, operations, path);
        return [{ ...note, operations }];
      });
    }
    const [last] = await this.list(ref, { limit: 1 });
    return { id: last?.id, parentId: last?.parentId };
  }

  /** What the branch's schema would be; nothing is changed and nothing is locked. */
  async preview(ref: BranchRef, given: unknown, path: string): Promise<{ original: BranchSchema; updated: BranchSchema }> {
    const branch = await this.#catalog.branch(ref);
    const updated = await rehearse(await toDocument(branch), requireOperations(given, path), path);
    return { original: toBranchSchema(branch), updated: await schemaOf(updated) };
  }

  /** From the branch (after `sourceOperations`) to a schema that a client gives (after `targetOperations`). */
  async compareWithSchema(
    ref: BranchRef,
    schema: unknown,
    operations: { readonly source?: unknown; readonly target?: unknown } = {},
  ): Promise<{ source: BranchSchema; target: BranchSchema; operations: SchemaOperation[] }> {
    const branch = await this.#catalog.branch(ref);
    const source = await rehearse(
      await toDocument(branch),
      requireOperations(operations.source ?? [], "branchOperations"),
      "branchOperations",
    );
    const given = await withIds(await requireSchema(schema));
    const target = await rehearse(given, requireOperations(operations.target ?? [], "schemaOperations"), "schemaOperations");
    // A schema that does not list the system columns says nothing about them.
    return comparison(source, namingOf(source) === "dotted" ? target : { ...target, systemNaming: "underscored" });
  }

  /** From one branch to another of the same database. */
  async compareBranches(
    ref: BranchRef,
    other: string,
    operations: { readonly source?: unknown; readonly target?: unknown } = {},
  ): Promise<{ source: BranchSchema; target: BranchSchema; operations: SchemaOperation[] }> {
    const [from, to] = [await this.#catalog.branch(ref), await this.#catalog.branch({ database: ref.database, branch: other })];
    const [sourcePath, targetPath] = ["sourceBranchOperations", "targetBranchOperations"];
    const source = await rehearse(await toDocument(from), requireOperations(operations.source ?? [], sourcePath), sourcePath);
    const target = await rehearse(await toDocument(to), requireOperations(operations.target ?? [], targetPath), targetPath);
    // The names of system columns are each branch's own.
    return comparison(source, { ...target, systemNaming: namingOf(source) });
  }

  /**
   * Brings migrations of another branch here, oldest first, keeping their ids. Those that are already here are
   * skipped; the rest must follow the newest one. All or nothing.
   */
  async push(ref: BranchRef, migrations: readonly PushedMigration[]): Promise<{ id: string | undefined; parentId: string | undefined }> {
    if (migrations.length > MAX_PUSHED)
      throw invalid(`migrations has ${migrations.length} elements; at most ${MAX_PUSHED} are possible at once.`);
    for (const [i, { id, parentId, checksum, operations }] of migrations.entries()) {
      if (checksum !== checksumOf(parentId, operations)) {
        throw invalid(`migrations[${i}]: the checksum of migration "${id}" does not match its parentID and operations.`);
      }
    }
    await this.#catalog.change(ref, async (editor, connection) => {
      const known = await knownMigrations(
        connection,
        schemaNameOf(ref),
        migrations.map(({ id }) => id),
      );
      const [newestHere] = await readMigrations(connection, schemaNameOf(ref), { limit: 1 });
      let last = newestHere?.id;
      const fresh: PushedMigration[] = [];
      for (const [i, migration] of migrations.entries()) {
        if (known.has(migration.id)) continue;
        if (migration.parentId !== last) {
          const parent = migration.parentId === undefined ? "nothing" : `"${migration.parentId}"`;
          throw invalid(
            `migrations[${i}]: "${migration.id}" follows ${parent}, but the newest migration of the branch is ${last === undefined ? "none" : `"${last}"`}.`,
          );
        }
        await applyOperations(editor, migration.operations, `migrations[${i}].operations`);
        fresh.push(migration);
        last = migration.id;
      }
      return fresh;
    });
    const [newest] = await this.list(ref, { limit: 1 });
    return { id: newest?.id, parentId: newest?.parentId };
  }
}

async function comparison(
  source: BranchDocument,
  target: BranchDocument,
): Promise<{ source: BranchSchema; target: BranchSchema; operations: SchemaOperation[] }> {
  const [from, to] = [await schemaOf(source), await schemaOf(target)];
  return { source: from, target: to, operations: await compareSchemas(from, to) };
}

/** The editor's checks without its SQL: a rehearsal on the document alone. */
async function rehearse(document: BranchDocument, operations: readonly SchemaOperation[], path: string): Promise<BranchDocument> {
  const nobody = { query: async () => ({ rows: [], rowCount: 0 }) } as unknown as Connection;
  const editor = new SchemaEditor(nobody, { schemaName: "rehearsal", roleName: "rehearsal" }, document);
  await applyOperations(editor, operations, path);
  return editor.document;
}

async function schemaOf(document: BranchDocument): Promise<BranchSchema> {
  const system = shownSystemColumns(namingOf(document));
  return {
    tables: await inSlices(document.tables, ({ name, columns }) => ({ name, columns: [...system, ...columns.map(toColumnSchema)] })),
  };
}

const toDocument = (branch: BranchInfo): Promise<BranchDocument> => withIds(toBranchSchema(branch));

/** System columns that the schema lists are not columns of its tables, but say what system columns are called. */
async function withIds(schema: BranchSchema): Promise<BranchDocument> {
  let nextId = 1;
  let systemNaming: SystemNaming = "dotted";
  const tables = await inSlices(schema.tables, ({ name, columns }) => {
    const own = columns.filter((column) => !isUnderscored(column.name));
    if (own.length < columns.length) systemNaming = "underscored";
    return { id: nextId++, name, columns: own.map((column) => ({ id: nextId++, ...column })) };
  });
  return { nextId, tables, systemNaming };
}

async function inSlices<Table extends { readonly columns: readonly unknown[] }, Result>(
  tables: readonly Table[],
  work: (table: Table) => Result,
): Promise<Result[]> {
  const slices = new Slices(COLUMNS_PER_SLICE);
  const results: Result[] = [];
  for (const table of tables) {
    results.push(work(table));
    if (slices.spend(table.columns.length + 1)) await slices.rest();
  }
  return results;
}

/** A schema as a client gives it: names, types, and links to tables that it has. Checked in slices. */
async function requireSchema(given: unknown): Promise<BranchSchema> {
  const tables = (given as { tables?: unknown } | null | undefined)?.tables;
  if (!Array.isArray(tables)) throw invalid('schema has to be an object like {"tables": [{"name": "teams", "columns": []}]}.');
  const slices = new Slices(COLUMNS_PER_SLICE);
  const checked: TableSchema[] = [];
  for (const table of tables as unknown[]) {
    const result = requireTableSchema(table);
    checked.push(result);
    if (slices.spend(result.columns.length + 1)) await slices.rest();
  }
  const names = new Set(checked.map(({ name }) => name));
  if (names.size !== checked.length) throw invalid("schema has two tables with the same name.");
  for (const { name, columns } of checked) {
    for (const column of columns) {
      if (column.link !== undefined && !names.has(column.link.table)) {
        throw invalid(`Column "${column.name}" of table "${name}" links to table "${column.link.table}", which the schema does not have.`);
      }
    }
    if (slices.spend(columns.length + 1)) await slices.rest();
  }
  return { tables: checked };
}

function requireTableSchema(table: unknown): TableSchema {
  const { name, columns } = (table ?? {}) as { name?: unknown; columns?: unknown };
  requireTableName(name);
  if (!Array.isArray(columns)) throw invalid(`Table "${name}": columns has to be a list of columns.`);
  if (columns.length > MAX_COLUMNS) throw invalid(`Table "${name}" has ${columns.length} columns; at most ${MAX_COLUMNS} are possible.`);
  const result = columns.map((column) => requireColumn(name, column));
  const seen = new Set<string>();
  for (const column of result) {
    if (seen.has(column.name)) throw invalid(`Table "${name}" has two columns "${column.name}".`);
    seen.add(column.name);
  }
  return { name, columns: result };
}

const invalid = (message: string): LodestoneError => new LodestoneError("INVALID", message);
