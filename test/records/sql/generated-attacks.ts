/**
 * Attacks generated from the running database's own catalog: every function, aggregate, type, cast, operator,
 * relation and system column, in every notation that reaches it, and every keyword at the start of a
 * statement. Only the lists (allowed-names.ts) say what is allowed.
 */
import type { Engine } from "../../../src/records/engine/engine.ts";
import { ALLOWED_FUNCTIONS, ALLOWED_OPERATORS, ALLOWED_TYPES } from "../../../src/records/sql/allowed-names.ts";

export interface GeneratedAttack {
  readonly kind: "function" | "attribute" | "type" | "operator" | "relation" | "system column" | "keyword";
  readonly statement: string;
  /** The first wall must refuse it. Others may pass, and must then do no harm. */
  readonly isForbidden: boolean;
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A value of each type with which a strict function runs. Other types get null. */
const SAMPLES: Readonly<Record<string, string>> = {
  bool: "true",
  int2: "1::int2",
  int4: "1",
  int8: "1::int8",
  float4: "0::float4",
  float8: "0::float8",
  numeric: "1.5",
  money: "'1'::money",
  text: "'pg_class'::text",
  varchar: "'pg_class'::varchar",
  bpchar: "'x'::bpchar",
  char: `'x'::"char"`,
  name: "'pg_class'::name",
  cstring: "'1'::cstring",
  oid: "1259::oid",
  regclass: "'pg_class'::regclass",
  regproc: "'now'::regproc",
  regtype: "'text'::regtype",
  regrole: "'pg_monitor'::regrole",
  regnamespace: "'pg_catalog'::regnamespace",
  regconfig: "'simple'::regconfig",
  regdictionary: "'simple'::regdictionary",
  bytea: `'\\x01'::bytea`,
  date: "'2026-01-01'::date",
  time: "'00:00'::time",
  timestamp: "'2026-01-01'::timestamp",
  timestamptz: "'2026-01-01'::timestamptz",
  interval: "'0 s'::interval",
  json: "'{}'::json",
  jsonb: "'{}'::jsonb",
  jsonpath: "'$'::jsonpath",
  tsvector: "'a'::tsvector",
  tsquery: "'a'::tsquery",
  uuid: "'00000000-0000-0000-0000-000000000000'::uuid",
  inet: "'127.0.0.1'::inet",
  xid: "'1'::xid",
  xid8: "'1'::xid8",
  cid: "'1'::cid",
  tid: "'(0,1)'::tid",
  pg_lsn: "'0/1'::pg_lsn",
  anyelement: "1",
  anynonarray: "1",
  anycompatible: "1",
  any: "1",
  anyarray: "ARRAY[1]",
  anycompatiblearray: "ARRAY[1]",
  record: "ROW(1)",
  _text: "ARRAY['pg_class']",
  _int4: "ARRAY[1]",
};

const sampleOf = (type: string): string => SAMPLES[type] ?? `NULL::pg_catalog.${quote(type)}`;

interface Routine {
  readonly name: string;
  /** A routine of this name can be called with one argument, and is not immutable. */
  readonly isMutable: boolean;
  readonly kind: string;
  readonly arguments: readonly string[];
}

interface Type {
  readonly name: string;
  /** What its input makes of a text depends on the catalog or a setting. */
  readonly looksUp: boolean;
}

export async function generateAttacks(engine: Engine): Promise<GeneratedAttack[]> {
  const column = async (text: string): Promise<string[]> => (await engine.query<{ v: string }>(text)).rows.map(({ v }) => v);
  const routines = await engine.query<Routine>(
    `SELECT proname::text AS name, bool_or(provolatile <> 'i' AND pronargs = 1) OVER (PARTITION BY proname) AS "isMutable", prokind::text AS kind, ARRAY(SELECT typname::text FROM unnest(proargtypes) WITH ORDINALITY AS a(type, at)
        JOIN pg_type AS t ON t.oid = type ORDER BY at) AS arguments
      FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a', 'w') ORDER BY oid`,
  );
  const types = await engine.query<Type>(
    `SELECT t.typname::text AS name, typtype <> 'p' AND provolatile <> 'i' AS "looksUp" FROM pg_type AS t JOIN pg_proc AS p ON p.oid = typinput
      WHERE typnamespace = 'pg_catalog'::regnamespace AND t.typname !~ '^_' ORDER BY t.oid`,
  );
  const relations = await column(
    `SELECT format('%I.%I', nspname, relname) AS v FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace
      WHERE nspname IN ('pg_catalog', 'information_schema') AND relkind IN ('r', 'v') ORDER BY 1`,
  );
  const systemColumns = await column("SELECT attname::text AS v FROM pg_attribute WHERE attrelid = 'pg_class'::regclass AND attnum < 0");
  const keywords = await column("SELECT word AS v FROM pg_get_keywords() ORDER BY 1");
  const operators = await engine.query<{ name: string; left: string | null; right: string }>(
    `SELECT DISTINCT oprname::text AS name, l.typname::text AS left, r.typname::text AS right FROM pg_operator LEFT JOIN pg_type AS l ON l.oid = oprleft
      JOIN pg_type AS r ON r.oid = oprright ORDER BY 1, 2, 3`,
  );
  return [
    ...routines.rows.flatMap(ofRoutine),
    ...types.rows.flatMap(ofType),
    ...operators.rows.map(ofOperator),
    ...relations.flatMap(ofRelation),
    ...systemColumns.flatMap(ofSystemColumn),
    ...keywords.flatMap(ofKeyword),
  ];
}

const attack = (kind: GeneratedAttack["kind"], isForbidden: boolean, ...statements: string[]): GeneratedAttack[] =>
  statements.map((statement) => ({ kind, statement, isForbidden }));

/** A call, and for one argument also the notations that call implicitly. */
function ofRoutine(routine: Routine): GeneratedAttack[] {
  const values = routine.arguments.map(sampleOf);
  const name = quote(routine.name);
  const over = routine.kind === "w" ? " OVER ()" : "";
  const call = `SELECT pg_catalog.${name}(${values.join(", ")})${over}`;
  const isForbidden =
    !ALLOWED_FUNCTIONS.has(routine.name) || values.some((value) => /::/.test(value) && !isAllowedType(value.split("::").at(-1)!));
  const [value] = values;
  return [
    ...attack("function", isForbidden, call),
    ...(values.length !== 1 || routine.kind !== "f"
      ? []
      : attack(
          "attribute",
          (routine.isMutable &&
            !ALLOWED_FUNCTIONS.has(routine.name) &&
            !ALLOWED_TYPES.has(routine.name) &&
            routine.name !== "xml" &&
            !takesInternal(routine)) ||
            (/::/.test(value!) && !isAllowedType(value!.split("::").at(-1)!)),
          `SELECT (${value}).${name}`,
          `SELECT x.${name} FROM (SELECT ${value} AS v) AS s, LATERAL unnest(ARRAY[s.v]) AS x`,
        )),
  ];
}

const takesInternal = (routine: Routine): boolean => routine.arguments.includes("internal");

function isAllowedType(written: string): boolean {
  const name = /"?([^".[\]]+)"?(?:\[\])?$/.exec(written)?.[1] ?? "";
  return ALLOWED_TYPES.has(name);
}

