/**
 * Changes to the schema of one branch, inside one transaction that holds the lock on the branch's row. Each
 * method checks, runs its SQL, and changes the document, so that several methods make one unit.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { isUnderscored, type SystemNaming } from "../../filter/system-columns.ts";
import type { LanguageOrNone } from "../../text/languages.ts";
import type { Connection } from "../engine/engine.ts";
import {
  type ConstraintKind,
  constraintName,
  physicalNameOf,
  qualified,
  quoteIdentifier,
  requireColumnName,
  requireTableName,
} from "../identifiers.ts";
import type { ColumnSchema } from "../schema.ts";
import { columnDefinition, type Fail, requireColumn, requireLanguage, sameDefinition } from "./column-types.ts";
import { type BranchDocument, type ColumnDocument, namingOf, type TableDocument, toColumnSchema } from "./document.ts";
import { bareTableStatement, columnStatements, FEED_TABLE, primaryKeyStatement, tableGuardStatements } from "./table-ddl.ts";

/** PostgreSQL allows 1,600, dropped ones included. */
export const MAX_COLUMNS = 1_000;

export class SchemaEditor {
  readonly #connection: Connection;
  readonly #schemaName: string;
  readonly #roleName: string;
  #document: BranchDocument;

  constructor(connection: Connection, branch: { schemaName: string; roleName: string }, document: BranchDocument) {
    this.#connection = connection;
    this.#schemaName = branch.schemaName;
    this.#roleName = branch.roleName;
    this.#document = document;
  }

  get document(): BranchDocument {
    return this.#document;
  }

