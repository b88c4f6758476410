/**
 * Decides of every `x.f` and `(expression).f` whether it is a column, and refuses the statement otherwise.
 *
 * Why: if there is no such column, PostgreSQL takes `x.f` for the call `f(x)`, for a cast to a type of that
 * name, or for a system column. Which it is depends on the relations in scope and their columns, so no list
 * of names can tell. This file follows PostgreSQL's own analysis (analyze.c, parse_clause.c,
 * parse_relation.c) as far as names go, and refuses whatever cannot be known.
 *
 * Only for trees that analyse.ts has accepted.
 */
import { columnName } from "./column-names.ts";
import {
  item,
  joinColumns,
  Level,
  MAX_RESULT_COLUMNS,
  type NamespaceItem,
  naturalColumns,
  setLateralOnly,
  usingColumns,
} from "./namespace.ts";
import {
  aliasColumns,
  arrayOf,
  type Column,
  type ColumnList,
  callColumns,
  callType,
  complete,
  definedColumns,
  joined,
  kept,
  renamed,
  SCALAR,
  scalars,
  typeOfCast,
  UNKNOWN_COLUMNS,
  type ValueType,
} from "./row-types.ts";
import { locationOf, Refusal, strings, type Tree, unwrap, unwrapAll } from "./tree.ts";

/** A column of a table. Every type that a column can have is a scalar or an array of scalars. */
export interface TableColumn {
  readonly name: string;
  readonly isArray: boolean;
}

/** The tables that a statement names, as it writes them, with their columns in PostgreSQL's order. */
export type TableColumns = Readonly<Record<string, readonly TableColumn[]>>;

interface Cte {
  readonly tree: Tree;
  readonly level: Level<Cte>;
  /**
   * undefined: not begun. null: its first part is not finished. While the query is being processed: the
   * columns of its first part, for a reference to itself.
   */
  columns: ColumnList | null | undefined;
}

/** @throws {Refusal} for a name that is not, or may not be, a column. */
export function resolveNames(statements: readonly unknown[], tables: TableColumns): void {
  const [type, tree] = unwrap((statements[0] as Tree).stmt);
  new Resolver(tables).statement(type, tree, null);
}

class Resolver {
  readonly #tables: TableColumns;

  constructor(tables: TableColumns) {
    this.#tables = tables;
  }

  /**
   * Returns the columns of the statement's result.
   * @param whenLeftIsDone  called with the columns of the first part of UNION and the like.
   */
  statement(type: string, tree: Tree, parent: Level<Cte> | null, whenLeftIsDone?: (columns: ColumnList) => void): ColumnList {
    const level = new Level<Cte>(parent);
    this.#with(tree.withClause as Tree | undefined, level);
    switch (type) {
      case "SelectStmt":
        return this.#select(tree, level, whenLeftIsDone);
      case "InsertStmt":
        return this.#insert(tree, level);
      case "UpdateStmt":
      case "DeleteStmt":
        return this.#change(tree, level);
      default:
        throw new Refusal(`${type} is not allowed`);
    }
  }

