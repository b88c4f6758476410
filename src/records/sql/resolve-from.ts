/**
 * What the items of a FROM clause bring into scope: tables, CTEs, subqueries, functions and joins
 * (resolve.ts says why, and what it follows).
 */
import { columnName } from "./column-names.ts";
import { type Cte, item, joinColumns, type Level, type NamespaceItem, naturalColumns, setLateralOnly, usingColumns } from "./namespace.ts";
import type { ExpressionResolver, ResolveQuery } from "./resolve-expressions.ts";
import {
  aliasColumns,
  type Column,
  type ColumnList,
  callColumns,
  complete,
  definedColumns,
  joined,
  renamed,
  SCALAR,
  scalars,
  UNKNOWN_COLUMNS,
  type ValueType,
} from "./row-types.ts";
import { locationOf, Refusal, strings, type Tree, unwrap, unwrapAll } from "./statement-tree.ts";
import type { Steps } from "./steps.ts";

/** A column of a table. Every type that a column can have is a scalar or an array of scalars. */
export interface TableColumn {
  readonly name: string;
  readonly isArray: boolean;
}

/** The tables that a statement names, as it writes them, with their columns in PostgreSQL's order. */
export type TableColumns = Readonly<Record<string, readonly TableColumn[]>>;

export class FromResolver {
  readonly #tables: TableColumns;
  /** Made once for each table: a statement may name one thousands of times. */
  readonly #known = new Map<string, ColumnList>();
  readonly #expressions: ExpressionResolver;
  readonly #resolveQuery: ResolveQuery;
  readonly #cteColumns: (cte: Cte) => ColumnList;

  constructor(tables: TableColumns, expressions: ExpressionResolver, resolveQuery: ResolveQuery, cteColumns: (cte: Cte) => ColumnList) {
    this.#tables = tables;
    this.#expressions = expressions;
    this.#resolveQuery = resolveQuery;
    this.#cteColumns = cteColumns;
  }

  resolveClause(clause: unknown, level: Level): void {
    for (const [type, tree] of unwrapAll(clause)) {
      const items = this.#fromItem(type, tree, level);
      setLateralOnly(items, true);
      for (const each of items) level.items.push(each);
    }
    level.steps.spend(level.items.length);
    setLateralOnly(level.items, false);
  }

  /** The last item returned is the one with the columns of the whole. */
  #fromItem(type: string, tree: Tree, level: Level): NamespaceItem[] {
    switch (type) {
      case "RangeVar":
        return [this.#relation(tree, level)];
      case "RangeSubselect": {
        level.isLateralActive = tree.lateral === true;
        const columns = this.#resolveQuery(unwrap(tree.subquery)[1], level);
        level.isLateralActive = false;
        const alias = tree.alias as Tree | undefined;
        return [derived(alias?.aliasname as string | undefined, renamed(columns, aliasColumns(alias), level.steps))];
      }
      case "RangeFunction": {
        level.isLateralActive = true;
        const call = this.#functions(tree, level);
        level.isLateralActive = false;
        return [call];
      }
      case "RangeTableSample": {
        requireConstants(tree.args);
        requireConstants(tree.repeatable);
        return this.#fromItem(...unwrap(tree.relation), level);
      }
      case "JoinExpr":
        return this.#join(tree, level);
      default:
        throw new Refusal(`${type} is not allowed in FROM`, locationOf(tree));
    }
  }

  #relation(tree: Tree, level: Level): NamespaceItem {
    const cte = level.cte(String(tree.relname));
    if (cte === undefined) return this.table(tree, level.steps);
    const alias = tree.alias as Tree | undefined;
    return derived(String(alias?.aliasname ?? tree.relname), renamed(this.#cteColumns(cte), aliasColumns(alias), level.steps));
  }

  table(tree: Tree, steps: Steps): NamespaceItem {
    const columns = this.#columnsOf(String(tree.relname), tree, steps);
    const alias = tree.alias as Tree | undefined;
    const names = aliasColumns(alias);
    // For a row as a value PostgreSQL uses the table's own column names, whatever the alias calls them.
    const rowType: ValueType = names.length > 0 ? null : { kind: "row", columns: columns.columns, isTable: true };
    return item(String(alias?.aliasname ?? tree.relname), renamed(columns, names, steps), rowType);
  }

  #columnsOf(name: string, tree: Tree, steps: Steps): ColumnList {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const found = Object.hasOwn(this.#tables, name) ? this.#tables[name] : undefined;
    if (found === undefined) throw new Refusal(`table "${name}" is not known here`, locationOf(tree));
    steps.spend(found.length);
    const columns = complete(
      found.map((column): Column => ({ name: column.name, type: column.isArray ? { kind: "array", of: SCALAR } : SCALAR })),
    );
    this.#known.set(name, columns);
    return columns;
  }

