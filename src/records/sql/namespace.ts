/**
 * Which relations and columns a name can mean at a given place in a statement. Follows PostgreSQL's
 * namespaces (parse_relation.c and parse_clause.c), with the same flags: an approximation could take a name
 * for a column of one relation where PostgreSQL takes it for that of another.
 */
import { type Column, type ColumnList, columnNamed, complete, type ValueType } from "./row-types.ts";
import { Refusal, type Tree } from "./statement-tree.ts";
import type { Steps } from "./steps.ts";

/** The capacity of PostgreSQL's own lists. A result has at most 1,664 columns, a join 32,767. */
const MAX_JOIN_COLUMNS = 32_767;
export const MAX_RESULT_COLUMNS = 1_664;

export interface NamespaceItem {
  /** undefined for a subquery without an alias, and for a join. */
  readonly name: string | undefined;
  readonly columns: ColumnList;
  /** What the relation's name means as a value. */
  readonly rowType: ValueType;
  isRelationVisible: boolean;
  areColumnsVisible: boolean;
  /** Visible only to LATERAL items of the same FROM. */
  isLateralOnly: boolean;
}

export const item = (name: string | undefined, columns: ColumnList, rowType: ValueType): NamespaceItem => ({
  name,
  columns,
  rowType,
  isRelationVisible: name !== undefined,
  areColumnsVisible: true,
  isLateralOnly: false,
});

/** A query of a WITH clause. */
export interface Cte {
  readonly tree: Tree;
  readonly level: Level;
  /**
   * undefined: not begun. null: its first part is not finished. While the query is being processed: the
   * columns of its first part, for a reference to itself.
   */
  columns: ColumnList | null | undefined;
}

/** A query and the queries around it. */
export class Level {
  readonly parent: Level | null;
  readonly steps: Steps;
  readonly ctes = new Map<string, Cte>();
  items: NamespaceItem[] = [];
  /** A LATERAL item of this level's FROM is being processed. */
  isLateralActive = false;

  constructor(parent: Level | null, steps: Steps) {
    this.parent = parent;
    this.steps = steps;
  }

  cte(name: string): Cte | undefined {
    for (const level of this.#outwards()) {
      const found = level.ctes.get(name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  relation(name: string): NamespaceItem | undefined {
    for (const level of this.#outwards()) {
      for (const candidate of level.#seen()) if (candidate.isRelationVisible && candidate.name === name) return candidate;
    }
    return undefined;
  }

  /**
   * The column that an unqualified name means. "unknown" when a relation whose columns are not all known may
   * have it; undefined when there is none.
   */
  column(name: string): Column | "unknown" | undefined {
    for (const level of this.#outwards()) {
      let found: Column | undefined;
      for (const { areColumnsVisible, columns } of level.#seen()) {
        if (!areColumnsVisible) continue;
        if (!columns.isComplete) return "unknown";
        found ??= columnNamed(columns.columns, name, this.steps);
      }
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The columns of `*`. */
  visibleColumns(): ColumnList[] {
    this.steps.spend(this.items.length);
    return this.items.filter(({ areColumnsVisible }) => areColumnsVisible).map(({ columns }) => columns);
  }

  *#outwards(): Generator<Level> {
    for (let level: Level | null = this; level !== null; level = level.parent) {
      this.steps.spend(1);
      yield level;
    }
  }

  *#seen(): Generator<NamespaceItem> {
    for (const candidate of this.items) {
      this.steps.spend(1);
      if (!candidate.isLateralOnly || this.isLateralActive) yield candidate;
    }
  }
}

export function setLateralOnly(items: readonly NamespaceItem[], isLateralOnly: boolean): void {
  for (const each of items) each.isLateralOnly = isLateralOnly;
}

/** @param shared  the columns of USING: they come first, and once. */
export function joinColumns(left: ColumnList, right: ColumnList, shared: readonly string[], steps: Steps): ColumnList {
  steps.spend(shared.length + left.columns.length + right.columns.length);
  const isShared = new Set(shared);
  const rest = (list: ColumnList): Column[] => list.columns.filter(({ name }) => !isShared.has(name));
  const columns = [...shared.map((name) => ({ name, type: null })), ...rest(left), ...rest(right)];
  if (columns.length > MAX_JOIN_COLUMNS) throw new Refusal(`joins can have at most ${MAX_JOIN_COLUMNS} columns`);
  return { columns, isComplete: left.isComplete && right.isComplete };
}

/** NATURAL: the names that both sides have, in the order of the left side. */
export function naturalColumns(left: ColumnList, right: ColumnList): string[] {
  if (!left.isComplete || !right.isComplete) {
    throw new Refusal("NATURAL JOIN needs relations whose columns are known: name the columns of the function, as in f(…) AS x(a)");
  }
  const names = new Set(right.columns.map(({ name }) => name));
  return left.columns.map(({ name }) => name).filter((name) => names.has(name));
}

export const usingColumns = (names: readonly string[]): ColumnList => complete(names.map((name) => ({ name, type: null })));
