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
import { type Cte, item, Level, MAX_RESULT_COLUMNS, type NamespaceItem } from "./namespace.ts";
import { ExpressionResolver, isStar, type ResolveQuery } from "./resolve-expressions.ts";
import { FromResolver, type TableColumns } from "./resolve-from.ts";
import { type ColumnList, complete, joined, renamed, UNKNOWN_COLUMNS } from "./row-types.ts";
import { locationOf, Refusal, strings, type Tree, unwrap, unwrapAll } from "./statement-tree.ts";
import { Steps } from "./steps.ts";

/**
 * Returns the steps that it took (steps.ts).
 * @throws {Refusal} for a name that is not, or may not be, a column, and when it takes too many steps.
 */
export function resolveNames(statements: readonly unknown[], tables: TableColumns): number {
  const [type, tree] = unwrap((statements[0] as Tree).stmt);
  const steps = new Steps();
  new StatementResolver(tables, steps).statement(type, tree, null);
  return steps.taken;
}

class StatementResolver {
  readonly #expressions: ExpressionResolver;
  readonly #from: FromResolver;
  readonly #steps: Steps;

  constructor(tables: TableColumns, steps: Steps) {
    this.#steps = steps;
    const resolveQuery: ResolveQuery = (query, level) => this.statement("SelectStmt", query, level);
    this.#expressions = new ExpressionResolver(resolveQuery);
    this.#from = new FromResolver(tables, this.#expressions, resolveQuery, (cte) => this.#cteColumns(cte));
  }

  /**
   * Returns the columns of the statement's result.
   * @param whenLeftIsDone  called with the columns of the first part of UNION and the like.
   */
  statement(type: string, tree: Tree, parent: Level | null, whenLeftIsDone?: (columns: ColumnList) => void): ColumnList {
    const level = new Level(parent, this.#steps);
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

  #with(clause: Tree | undefined, level: Level): void {
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
      cte.columns = renamed(left, names, this.#steps);
    });
    const added: string[] = [];
    const search = tree.search_clause as Tree | undefined;
    if (search !== undefined) added.push(String(search.search_seq_column));
    const cycle = tree.cycle_clause as Tree | undefined;
    if (cycle !== undefined) {
      this.#expressions.visit(cycle.cycle_mark_value, level);
      this.#expressions.visit(cycle.cycle_mark_default, level);
      added.push(String(cycle.cycle_mark_column), String(cycle.cycle_path_column));
    }
    cte.columns = joined([renamed(columns, names, this.#steps), complete(added.map((name) => ({ name, type: null })))], this.#steps);
    return cte.columns;
  }

  #select(tree: Tree, level: Level, whenLeftIsDone?: (columns: ColumnList) => void): ColumnList {
    if (tree.larg !== undefined) {
      // Nothing but a WITH is in scope between the parts and what is around them: thousands of parts nest one level.
      const around = level.ctes.size > 0 ? level : level.parent;
      const left = this.statement("SelectStmt", tree.larg as Tree, around);
      this.#steps.spend(left.columns.length);
      const columns = { ...left, columns: left.columns.map(({ name }) => ({ name, type: null })) };
      whenLeftIsDone?.(columns);
      this.statement("SelectStmt", tree.rarg as Tree, around);
      this.#expressions.visit(tree.limitOffset, level);
      this.#expressions.visit(tree.limitCount, level);
      level.items = [item(undefined, columns, null)];
      this.#expressions.visit(tree.sortClause, level);
      return columns;
    }
    if (tree.valuesLists !== undefined) {
      this.#expressions.visit(tree.valuesLists, level);
      const first = ((tree.valuesLists as unknown[])[0] as { List: Tree }).List.items as unknown[];
      const columns = complete(first.map((_value, index) => ({ name: `column${index + 1}`, type: null })));
      level.items = [item(undefined, columns, null)];
      for (const field of ["sortClause", "limitOffset", "limitCount"]) this.#expressions.visit(tree[field], level);
      return columns;
    }
    this.#from.resolveClause(tree.fromClause, level);
    const columns = this.#targets(tree.targetList, level);
    for (const [field, value] of Object.entries(tree)) {
      if (field !== "withClause" && field !== "fromClause" && field !== "targetList") this.#expressions.visit(value, level);
    }
    return columns;
  }

  #insert(tree: Tree, level: Level): ColumnList {
    if (tree.selectStmt !== undefined) this.statement("SelectStmt", unwrap(tree.selectStmt)[1], level);
    const target = this.#from.table(tree.relation as Tree, this.#steps);
    level.items = [target];
    this.#expressions.visit(tree.cols, level);
    const conflict = tree.onConflictClause as Tree | undefined;
    if (conflict !== undefined) {
      level.items = [{ ...target, isRelationVisible: false }];
      this.#expressions.visit(conflict.infer, level);
      level.items = [target, { ...this.#from.table(tree.relation as Tree, this.#steps), name: "excluded", areColumnsVisible: false }];
      this.#expressions.visit(conflict.targetList, level);
      this.#expressions.visit(conflict.whereClause, level);
      level.items = [target];
    }
    return this.#returning(tree, level, target);
  }

  /**
   * UPDATE and DELETE. Items of FROM and USING do not see the target, but it hides an outer relation of the
   * same name.
   */
  #change(tree: Tree, level: Level): ColumnList {
    const target = this.#from.table(tree.relation as Tree, this.#steps);
    target.isLateralOnly = true;
    level.items = [target];
    this.#from.resolveClause(tree.fromClause ?? tree.usingClause, level);
    this.#expressions.visit(tree.targetList, level);
    this.#expressions.visit(tree.whereClause, level);
    return this.#returning(tree, level, target);
  }

  #returning(tree: Tree, level: Level, target: NamespaceItem): ColumnList {
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

  /** Visits the expressions of a target list and returns its columns. */
  #targets(list: unknown, level: Level): ColumnList {
    const lists = unwrapAll(list).map(([, target]) => this.#target(target, level));
    const columns = joined(lists, this.#steps);
    if (columns.columns.length > MAX_RESULT_COLUMNS) throw new Refusal(`target lists can have at most ${MAX_RESULT_COLUMNS} entries`);
    return columns;
  }

  #target(target: Tree, level: Level): ColumnList {
    const [type, tree] = unwrap(target.val);
    if (type === "ColumnRef" && isStar(tree.fields)) {
      const [relation] = strings(tree.fields);
      return relation === undefined
        ? joined(level.visibleColumns(), this.#steps)
        : this.#expressions.requireRelation(relation, tree, level).columns;
    }
    if (type === "A_Indirection" && isStar(tree.indirection)) {
      const row = this.#expressions.indirection(tree, level);
      return row?.kind === "row" ? complete(row.columns) : UNKNOWN_COLUMNS;
    }
    let subqueryName: string | undefined;
    const valueType = this.#expressions.expression(target.val, level, (name) => {
      subqueryName = name;
    });
    return complete([{ name: (target.name as string | undefined) ?? columnName(target.val, subqueryName), type: valueType }]);
  }
}