  async createTable(name: string, columns: readonly ColumnSchema[] = []): Promise<void> {
    requireTableName(name);
    this.#refuseTakenTable(name);
    if (!Array.isArray(columns)) throw new LodestoneError("INVALID", `Table "${name}": columns has to be a list of columns.`);
    const checked = this.#withoutSystemColumns(columns.map((column) => requireColumn(name, column)));
    const table: TableDocument = { id: this.#nextId(), name, columns: [] };
    let grown = table;
    for (const column of checked) grown = this.#withColumn(grown, column);
    // The table itself is a legal target of its links.
    for (const column of checked) if (column.link?.table !== name) this.#requireLinkTarget(name, column);
    await this.#run(bareTableStatement(this.#schemaName, grown));
    await this.#run(primaryKeyStatement(this.#schemaName, name));
    for (const column of grown.columns) await this.#runAll(columnStatements(this.#schemaName, this.#roleName, name, column));
    await this.#runAll(tableGuardStatements(this.#schemaName, this.#roleName, name));
    this.#document = { ...this.#document, tables: [...this.#document.tables, grown] };
  }

  async renameTable(name: string, to: string): Promise<void> {
    const table = this.#requireTable(name);
    requireTableName(to);
    if (to === name) return;
    this.#refuseTakenTable(to, name);
    const [from, target] = [physicalNameOf(name), physicalNameOf(to)];
    if (from !== target) {
      await this.#run(`ALTER TABLE ${qualified(this.#schemaName, from)} RENAME TO ${quoteIdentifier(target)}`);
      await this.#renameConstraint(target, constraintName(from, "id", "key"), constraintName(target, "id", "key"));
      for (const column of table.columns) await this.#renameConstraints(target, column, [from, column.name], [target, column.name]);
      // Nobody else writes this table now, so its outbox rows are complete.
      await this.#connection.query(`UPDATE ${qualified(this.#schemaName, FEED_TABLE)} SET table_name = $2 WHERE table_name = $1`, [
        from,
        target,
      ]);
    }
    this.#document = {
      ...this.#document,
      tables: this.#document.tables.map((other) => {
        if (other.name !== name && !other.columns.some(({ link }) => link?.table === name)) return other;
        return {
          ...other,
          name: other.name === name ? to : other.name,
          columns: other.columns.map((column) => (column.link?.table === name ? { ...column, link: { table: to } } : column)),
        };
      }),
    };
  }

  /** Refused while another table links to it: dropping would silently turn those links into something else. */
  async dropTable(name: string): Promise<void> {
    this.#requireTable(name);
    for (const other of this.#document.tables) {
      const link = other.name === name ? undefined : other.columns.find((column) => column.link?.table === name);
      if (link !== undefined) {
        throw new LodestoneError(
          "CONFLICT",
          `Table "${name}" is linked to by column "${link.name}" of table "${other.name}". Drop that column first.`,
        );
      }
    }
    const physical = physicalNameOf(name);
    await this.#run(`DROP TABLE ${qualified(this.#schemaName, physical)}`);
    await this.#connection.query(`DELETE FROM ${qualified(this.#schemaName, FEED_TABLE)} WHERE table_name = $1`, [physical]);
    this.#document = { ...this.#document, tables: this.#document.tables.filter((table) => table.name !== name) };
  }

  async addColumn(tableName: string, given: ColumnSchema): Promise<void> {
    const table = this.#requireTable(tableName);
    const column = requireColumn(tableName, given);
    if (this.#withoutSystemColumns([column]).length === 0) return;
    const grown = this.#withColumn(table, column);
    this.#requireLinkTarget(tableName, column);
    const physical = qualified(this.#schemaName, physicalNameOf(tableName));
    if (column.notNull && column.defaultValue === undefined) {
      const { rows } = await this.#connection.query(`SELECT 1 FROM ${physical} LIMIT 1`);
      if (rows.length > 0) {
        throw new LodestoneError(
          "INVALID",
          `Column "${column.name}" is notNull and table "${tableName}" has records, which would have no value in it. Give it a defaultValue, or leave out notNull.`,
        );
      }
    }
    await this.#run(`ALTER TABLE ${physical} ADD COLUMN ${columnDefinition(column)}`);
    try {
      await this.#runAll(columnStatements(this.#schemaName, this.#roleName, tableName, column));
    } catch (error) {
      throw defaultRefused(error, tableName, column);
    }
    this.#replaceTable(grown);
  }

  async renameColumn(tableName: string, name: string, to: string): Promise<void> {
    const table = this.#requireTable(tableName);
    const column = requireColumnOf(table, name);
    requireColumnName(tableName, to);
    if (to === name) return;
    const rest = { ...table, columns: table.columns.filter((other) => other !== column) };
    refuseTakenColumn(rest, to);
    const physicalTable = physicalNameOf(tableName);
    const [from, target] = [physicalNameOf(name), physicalNameOf(to)];
    if (from !== target) {
      await this.#run(
        `ALTER TABLE ${qualified(this.#schemaName, physicalTable)} RENAME COLUMN ${quoteIdentifier(from)} TO ${quoteIdentifier(target)}`,
      );
      await this.#renameConstraints(physicalTable, column, [physicalTable, name], [physicalTable, to]);
    }
    this.#replaceTable({ ...table, columns: table.columns.map((other) => (other === column ? { ...column, name: to } : other)) });
  }

  /** @param language "none": without one. */
  async setLanguage(tableName: string, name: string, language: LanguageOrNone): Promise<void> {
    const table = this.#requireTable(tableName);
    const column = requireColumnOf(table, name);
    this.#replaceTable({
      ...table,
      columns: table.columns.map((other) => (other === column ? inLanguage(tableName, column, language) : other)),
    });
  }

  async dropColumn(tableName: string, name: string): Promise<void> {
    const table = this.#requireTable(tableName);
    const column = requireColumnOf(table, name);
    await this.#run(
      `ALTER TABLE ${qualified(this.#schemaName, physicalNameOf(tableName))} DROP COLUMN ${quoteIdentifier(physicalNameOf(name))}`,
    );
    this.#replaceTable({ ...table, columns: table.columns.filter((other) => other !== column) });
  }

  /**
   * Gives the table exactly these columns, in this order: drops, then adds. An existing column must stay the
   * same, except for its place and the language of its texts.
   */
  async setColumns(tableName: string, given: readonly ColumnSchema[]): Promise<void> {
    const table = this.#requireTable(tableName);
    if (!Array.isArray(given)) throw new LodestoneError("INVALID", `Table "${tableName}": columns has to be a list of columns.`);
    const wanted = this.#withoutSystemColumns(given.map((column) => requireColumn(tableName, column)));
    for (const column of wanted) {
      const there = table.columns.find((other) => other.name === column.name);
      if (there !== undefined && !sameDefinition(there, column)) {
        throw new LodestoneError(
          "INVALID",
          `Column "${column.name}" of table "${tableName}" is ${JSON.stringify(toColumnSchema(there))} and cannot become ${JSON.stringify(column)}. ` +
            "Add a column with another name, copy the values, and drop this one.",
        );
      }
    }
    const names = new Set(wanted.map((column) => column.name));
    for (const column of table.columns) if (!names.has(column.name)) await this.dropColumn(tableName, column.name);
    for (const column of wanted) {
      if (!table.columns.some((other) => other.name === column.name)) await this.addColumn(tableName, column);
    }
    const now = this.#requireTable(tableName);
    const languages = new Map(given.map(({ name, language }) => [name, language]));
    this.#replaceTable({
      ...now,
      columns: wanted.map(({ name }) => inLanguage(tableName, requireColumnOf(now, name), languages.get(name))),
    });
  }

  /** What answers and SQL call the columns that every table has. */
  setSystemNaming(naming: SystemNaming): void {
    if (naming !== namingOf(this.#document)) this.#document = { ...this.#document, systemNaming: naming };
  }

  /**
   * Every table has them. If a schema lists them, that says what its code calls them, and so what the branch
   * calls them from now on.
   */
  #withoutSystemColumns(columns: readonly ColumnSchema[]): ColumnSchema[] {
    if (columns.some(({ name }) => isUnderscored(name))) this.setSystemNaming("underscored");
    return columns.filter(({ name }) => !isUnderscored(name));
  }

  #nextId(): number {
    const id = this.#document.nextId;
    this.#document = { ...this.#document, nextId: id + 1 };
    return id;
  }

  #withColumn(table: TableDocument, column: ColumnSchema): TableDocument {
    refuseTakenColumn(table, column.name);
    if (table.columns.length >= MAX_COLUMNS) {
      throw new LodestoneError("INVALID", `Table "${table.name}" would have more than ${MAX_COLUMNS} columns, which is the maximum.`);
    }
    return { ...table, columns: [...table.columns, { id: this.#nextId(), ...column }] };
  }

  #requireLinkTarget(tableName: string, column: ColumnSchema): void {
    if (column.link === undefined || this.#document.tables.some((table) => table.name === column.link?.table)) return;
    throw new LodestoneError(
      "INVALID",
      `Column "${column.name}" of table "${tableName}" links to table "${column.link.table}", which does not exist. Create that table first.`,
    );
  }

  #requireTable(name: string): TableDocument {
    const table = this.#document.tables.find((other) => other.name === name);
    if (table === undefined) throw new LodestoneError("NOT_FOUND", `Table "${name}" does not exist.`);
    return table;
  }

  #refuseTakenTable(name: string, renamed?: string): void {
    for (const other of this.#document.tables) {
      if (other.name === name) throw new LodestoneError("CONFLICT", `Table "${name}" exists already.`);
      if (other.name !== renamed && physicalNameOf(other.name) === physicalNameOf(name)) {
        throw new LodestoneError(
          "CONFLICT",
          `Table "${name}" cannot be distinguished from table "${other.name}": the first 63 characters are the same.`,
        );
      }
    }
  }

  #replaceTable(table: TableDocument): void {
    this.#document = { ...this.#document, tables: this.#document.tables.map((other) => (other.id === table.id ? table : other)) };
  }

  async #renameConstraints(
    physicalTable: string,
    column: ColumnDocument,
    from: readonly [string, string],
    to: readonly [string, string],
  ): Promise<void> {
    const names = (kind: ConstraintKind): [string, string] => [
      constraintName(from[0], physicalNameOf(from[1]), kind),
      constraintName(to[0], physicalNameOf(to[1]), kind),
    ];
    if (column.unique) await this.#renameConstraint(physicalTable, ...names("unique"));
    if (column.type === "email" || column.type === "vector" || column.type === "link" || column.type === "json")
      await this.#renameConstraint(physicalTable, ...names(column.type));
    if (column.type === "link" && !column.unique) {
      const [old, fresh] = [from, to].map(([table, name]) => constraintName(table, `${physicalNameOf(name)}.link`, "key")) as [
        string,
        string,
      ];
      await this.#run(`ALTER INDEX ${qualified(this.#schemaName, old)} RENAME TO ${quoteIdentifier(fresh)}`);
    }
  }

  async #renameConstraint(physicalTable: string, from: string, to: string): Promise<void> {
    if (from === to) return;
    await this.#run(
      `ALTER TABLE ${qualified(this.#schemaName, physicalTable)} RENAME CONSTRAINT ${quoteIdentifier(from)} TO ${quoteIdentifier(to)}`,
    );
  }

  async #run(statement: string): Promise<void> {
    await this.#connection.query(statement);
  }

  async #runAll(statements: readonly string[]): Promise<void> {
    for (const statement of statements) await this.#run(statement);
  }
}