  #functions(tree: Tree, level: Level): NamespaceItem {
    const alias = tree.alias as Tree | undefined;
    const functions = unwrapAll(tree.functions).map(([, list]) => list.items as [unknown, unknown]);
    const isAlone = functions.length === 1 && !isSpread(functions[0]![0]);
    const valueName = isAlone ? (alias?.aliasname as string | undefined) : undefined;
    const lists: ColumnList[] = [];
    for (const [call, definitions] of functions) {
      const isDefined = Array.isArray((definitions as { List?: Tree } | undefined)?.List?.items);
      const columns = this.#callColumns(call, valueName, level);
      lists.push(isDefined ? definedColumns((definitions as { List: Tree }).List.items) : columns);
    }
    if (tree.coldeflist !== undefined) lists.splice(0, lists.length, definedColumns(tree.coldeflist));
    const names = aliasColumns(alias);
    const isRecord = tree.coldeflist !== undefined || tree.ordinality === true || lists.length > 1;
    const [only] = lists;
    const isOneValue = !isRecord && only!.isComplete && only!.columns.length === 1;
    if (tree.ordinality === true) lists.push(complete(scalars("ordinality")));
    const columns = renamed(joined(lists, level.steps), names, level.steps);
    const name = String(alias?.aliasname ?? columnName(functions[0]![0]));
    return isOneValue ? item(name, columns, only!.columns[0]!.type) : isRecord ? derived(name, columns) : item(name, columns, null);
  }

  #callColumns(call: unknown, valueName: string | undefined, level: Level): ColumnList {
    const [type, tree] = unwrap(call);
    if (type !== "FuncCall") {
      this.#expressions.expression(call, level);
      return UNKNOWN_COLUMNS;
    }
    const types = this.#expressions.argumentTypes(tree, level);
    const name = strings(tree.funcname).at(-1)!;
    if (isSpread(call))
      return joined(
        types.map((each) => callColumns(name, [each], undefined)),
        level.steps,
      );
    return callColumns(name, types, valueName);
  }

  #join(tree: Tree, level: Level): NamespaceItem[] {
    const before = level.items;
    const left = this.#fromItem(...unwrap(tree.larg), level);
    setLateralOnly(left, true);
    level.steps.spend(before.length + left.length);
    level.items = [...before, ...left];
    const right = this.#fromItem(...unwrap(tree.rarg), level);
    const both = [...left, ...right];
    level.steps.spend(both.length);
    const [leftColumns, rightColumns] = [left.at(-1)!.columns, right.at(-1)!.columns];
    const shared = tree.isNatural === true ? naturalColumns(leftColumns, rightColumns) : strings(tree.usingClause);
    if (tree.quals !== undefined) {
      // ON sees only the two sides and what is outside the query, not the other items of FROM.
      setLateralOnly(both, false);
      level.items = both;
      this.#expressions.visit(tree.quals, level);
    }
    level.items = before;
    const alias = tree.alias as Tree | undefined;
    const usingAlias = tree.join_using_alias as Tree | undefined;
    const columns = renamed(joinColumns(leftColumns, rightColumns, shared, level.steps), aliasColumns(alias), level.steps);
    const result: NamespaceItem[] = alias === undefined ? both : [];
    for (const each of result) each.areColumnsVisible = false;
    if (usingAlias !== undefined) {
      result.push({ ...item(String(usingAlias.aliasname), usingColumns(shared), null), areColumnsVisible: false });
    }
    result.push(derived(alias?.aliasname as string | undefined, columns));
    setLateralOnly(result, false);
    return result;
  }
}

/** A relation made by the statement: its row has the column names given here. */
function derived(name: string | undefined, columns: ColumnList): NamespaceItem {
  return item(name, columns, columns.isComplete ? { kind: "row", columns: columns.columns, isTable: false } : null);
}

/** unnest(a, b) in FROM stands for ROWS FROM (unnest(a), unnest(b)). */
function isSpread(call: unknown): boolean {
  const { args, funcname } = (call as { FuncCall?: Tree }).FuncCall ?? {};
  return ((args ?? []) as unknown[]).length > 1 && strings(funcname).join(".") === "unnest";
}

/** For the arguments of TABLESAMPLE: working out which names they see is not worth it. */
function requireConstants(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const [field, inner] of Object.entries(value)) {
    if (field === "ColumnRef" || field === "SubLink" || field === "A_Indirection") throw new Refusal("TABLESAMPLE takes constants");
    requireConstants(inner);
  }
}