function ofType({ name: type, looksUp }: Type): GeneratedAttack[] {
  const name = quote(type);
  const isForbidden = !ALLOWED_TYPES.has(type);
  return [
    ...attack("type", isForbidden, `SELECT NULL::pg_catalog.${name}`, `SELECT CAST('1' AS ${name})`, `SELECT ${name} '1'`),
    ...attack(
      "attribute",
      isForbidden && looksUp && type !== "xml",
      `SELECT ('1').${name}`,
      `SELECT x.${name} FROM unnest(ARRAY['1']) AS x`,
      `SELECT (t).${name} FROM "t"`,
    ),
  ];
}

function ofOperator({ name, left, right }: { name: string; left: string | null; right: string }): GeneratedAttack {
  const types = [left, right].filter((type) => type !== null);
  const [first, second] = types.map(sampleOf);
  const operator = `OPERATOR(pg_catalog.${name})`;
  const statement = second === undefined ? `SELECT ${operator} ${first}` : `SELECT ${first} ${operator} ${second}`;
  return { kind: "operator", statement, isForbidden: !ALLOWED_OPERATORS.has(name) };
}

const ofRelation = (relation: string): GeneratedAttack[] => [
  ...attack("relation", true, `SELECT * FROM ${relation}`, `SELECT * FROM ${relation.split(".")[1]!}`, `DELETE FROM ${relation}`),
];

const ofSystemColumn = (name: string): GeneratedAttack[] =>
  attack(
    "system column",
    true,
    `SELECT ${name} FROM "t"`,
    `SELECT "t".${name} FROM "t"`,
    `SELECT ("t").${name} FROM "t"`,
    `SELECT (x.t).${name} FROM (SELECT "t" FROM "t") AS x`,
    `SELECT (array_agg("t"))[1].${name} FROM "t"`,
    `SELECT 1 FROM "t" ORDER BY "t".${name}`,
    `UPDATE "t" SET "called" = "t".${name}`,
    `DELETE FROM "t" RETURNING "t".${name}`,
    `INSERT INTO "t" ("id") VALUES ('x') ON CONFLICT ("id") DO UPDATE SET "called" = excluded.${name}`,
  );

/** Every keyword except those of the four statements, what may precede them, and their parts. */
const STATEMENT_HEADS = new Set(["select", "insert", "update", "delete", "with", "values", "table"]);

const ofKeyword = (word: string): GeneratedAttack[] => {
  if (STATEMENT_HEADS.has(word)) return [];
  // A table may be explained: TABLE "t" is short for SELECT * FROM "t".
  const ofTable = word === "explain" ? [] : [`${word} TABLE "t"`];
  return attack("keyword", true, word, `${word} "t"`, ...ofTable, `${word} ALL`, `${word} x TO 'y'`, `${word} FROM "t"`);
};