  #with(clause: Tree | undefined, level: Level<Cte>): void {
    if (clause === undefined) return;
    const ctes = unwrapAll(clause.ctes).map(([, tree]): Cte => ({ tree, level, columns: undefined }));
    if (clause.recursive === true) for (const cte of ctes) level.ctes.set(String(cte.tree.ctename), cte);
    for (const cte of ctes) {
      this.#cteColumns(cte);
      level.ctes.set(String(cte.tree.ctename), cte);
    }
  }

  #cteColumns(cte: Cte): ColumnList {
    if (cte.columns === null) {
      throw new Refusal(`recursive reference to query "${String(cte.tree.ctename)}" must not appear here`, locationOf(cte.tree));
    }
    if (cte.columns !== undefined) return cte.columns;
    cte.columns = null;
    const { tree, level } = cte;
    const names = strings(tree.aliascolnames);
    const [type, query] = unwrap(tree.ctequery);
    const columns = this.statement(type, query, level, (left) => {
      cte.columns = renamed(left, names);
    });
    const added: string[] = [];
    const search = tree.search_clause as Tree | undefined;
    if (search !== undefined) added.push(String(search.search_seq_column));
    const cycle = tree.cycle_clause as Tree | undefined;
    if (cycle !== undefined) {
      this.#visit(cycle.cycle_mark_value, level);
      this.#visit(cycle.cycle_mark_default, level);
      added.push(String(cycle.cycle_mark_column), String(cycle.cycle_path_column));
    }
    cte.columns = joined([renamed(columns, names), complete(added.map((name) => ({ name, type: null })))]);
    return cte.columns;
  }

  #select(tree: Tree, level: Level<Cte>, whenLeftIsDone?: (columns: ColumnList) => void): ColumnList {
    if (tree.larg !== undefined) {
      const left = this.statement("SelectStmt", tree.larg as Tree, level);
      const columns = { ...left, columns: left.columns.map(({ name }) => ({ name, type: null })) };
      whenLeftIsDone?.(columns);
      this.statement("SelectStmt", tree.rarg as Tree, level);
      this.#visit(tree.limitOffset, level);
      this.#visit(tree.limitCount, level);
      level.items = [item(undefined, columns, null)];
      this.#visit(tree.sortClause, level);
      return columns;
    }
    if (tree.valuesLists !== undefined) {
      this.#visit(tree.valuesLists, level);
      const first = ((tree.valuesLists as unknown[])[0] as { List: Tree }).List.items as unknown[];
      const columns = complete(first.map((_value, index) => ({ name: `column${index + 1}`, type: null })));
      level.items = [item(undefined, columns, null)];
      for (const field of ["sortClause", "limitOffset", "limitCount"]) this.#visit(tree[field], level);
      return columns;
    }
    this.#from(tree.fromClause, level);
    const columns = this.#targets(tree.targetList, level);
    for (const [field, value] of Object.entries(tree)) {
      if (field !== "withClause" && field !== "fromClause" && field !== "targetList") this.#visit(value, level);
    }
    return columns;
  }

  #insert(tree: Tree, level: Level<Cte>): ColumnList {
    if (tree.selectStmt !== undefined) this.statement("SelectStmt", unwrap(tree.selectStmt)[1], level);
    const target = this.#table(tree.relation as Tree);
    level.items = [target];
    this.#visit(tree.cols, level);
    const conflict = tree.onConflictClause as Tree | undefined;
    if (conflict !== undefined) {
      level.items = [{ ...target, isRelationVisible: false }];
      this.#visit(conflict.infer, level);
      level.items = [target, { ...this.#table(tree.relation as Tree), name: "excluded", areColumnsVisible: false }];
      this.#visit(conflict.targetList, level);
      this.#visit(conflict.whereClause, level);
      level.items = [target];
    }
    return this.#returning(tree, level, target);
  }

  /**
   * UPDATE and DELETE. Items of FROM and USING do not see the target, but it hides an outer relation of the
   * same name.
   */
  #change(tree: Tree, level: Level<Cte>): ColumnList {
    const target = this.#table(tree.relation as Tree);
    target.isLateralOnly = true;
    level.items = [target];
    this.#from(tree.fromClause ?? tree.usingClause, level);
    this.#visit(tree.targetList, level);
    this.#visit(tree.whereClause, level);
    return this.#returning(tree, level, target);
  }

  #returning(tree: Tree, level: Level<Cte>, target: NamespaceItem): ColumnList {
    const clause = tree.returningClause as Tree | undefined;
    if (clause === undefined) return complete([]);
    const options = unwrapAll(clause.options).map(([, option]) => option);
    for (const [option, byDefault] of [
      ["RETURNING_OPTION_OLD", "old"],
      ["RETURNING_OPTION_NEW", "new"],
    ]) {
      const given = options.find((each) => each.option === option);
      if (given === undefined && level.relation(byDefault!) !== undefined) continue;
      const name = given === undefined ? byDefault! : String(given.value);
      level.items.push({ ...target, name, isRelationVisible: true, areColumnsVisible: false });
    }
    return this.#targets(clause.exprs, level);
  }

  #from(clause: unknown, level: Level<Cte>): void {
    for (const [type, tree] of unwrapAll(clause)) {
      const items = this.#fromItem(type, tree, level);
      setLateralOnly(items, true);
      level.items = [...level.items, ...items];
    }
    setLateralOnly(level.items, false);
  }

  /** The last item returned is the one with the columns of the whole. */
  #fromItem(type: string, tree: Tree, level: Level<Cte>): NamespaceItem[] {
    switch (type) {
      case "RangeVar":
        return [this.#relation(tree, level)];
      case "RangeSubselect": {
        level.isLateralActive = tree.lateral === true;
        const columns = this.statement("SelectStmt", unwrap(tree.subquery)[1], level);
        level.isLateralActive = false;
        const alias = tree.alias as Tree | undefined;
        return [derived(alias?.aliasname as string | undefined, renamed(columns, aliasColumns(alias)))];
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

  #relation(tree: Tree, level: Level<Cte>): NamespaceItem {
    const cte = level.cte(String(tree.relname));
    if (cte === undefined) return this.#table(tree);
    const alias = tree.alias as Tree | undefined;
    return derived(String(alias?.aliasname ?? tree.relname), renamed(this.#cteColumns(cte), aliasColumns(alias)));
  }

  #table(tree: Tree): NamespaceItem {
    const name = String(tree.relname);
    const found = Object.hasOwn(this.#tables, name) ? this.#tables[name] : undefined;
    if (found === undefined) throw new Refusal(`table "${name}" is not known here`, locationOf(tree));
    const columns = complete(
      found.map((column): Column => ({ name: column.name, type: column.isArray ? { kind: "array", of: SCALAR } : SCALAR })),
    );
    const alias = tree.alias as Tree | undefined;
    const names = aliasColumns(alias);
    // For a row as a value PostgreSQL uses the table's own column names, whatever the alias calls them.
    const rowType: ValueType = names.length > 0 ? null : { kind: "row", columns: columns.columns, isTable: true };
    return item(String(alias?.aliasname ?? name), renamed(columns, names), rowType);
  }

  #functions(tree: Tree, level: Level<Cte>): NamespaceItem {
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
    const columns = renamed(joined(lists), names);
    const name = String(alias?.aliasname ?? columnName(functions[0]![0]));
    return isOneValue ? item(name, columns, only!.columns[0]!.type) : isRecord ? derived(name, columns) : item(name, columns, null);
  }

  #callColumns(call: unknown, valueName: string | undefined, level: Level<Cte>): ColumnList {
    const [type, tree] = unwrap(call);
    if (type !== "FuncCall") {
      this.#expression(call, level);
      return UNKNOWN_COLUMNS;
    }
    const types = this.#arguments(tree, level);
    const name = strings(tree.funcname).at(-1)!;
    if (isSpread(call)) return joined(types.map((each) => callColumns(name, [each], undefined)));
    return callColumns(name, types, valueName);
  }

  #join(tree: Tree, level: Level<Cte>): NamespaceItem[] {
    const before = level.items;
    const left = this.#fromItem(...unwrap(tree.larg), level);
    setLateralOnly(left, true);
    level.items = [...before, ...left];
    const right = this.#fromItem(...unwrap(tree.rarg), level);
    const both = [...left, ...right];
    const [leftColumns, rightColumns] = [left.at(-1)!.columns, right.at(-1)!.columns];
    const shared = tree.isNatural === true ? naturalColumns(leftColumns, rightColumns) : strings(tree.usingClause);
    if (tree.quals !== undefined) {
      // ON sees only the two sides and what is outside the query, not the other items of FROM.
      setLateralOnly(both, false);
      level.items = both;
      this.#visit(tree.quals, level);
    }
    level.items = before;
    const alias = tree.alias as Tree | undefined;
    const usingAlias = tree.join_using_alias as Tree | undefined;
    const columns = renamed(joinColumns(leftColumns, rightColumns, shared), aliasColumns(alias));
    const result: NamespaceItem[] = alias === undefined ? both : [];
    for (const each of result) each.areColumnsVisible = false;
    if (usingAlias !== undefined) {
      result.push({ ...item(String(usingAlias.aliasname), usingColumns(shared), null), areColumnsVisible: false });
    }
    result.push(derived(alias?.aliasname as string | undefined, columns));
    setLateralOnly(result, false);
    return result;
  }

  /** Visits the expressions of a target list and returns its columns. */
  #targets(list: unknown, level: Level<Cte>): ColumnList {
    const lists = unwrapAll(list).map(([, target]) => this.#target(target, level));
    const columns = joined(lists);
    if (columns.columns.length > MAX_RESULT_COLUMNS) throw new Refusal(`target lists can have at most ${MAX_RESULT_COLUMNS} entries`);
    return columns;
  }

  #target(target: Tree, level: Level<Cte>): ColumnList {
    const [type, tree] = unwrap(target.val);
    if (type === "ColumnRef" && isStar(tree.fields)) {
      const [relation] = strings(tree.fields);
      return relation === undefined ? joined(level.visibleColumns()) : this.#requireRelation(relation, tree, level).columns;
    }
    if (type === "A_Indirection" && isStar(tree.indirection)) {
      const row = this.#indirection(tree, level);
      return row?.kind === "row" ? complete(row.columns) : UNKNOWN_COLUMNS;
    }
    let subqueryName: string | undefined;
    const valueType = this.#expression(target.val, level, (name) => {
      subqueryName = name;
    });
    return complete([{ name: (target.name as string | undefined) ?? columnName(target.val, subqueryName), type: valueType }]);
  }

  /** Visits anything that may hold expressions. */
  #visit(value: unknown, level: Level<Cte>): void {
    if (typeof value !== "object" || value === null) return;
    if (Array.isArray(value)) {
      for (const element of value) this.#visit(element, level);
      return;
    }
    for (const [field, inner] of Object.entries(value)) {
      if (/^[A-Z]/.test(field)) this.#expression({ [field]: inner as unknown }, level);
      else this.#visit(inner, level);
    }
  }

  /**
   * @param onSubquery  if the expression is a subquery (or a cast of one), called with the name of its first
   *   column.
   */
  #expression(wrapped: unknown, level: Level<Cte>, onSubquery?: (name: string | undefined) => void): ValueType {
    const [type, tree] = unwrap(wrapped);
    switch (type) {
      case "ColumnRef":
        return this.#columnReference(tree, level);
      case "A_Indirection":
        return this.#indirection(tree, level);
      case "SelectStmt":
        this.statement(type, tree, level);
        return null;
      case "SubLink": {
        this.#visit(tree.testexpr, level);
        const { columns } = this.statement("SelectStmt", unwrap(tree.subselect)[1], level);
        onSubquery?.(columns[0]?.name);
        if (tree.subLinkType === "ARRAY_SUBLINK") return arrayOf(columns[0]?.type);
        return tree.subLinkType === "EXPR_SUBLINK" ? kept(columns[0]?.type) : SCALAR;
      }
      case "FuncCall":
        return callType(strings(tree.funcname).at(-1)!, this.#arguments(tree, level));
      case "A_ArrayExpr": {
        const types = unwrapAll(tree.elements).map((element) => this.#expression({ [element[0]]: element[1] }, level));
        return arrayOf(types.every((each) => each?.kind === "scalar") ? SCALAR : types.length === 1 ? types[0] : null);
      }
      case "RowExpr": {
        const values = tree.args as unknown[] | undefined;
        const types = (values ?? []).map((value) => this.#expression(value, level));
        if ((values ?? []).some(isStarExpression)) return null;
        return { kind: "row", columns: types.map((each, index) => ({ name: `f${index + 1}`, type: each })), isTable: false };
      }
      case "TypeCast":
      case "CollateClause":
        this.#expression(tree.arg, level, onSubquery);
        this.#visit(tree.typeName, level);
        return type === "TypeCast" ? typeOfCast(tree.typeName) : SCALAR;
      case "CaseExpr": {
        const { defresult, ...rest } = tree;
        this.#visit(rest, level);
        if (defresult !== undefined) this.#expression(defresult, level, onSubquery);
        return null;
      }
      case "A_Const":
      case "SQLValueFunction":
        return SCALAR;
      default:
        this.#visit(tree, level);
        return null;
    }
  }

  #arguments(call: Tree, level: Level<Cte>): ValueType[] {
    const types = ((call.args ?? []) as unknown[]).map((argument) => this.#expression(argument, level));
    const { args: _args, funcname: _name, ...rest } = call;
    this.#visit(rest, level);
    return types;
  }

  #columnReference(tree: Tree, level: Level<Cte>): ValueType {
    const names = strings(tree.fields);
    if (isStar(tree.fields)) {
      if (names.length === 1) this.#requireRelation(names[0]!, tree, level);
      return null;
    }
    const [first, second] = names as [string, string | undefined];
    if (second !== undefined) {
      const relation = this.#requireRelation(first, tree, level);
      return requireColumn(second, relation.columns.columns, `${first}.${second}`, tree).type;
    }
    const column = level.column(first);
    if (column === "unknown") return null;
    return column !== undefined ? column.type : (level.relation(first)?.rowType ?? null);
  }

  #requireRelation(name: string, tree: Tree, level: Level<Cte>): NamespaceItem {
    const found = level.relation(name);
    if (found === undefined) throw new Refusal(`missing FROM-clause entry for table "${name}"`, locationOf(tree));
    return found;
  }

  /** `(expression)[1].name.*` */
  #indirection(tree: Tree, level: Level<Cte>): ValueType {
    let type = this.#indirectionBase(tree.arg, level);
    for (const [kind, step] of unwrapAll(tree.indirection)) {
      if (kind === "A_Indices") {
        this.#visit(step, level);
        type = type?.kind === "array" && step.is_slice !== true ? type.of : null;
      } else if (kind === "String") {
        const name = String(step.sval);
        type = requireColumn(name, type?.kind === "row" ? type.columns : [], `(…).${name}`, unwrap(tree.arg)[1]).type;
      } else if (kind !== "A_Star") throw new Refusal(`${kind} is not allowed`, locationOf(tree));
    }
    return type;
  }

  /** In `(x).name` the columns of x have the names of its alias. */
  #indirectionBase(arg: unknown, level: Level<Cte>): ValueType {
    const [kind, reference] = unwrap(arg);
    const type = this.#expression(arg, level);
    if (type !== null || kind !== "ColumnRef" || isStar(reference.fields)) return type;
    const [name, more] = strings(reference.fields);
    if (more !== undefined || level.column(name!) !== undefined) return null;
    const relation = level.relation(name!);
    return relation === undefined ? null : { kind: "row", columns: relation.columns.columns, isTable: false };
  }
}

/** A relation made by the statement: its row has the column names given here. */
function derived(name: string | undefined, columns: ColumnList): NamespaceItem {
  return item(name, columns, columns.isComplete ? { kind: "row", columns: columns.columns, isTable: false } : null);
}

function requireColumn(name: string, columns: readonly Column[], shown: string, tree: Tree): Column {
  const found = columns.find((column) => column.name === name);
  if (found !== undefined) return found;
  throw new Refusal(
    `column ${shown} does not exist, or cannot be told from a call: functions are written ${name}(…), casts CAST(… AS …), and a function in FROM names its columns: f(…) AS x(a)`,
    locationOf(tree),
  );
}

const isStar = (fields: unknown): boolean => (fields as Tree[]).some((field) => "A_Star" in field);

function isStarExpression(wrapped: unknown): boolean {
  const [type, tree] = unwrap(wrapped);
  return (type === "ColumnRef" && isStar(tree.fields)) || (type === "A_Indirection" && isStar(tree.indirection));
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
