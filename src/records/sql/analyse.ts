/**
 * Walks a parse tree and returns what the statement is, or why it is refused. It knows the grammar but no
 * branch: vet.ts checks which tables exist. Runs in the parser's thread.
 *
 * Invariant: a table name that the walk does not report is a CTE in scope at that very place. Names are
 * looked up as PostgreSQL does: in the WITH of the statement, then in those around it. In a WITH without
 * RECURSIVE a query sees only the queries before it. The target of INSERT, UPDATE and DELETE is never a CTE.
 */
import {
  ALLOWED_COLLATIONS,
  ALLOWED_FUNCTIONS,
  ALLOWED_OPERATORS,
  ALLOWED_TYPES,
  ALLOWED_VALUE_FUNCTIONS,
  REFUSED_COLUMNS,
} from "./allowed-names.ts";
import { fieldRule, isKnownNode, locationOf, REFUSALS, Refusal, strings, type Tree, unwrap } from "./grammar.ts";

/**
 * `pg` reads the number of parameters that PostgreSQL describes as a signed 16-bit integer. Beyond it pg's
 * parser throws where nobody can catch it.
 */
export const MAX_PARAMS = 32_767;

/** Names, values, operators, clauses: the nodes of the parse tree. 32,767 parameters with a cast each are 164,000. */
export const MAX_STATEMENT_PARTS = 200_000;

/**
 * PostgreSQL looks a column up in every item of the FROM clauses around it, and repeats for `*` the columns of each. So the time
 * that it takes grows with the product, and it looks at no interruption meanwhile. A hundred tables in one FROM, whose columns are
 * named ten thousand times, are a million look-ups.
 */
const MAX_LOOKUPS = 2_000_000;
/** What `*` counts for each item: the columns of a wide table. */
const STAR_LOOKUPS = 100;

/** EXPLAIN of any of the others. */
export type StatementKind = "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "EXPLAIN";

export interface StatementAnalysis {
  readonly kind: StatementKind;
  /** True when it, or a statement in its WITH, is not a SELECT. EXPLAIN plans a statement and does not run it. */
  readonly changes: boolean;
  /** Tables that are read or written, each once. */
  readonly tables: readonly string[];
  /** Columns that are written, with their table. */
  readonly writes: readonly { readonly table: string; readonly column: string; readonly by: "INSERT" | "UPDATE" }[];
  /** Each `f` of an `x.f` or `(expression).f`, once: where there is no such column it is a call of f, or a cast. */
  readonly dottedNames: readonly string[];
  /** The numbers of `$1`, `$2` …, ascending, each once. */
  readonly parameters: readonly number[];
  /**
   * The number of a parameter where PostgreSQL takes none, directly after a name (`ORDER BY name $1`): the
   * parser accepts more than PostgreSQL does.
   */
  readonly misplacedParameter: number | undefined;
}

const STATEMENTS: ReadonlyMap<string, StatementKind> = new Map([
  ["SelectStmt", "SELECT"],
  ["InsertStmt", "INSERT"],
  ["UpdateStmt", "UPDATE"],
  ["DeleteStmt", "DELETE"],
]);

const EXPLAIN_FORMATS: ReadonlySet<unknown> = new Set(["text", "json", "yaml", "xml"]);

/** @param statements  `stmts` of libpg-query's result. */
export function analyse(statements: readonly unknown[]): StatementAnalysis {
  if (statements.length === 0) throw new Refusal("the statement is empty");
  if (statements.length > 1) throw new Refusal(`one statement is allowed, got ${statements.length}`);
  const [outerType, outer] = unwrap((statements[0] as Tree).stmt);
  const isExplained = outerType === "ExplainStmt";
  const [type, tree] = isExplained ? explainedBy(outer) : [outerType, outer];
  const kind = STATEMENTS.get(type);
  if (kind === undefined) {
    const allowed = isExplained ? "can be explained" : "are allowed, and EXPLAIN of these";
    throw new Refusal(REFUSALS.get(type) ?? `only SELECT, INSERT, UPDATE and DELETE ${allowed}, got ${type.replace(/Stmt$/, "")}`);
  }
  const walk = new Walk();
  walk.statement(type, tree);
  return { kind, ...walk.result(), ...(isExplained ? { kind: "EXPLAIN", changes: false } : {}) };
}

/** Only the form of the answer may be chosen: ANALYZE runs the statement, VERBOSE and SETTINGS say what is outside of the branch. */
function explainedBy({ query, options = [], ...others }: Tree): [string, Tree] {
  if (Object.keys(others).length > 0) throw new Refusal("the statement has a form that is not known");
  for (const option of options as unknown[]) {
    const [, { defname, arg, location }] = unwrap(option);
    const [format] = defname === "format" && arg !== undefined ? strings([arg]) : [];
    if (!EXPLAIN_FORMATS.has(format))
      throw new Refusal(
        `EXPLAIN takes FORMAT alone (${[...EXPLAIN_FORMATS].join(", ")}), got ${String(defname).toUpperCase()}`,
        locationOf({ location }),
      );
  }
  return unwrap(query);
}

