/**
 * Decides of every `x.f` and `(expression).f` within an expression whether it is a column, and what type an
 * expression has as far as its fields go (resolve.ts says why).
 */
import type { Level, NamespaceItem } from "./namespace.ts";
import { arrayOf, type Column, type ColumnList, callType, columnNamed, kept, SCALAR, typeOfCast, type ValueType } from "./row-types.ts";
import { locationOf, Refusal, strings, type Tree, unwrap, unwrapAll } from "./statement-tree.ts";
import type { Steps } from "./steps.ts";

/** Resolves a query within the query of `level` and returns its columns. */
export type ResolveQuery = (query: Tree, level: Level) => ColumnList;

export class ExpressionResolver {
  readonly #resolveQuery: ResolveQuery;

  constructor(resolveQuery: ResolveQuery) {
    this.#resolveQuery = resolveQuery;
  }

  /** Visits anything that may hold expressions. */
  visit(value: unknown, level: Level): void {
    if (typeof value !== "object" || value === null) return;
    level.steps.spend(1);
    if (Array.isArray(value)) {
      for (const element of value) this.visit(element, level);
      return;
    }
    for (const [field, inner] of Object.entries(value)) {
      if (/^[A-Z]/.test(field)) this.expression({ [field]: inner as unknown }, level);
      else this.visit(inner, level);
    }
  }

  /**
   * @param onSubquery  if the expression is a subquery (or a cast of one), called with the name of its first
   *   column.
   */
  expression(wrapped: unknown, level: Level, onSubquery?: (name: string | undefined) => void): ValueType {
    level.steps.spend(1);
    const [type, tree] = unwrap(wrapped);
    switch (type) {
      case "ColumnRef":
        return this.#columnReference(tree, level);
      case "A_Indirection":
        return this.indirection(tree, level);
      case "SelectStmt":
        this.#resolveQuery(tree, level);
        return null;
      case "SubLink": {
        this.visit(tree.testexpr, level);
        const { columns } = this.#resolveQuery(unwrap(tree.subselect)[1], level);
        onSubquery?.(columns[0]?.name);
        if (tree.subLinkType === "ARRAY_SUBLINK") return arrayOf(columns[0]?.type);
        return tree.subLinkType === "EXPR_SUBLINK" ? kept(columns[0]?.type) : SCALAR;
      }
      case "FuncCall":
        return callType(strings(tree.funcname).at(-1)!, this.argumentTypes(tree, level));
      case "A_ArrayExpr": {
        const types = unwrapAll(tree.elements).map((element) => this.expression({ [element[0]]: element[1] }, level));
        return arrayOf(types.every((each) => each?.kind === "scalar") ? SCALAR : types.length === 1 ? types[0] : null);
      }
      case "RowExpr": {
        const values = tree.args as unknown[] | undefined;
        const types = (values ?? []).map((value) => this.expression(value, level));
        if ((values ?? []).some(isStarExpression)) return null;
        return { kind: "row", columns: types.map((each, index) => ({ name: `f${index + 1}`, type: each })), isTable: false };
      }
      case "TypeCast":
      case "CollateClause":
        this.expression(tree.arg, level, onSubquery);
        this.visit(tree.typeName, level);
        return type === "TypeCast" ? typeOfCast(tree.typeName) : SCALAR;
      case "CaseExpr": {
        const { defresult, ...rest } = tree;
        this.visit(rest, level);
        if (defresult !== undefined) this.expression(defresult, level, onSubquery);
        return null;
      }
      case "A_Const":
      case "SQLValueFunction":
        return SCALAR;
      default:
        this.visit(tree, level);
        return null;
    }
  }

  argumentTypes(call: Tree, level: Level): ValueType[] {
    const types = ((call.args ?? []) as unknown[]).map((argument) => this.expression(argument, level));
    const { args: _args, funcname: _name, ...rest } = call;
    this.visit(rest, level);
    return types;
  }

  #columnReference(tree: Tree, level: Level): ValueType {
    const names = strings(tree.fields);
    if (isStar(tree.fields)) {
      if (names.length === 1) this.requireRelation(names[0]!, tree, level);
      return null;
    }
    const [first, second] = names as [string, string | undefined];
    if (second !== undefined) {
      const relation = this.requireRelation(first, tree, level);
      return requireColumn(second, relation.columns.columns, `${first}.${second}`, tree, level.steps).type;
    }
    const column = level.column(first);
    if (column === "unknown") return null;
    return column !== undefined ? column.type : (level.relation(first)?.rowType ?? null);
  }

  requireRelation(name: string, tree: Tree, level: Level): NamespaceItem {
    const found = level.relation(name);
    if (found === undefined) throw new Refusal(`missing FROM-clause entry for table "${name}"`, locationOf(tree));
    return found;
  }

  /** `(expression)[1].name.*` */
  indirection(tree: Tree, level: Level): ValueType {
    let type = this.#indirectionBase(tree.arg, level);
    for (const [kind, step] of unwrapAll(tree.indirection)) {
      if (kind === "A_Indices") {
        this.visit(step, level);
        type = type?.kind === "array" && step.is_slice !== true ? type.of : null;
      } else if (kind === "String") {
        const name = String(step.sval);
        type = requireColumn(name, type?.kind === "row" ? type.columns : [], `(…).${name}`, unwrap(tree.arg)[1], level.steps).type;
      } else if (kind !== "A_Star") throw new Refusal(`${kind} is not allowed`, locationOf(tree));
    }
    return type;
  }

  /** In `(x).name` the columns of x have the names of its alias. */
  #indirectionBase(arg: unknown, level: Level): ValueType {
    const [kind, reference] = unwrap(arg);
    const type = this.expression(arg, level);
    if (type !== null || kind !== "ColumnRef" || isStar(reference.fields)) return type;
    const [name, more] = strings(reference.fields);
    if (more !== undefined || level.column(name!) !== undefined) return null;
    const relation = level.relation(name!);
    return relation === undefined ? null : { kind: "row", columns: relation.columns.columns, isTable: false };
  }
}

function requireColumn(name: string, columns: readonly Column[], shown: string, tree: Tree, steps: Steps): Column {
  const found = columnNamed(columns, name, steps);
  if (found !== undefined) return found;
  throw new Refusal(
    `column ${shown} does not exist, or cannot be told from a call: functions are written ${name}(…), casts CAST(… AS …), and a function in FROM names its columns: f(…) AS x(a)`,
    locationOf(tree),
  );
}

export const isStar = (fields: unknown): boolean => (fields as Tree[]).some((field) => "A_Star" in field);

function isStarExpression(wrapped: unknown): boolean {
  const [type, tree] = unwrap(wrapped);
  return (type === "ColumnRef" && isStar(tree.fields)) || (type === "A_Indirection" && isStar(tree.indirection));
}
