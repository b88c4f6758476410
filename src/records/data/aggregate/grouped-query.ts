/**
 * The source of every statement that groups: the records that pass a filter, with the values that are grouped
 * and counted as columns of their own.
 */
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { type ColumnReference, columnSql } from "../sql-parts/column-reference.ts";
import { compileFilter, Parameters, ROW, relation } from "../sql-parts/statement-parts.ts";

/**
 * `(SELECT … AS v0, … AS v1 FROM table WHERE filter) AS b`. Expressions are computed once per record, and
 * grouping is by plain columns: a scalar subselect (a value behind a link) may stand in GROUP BY, but not
 * everywhere beside it.
 */
export class GroupedSource {
  readonly parameters = new Parameters();
  readonly branch: BranchInfo;
  readonly table: TableInfo;
  readonly #filter: string;
  readonly #expressions = new Map<string, string>();
  readonly #counts = new Map<string, string>();
  readonly #windows: string[] = [];

  constructor(branch: BranchInfo, table: TableInfo, filter: unknown) {
    this.branch = branch;
    this.table = table;
    this.#filter = compileFilter(branch, table, filter, ROW, this.parameters);
  }

  /** `b.v3`: an expression over the record's row, by its name in the source. The same expression has the same name. */
  value(sql: string): string {
    let name = this.#expressions.get(sql);
    if (name === undefined) {
      name = `b.v${this.#expressions.size}`;
      this.#expressions.set(sql, name);
    }
    return name;
  }

  column(reference: ColumnReference): string {
    return this.value(columnSql(this.branch, reference, ROW));
  }

  /** A condition on the record, as a boolean. */
  condition(filter: unknown, place: string): string {
    return this.value(compileFilter(this.branch, this.table, filter, ROW, this.parameters, place));
  }

  /**
   * `b.n0`: how many records of the group have the value, on each of its records. The position of a percentile
   * depends on it, and an aggregate cannot contain another one. The statement has to group by `counts`, too.
   *
   * @param value  as `value` and `column` return it; so are `keys`, which make the group.
   */
  count(value: string, keys: readonly string[]): string {
    let name = this.#counts.get(value);
    if (name === undefined) {
      name = `b.n${this.#counts.size}`;
      const partition = keys.length === 0 ? "" : `PARTITION BY ${keys.join(", ")}`;
      this.#counts.set(value, name);
      this.#windows.push(`count(${value}) OVER (${partition}) AS ${name.slice(2)}`);
    }
    return name;
  }

  get counts(): readonly string[] {
    return [...this.#counts.values()];
  }

  get from(): string {
    const list = [...this.#expressions].map(([sql, name]) => `${sql} AS ${name.slice(2)}`).join(", ");
    const records = `(SELECT ${list} FROM ${relation(this.branch, this.table)} AS ${ROW} WHERE ${this.#filter}) AS b`;
    return this.#windows.length === 0 ? records : `(SELECT b.*, ${this.#windows.join(", ")} FROM ${records}) AS b`;
  }
}