class Walk {
  /** How many queries of a WITH have this name, of those that can be seen where the walk is. */
  readonly #ctes = new Map<string, number>();
  #parts = 0;
  readonly #tables = new Set<string>();
  readonly #writes: { table: string; column: string; by: "INSERT" | "UPDATE" }[] = [];
  readonly #parameters = new Set<number>();
  #changes = false;
  readonly #dottedNames = new Set<string>();
  /** FROM items of the queries that the walk is in. */
  #fromItems = 0;
  #lookups = 0;
  #misplacedParameter: number | undefined;

  result(): Omit<StatementAnalysis, "kind"> {
    return {
      changes: this.#changes,
      tables: [...this.#tables],
      writes: this.#writes,
      dottedNames: [...this.#dottedNames],
      parameters: [...this.#parameters].sort((a, b) => a - b),
      misplacedParameter: this.#misplacedParameter,
    };
  }

  /** The WITH of a statement opens a scope of its own. */
  statement(type: string, tree: Tree): void {
    if (type !== "SelectStmt") this.#changes = true;
    const items = countFromItems(tree.fromClause ?? tree.usingClause) + (type === "SelectStmt" ? 0 : 1);
    this.#fromItems += items;
    const ctes = tree.withClause === undefined ? [] : this.#with(tree.withClause as Tree);
    for (const [field, value] of Object.entries(tree)) {
      if (field === "withClause") continue;
      if (field === "relation" && type !== "SelectStmt") this.#target(type, value as Tree);
      else this.#field(type, field, value);
    }
    for (const name of ctes) this.#see(name, -1);
    this.#fromItems -= items;
    if (type === "InsertStmt") this.#insertTargets(tree);
    if (type === "UpdateStmt") this.#updateTargets(tree.targetList, tree);
    const conflict = tree.onConflictClause as Tree | undefined;
    if (conflict?.targetList !== undefined) this.#updateTargets(conflict.targetList, tree);
  }

  /** Returns the names that it brings into scope, which the caller takes out again. */
  #with(clause: Tree): string[] {
    this.#checkFields("WithClause", clause);
    const list = (clause.ctes as unknown[]).map((cte) => unwrap(cte)[1]);
    const names = list.map((cte) => String(cte.ctename));
    if (clause.recursive === true) for (const name of names) this.#see(name, 1);
    for (const [index, cte] of list.entries()) {
      this.#count();
      this.#checkFields("CommonTableExpr", cte);
      for (const [field, value] of Object.entries(cte)) this.#field("CommonTableExpr", field, value);
      if (clause.recursive !== true) this.#see(names[index]!, 1);
    }
    return names;
  }

  #see(name: string, more: number): void {
    this.#ctes.set(name, (this.#ctes.get(name) ?? 0) + more);
  }

  #target(type: string, relation: Tree): void {
    const name = String(relation.relname);
    const seen = this.#ctes.get(name) ?? 0;
    this.#ctes.delete(name);
    this.#field(type, "relation", relation);
    this.#ctes.set(name, seen);
  }

  #count(): void {
    if (++this.#parts > MAX_STATEMENT_PARTS)
      throw new Refusal(
        `the statement has more than ${MAX_STATEMENT_PARTS} parts (names, values, operators, clauses). Send values in params, or split it.`,
      );
  }

  #lookUp(columns: number): void {
    this.#lookups += columns * this.#fromItems;
    if (this.#lookups > MAX_LOOKUPS)
      throw new Refusal(
        "the statement names columns of too many tables and subqueries at once: split it, or list the columns instead of *",
      );
  }