/** The column with texts of another language; undefined or null: as it is. */
function inLanguage(table: string, { language: before, ...column }: ColumnDocument, language: unknown): ColumnDocument {
  if (language === undefined || language === null) return before === undefined ? column : { ...column, language: before };
  const fail: Fail = (message) => {
    throw new LodestoneError("INVALID", `Column "${column.name}" of table "${table}": ${message}`);
  };
  return { ...column, ...requireLanguage({ type: column.type, language }, fail) };
}

function requireColumnOf(table: TableDocument, name: string): ColumnDocument {
  const column = table.columns.find((other) => other.name === name);
  if (column === undefined) throw new LodestoneError("NOT_FOUND", `Column "${name}" does not exist in table "${table.name}".`);
  return column;
}

function refuseTakenColumn(table: TableDocument, name: string): void {
  for (const other of table.columns) {
    if (other.name === name) throw new LodestoneError("CONFLICT", `Column "${name}" exists already in table "${table.name}".`);
    if (physicalNameOf(other.name) === physicalNameOf(name)) {
      throw new LodestoneError(
        "CONFLICT",
        `Column "${name}" of table "${table.name}" cannot be distinguished from column "${other.name}": the first 63 characters are the same.`,
      );
    }
    const [outer, inner] = other.name.length < name.length ? [other.name, name] : [name, other.name];
    if (inner.startsWith(`${outer}.`)) {
      throw new LodestoneError(
        "CONFLICT",
        `Table "${table.name}" cannot have both "${outer}" and "${inner}": "${outer}" would be a value and an object.`,
      );
    }
  }
}

/** A default that the existing records cannot have. */
function defaultRefused(error: unknown, table: string, column: ColumnSchema): unknown {
  const code = (error as { code?: unknown }).code;
  if (code === "23505") {
    return new LodestoneError(
      "INVALID",
      `Column "${column.name}" is unique, and table "${table}" has records that would all get its defaultValue.`,
      {
        cause: error,
      },
    );
  }
  if (code === "23503") {
    return new LodestoneError(
      "INVALID",
      `Column "${column.name}" of table "${table}": defaultValue "${column.defaultValue}" is not a record of table "${column.link?.table}".`,
      { cause: error },
    );
  }
  return error;
}