  #insertTargets(tree: Tree): void {
    const table = String((tree.relation as Tree).relname);
    const columns = (tree.cols ?? []) as unknown[];
    if (columns.length === 0 && tree.selectStmt !== undefined) {
      throw new Refusal(
        `INSERT must list its columns: INSERT INTO "${table}" ("id", …) …`,
        (tree.relation as { location?: number }).location,
      );
    }
    for (const column of columns) this.#writes.push({ table, column: String(unwrap(column)[1].name), by: "INSERT" });
  }

  #updateTargets(targets: unknown, tree: Tree): void {
    const table = String((tree.relation as Tree).relname);
    for (const target of targets as unknown[]) this.#writes.push({ table, column: String(unwrap(target)[1].name), by: "UPDATE" });
  }

  #checkFields(type: string, tree: Tree): void {
    for (const field of Object.keys(tree)) {
      if (fieldRule(type, field) === undefined) {
        throw new Refusal(REFUSALS.get(`${type}.${field}`) ?? `${type}.${field} is not allowed`, locationOf(tree));
      }
    }
  }

  #field(type: string, field: string, value: unknown): void {
    const rule = fieldRule(type, field);
    if (rule === undefined) throw new Refusal(REFUSALS.get(`${type}.${field}`) ?? `${type}.${field} is not allowed`, locationOf(value));
    if (rule === "value") return;
    if (rule === "nodes") this.#nodes(value);
    else this.#node(rule.slice(1), value as Tree);
  }

  #nodes(value: unknown): void {
    if (Array.isArray(value)) {
      for (const element of value) this.#nodes(element);
      return;
    }
    // An empty object is the grammar's null (a plain DISTINCT, an omitted bound).
    if (Object.keys(value as Tree).length === 0) return;
    const [type, tree] = unwrap(value);
    this.#node(type, tree);
  }

  #node(type: string, tree: Tree): void {
    this.#count();
    if (!isKnownNode(type)) throw new Refusal(REFUSALS.get(type) ?? `${type} is not allowed`, locationOf(tree));
    if (type === "TypeCast" && tree.location === -1) {
      const [argument, parameter] = unwrap(tree.arg);
      if (argument === "ParamRef") {
        this.#misplacedParameter ??= Number(parameter.number ?? 0);
        return;
      }
    }
    this.#check(type, tree);
    if (STATEMENTS.has(type)) {
      this.statement(type, tree);
      return;
    }
    for (const [field, value] of Object.entries(tree)) this.#field(type, field, value);
  }

  #check(type: string, tree: Tree): void {
    switch (type) {
      case "RangeVar": {
        const name = String(tree.relname);
        if (tree.schemaname === undefined && tree.catalogname === undefined && (this.#ctes.get(name) ?? 0) === 0) this.#tables.add(name);
        return;
      }
      case "ParamRef": {
        const number = Number(tree.number ?? 0);
        if (number < 1 || number > MAX_PARAMS) throw new Refusal(`parameters are $1 to $${MAX_PARAMS}, got $${number}`, locationOf(tree));
        this.#parameters.add(number);
        return;
      }
      case "FuncCall":
        checkName(tree.funcname, ALLOWED_FUNCTIONS, "function", tree);
        return;
      case "TypeName":
        checkName(tree.names, ALLOWED_TYPES, "type", tree);
        return;
      case "CollateClause":
        checkName(tree.collname, ALLOWED_COLLATIONS, "collation", tree);
        return;
      case "A_Expr":
        checkName(tree.name, ALLOWED_OPERATORS, "operator", tree);
        return;
      case "SubLink":
        if (tree.operName !== undefined) checkName(tree.operName, ALLOWED_OPERATORS, "operator", tree);
        return;
      case "SortBy":
        if (tree.useOp !== undefined) checkName(tree.useOp, ALLOWED_OPERATORS, "operator", tree);
        return;
      case "SQLValueFunction":
        if (!ALLOWED_VALUE_FUNCTIONS.has(String(tree.op))) {
          throw new Refusal(`${String(tree.op).replace("SVFOP_", "")} is not allowed`, locationOf(tree));
        }
        return;
      case "ColumnRef": {
        const names = strings(tree.fields);
        const parts = (tree.fields as unknown[]).length;
        if (parts > 2) throw new Refusal(`write "column" or "table"."column", got "${names.join('"."')}"`, locationOf(tree));
        const isStar = names.length < parts;
        this.#lookUp(isStar ? STAR_LOOKUPS : 1);
        const last = names.at(-1) ?? "";
        if (REFUSED_COLUMNS.has(last)) throw new Refusal(`column "${last}" is not allowed`, locationOf(tree));
        if (parts > 1 && !isStar) this.#dottedNames.add(last);
        return;
      }
      case "A_Indirection":
        for (const name of strings(tree.indirection)) {
          if (REFUSED_COLUMNS.has(name)) throw new Refusal(`column "${name}" is not allowed`, locationOf(tree));
          this.#dottedNames.add(name);
        }
        return;
      case "RangeTableSample": {
        checkName(tree.method, new Set(["system", "bernoulli"]), "sampling method", tree);
        return;
      }
      default:
        return;
    }
  }
}

/** The tables, subqueries and calls that a FROM clause joins. */
function countFromItems(clause: unknown): number {
  let count = 0;
  const left = [clause];
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    if (Array.isArray(item)) for (const each of item) left.push(each);
    else {
      const [type, tree] = unwrap(item);
      if (type === "JoinExpr") left.push(tree.larg, tree.rarg);
      else count++;
    }
  }
  return count;
}

/**
 * Checks a single name, or one with pg_catalog before it (which the grammar itself adds for `extract(…)`,
 * `int`, …).
 */
function checkName(names: unknown, allowed: ReadonlySet<string>, what: string, tree: Tree): void {
  const parts = strings(names);
  const name = parts.at(-1) ?? "";
  const isPlain = parts.length === 1 || (parts.length === 2 && parts[0] === "pg_catalog");
  if (!isPlain) throw new Refusal(`${what} "${parts.join(".")}" is not allowed: write it without a schema`, locationOf(tree));
  if (!allowed.has(name)) throw new Refusal(`${what} ${what === "function" ? `${name}()` : `"${name}"`} is not allowed`, locationOf(tree));
}
