/** Random tables and random filters over them, from pools small enough for filters to match. */
import fc from "fast-check";
import type { FilterTable, FilterTableColumn } from "../../src/filter/tree.ts";

export type Row = Record<string, unknown>;

function table(name: string, columns: FilterTableColumn[]): [string, FilterTable] {
  return [name, { name, columns: new Map(columns.map((column) => [column.name, column])) }];
}

export const SCHEMA: ReadonlyMap<string, FilterTable> = new Map([
  table("items", [
    { name: "title", type: "string" },
    { name: "settings.plan", type: "text" },
    { name: "settings.dark", type: "bool" },
    { name: "count", type: "int" },
    { name: "price", type: "float" },
    { name: "sold", type: "datetime" },
    { name: "labels", type: "multiple" },
    { name: "config", type: "json" },
    { name: "team", type: "link", link: { table: "teams" } },
    { name: "parent", type: "link", link: { table: "items" } },
  ]),
  table("teams", [
    { name: "name", type: "string" },
    { name: "size", type: "int" },
    { name: "tags", type: "multiple" },
    { name: "extra", type: "json" },
    { name: "org", type: "link", link: { table: "orgs" } },
  ]),
  table("orgs", [
    { name: "name", type: "text" },
    { name: "score", type: "float" },
    { name: "since", type: "datetime" },
  ]),
]);

const TEXTS = [
  "",
  "a",
  "A",
  "ab",
  "aB",
  "abc",
  "b",
  "%",
  "_",
  "a_c",
  "a%",
  "\\",
  "a\\b",
  "*",
  "?",
  '"',
  "'",
  "{}",
  "ä",
  "Ä",
  "é",
  "é",
  "ß",
  "ẞ",
  "İ",
  "K",
  "\uffff",
  "\ue000",
  "😀",
  "😁",
  "a😀b",
  "𐐀",
  "𐐨",
  "  x ",
  "null",
  "1",
  "\t\n",
];
const INTS = [
  0n,
  1n,
  -1n,
  2n,
  255n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 32n,
  -(2n ** 32n),
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  2n ** 63n - 2n,
  -(2n ** 63n),
  1n - 2n ** 63n,
];
const FLOATS = [0, -0, 1, 1.5, -2.25, 0.1, 0.30000000000000004, 1e-300, 5e-324, 1.7976931348623157e308, 9007199254740992, 1e21];
const TIMES = [
  "1970-01-01T00:00:00Z",
  "1969-12-31T23:59:59.999999Z",
  "2024-02-29T12:00:00.123456Z",
  "2024-02-29T12:00:00.123457Z",
  "0001-01-01T00:00:00Z",
  "9999-12-31T23:59:59.999999Z",
  "2024-02-29T12:00:00Z",
];
const JSON_SCALARS = [
  "",
  "a",
  "ab",
  "1",
  "true",
  "null",
  "ä",
  "😀",
  'q"\\/\u0007',
  0,
  1,
  -1,
  1.5,
  0.1,
  1e21,
  1e-7,
  12345678901234,
  true,
  false,
];

const text = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...TEXTS) },
  fc.string({ unit: "binary", maxLength: 4 }).filter((s) => !s.includes("\0")),
);
const nullable = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null, freq: 5 });
const int = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...INTS) }, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }));
const float = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...FLOATS, Number.NaN, Infinity, -Infinity) }, fc.double());
const micros = fc.integer({ min: 0, max: 999_999 });
const time = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...TIMES) },
  fc
    .tuple(fc.date({ min: new Date("1000-01-01"), max: new Date("2999-01-01"), noInvalidDate: true }), micros)
    .map(([d, m]) => `${d.toISOString().slice(0, 19)}.${String(m).padStart(6, "0")}Z`),
);
const scalar = fc.oneof(fc.constantFrom(...JSON_SCALARS), fc.integer());
const json = fc.oneof(
  scalar,
  fc.constant(null),
  fc.array(fc.oneof(scalar, fc.constant(null)), { maxLength: 3 }),
  fc.record({ a: fc.oneof(scalar, fc.constant(null)), "b c": scalar, 'q"\\': scalar }, { requiredKeys: [] }),
  fc.record(
    { a: fc.record({ b: fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })), __proto__x: scalar }, { requiredKeys: [] }), b: scalar },
    { requiredKeys: ["a"] },
  ),
);
const labels = fc.array(nullable(text), { maxLength: 3 });

const TEAM_IDS = ["t0", "t1", "t2", "tx"];
const ORG_IDS = ["o0", "o1", "ox"];
const ITEM_IDS = ["i0", "i1", "i2", "i3", "I1", "", "é"];

const system = {
  "xata.version": nullable(fc.constantFrom(0n, 1n, 2n)),
  "xata.createdAt": nullable(time),
  "xata.updatedAt": nullable(time),
};

const withIds = <T extends object>(prefix: string, rows: T[]): Row[] => rows.map((row, i) => ({ ...row, id: `${prefix}${i}` }));

export const rowsArbitrary: fc.Arbitrary<Record<string, Row[]>> = fc.record({
  items: fc
    .array(
      fc.record({
        ...system,
        title: nullable(text),
        "settings.plan": nullable(text),
        "settings.dark": nullable(fc.boolean()),
        count: nullable(int),
        price: nullable(float),
        sold: nullable(time),
        labels: nullable(labels),
        config: nullable(json),
        team: nullable(fc.constantFrom(...TEAM_IDS)),
        parent: nullable(fc.constantFrom(...ITEM_IDS)),
      }),
      { minLength: 0, maxLength: 70, size: "max" },
    )
    .map((rows) => withIds("i", rows)),
  teams: fc
    .array(
      fc.record({
        ...system,
        name: nullable(text),
        size: nullable(int),
        tags: nullable(labels),
        extra: nullable(json),
        org: nullable(fc.constantFrom(...ORG_IDS)),
      }),
      { maxLength: 3, size: "max" },
    )
    .map((rows) => withIds("t", rows)),
  orgs: fc
    .array(fc.record({ ...system, name: nullable(text), score: nullable(float), since: nullable(time) }), { maxLength: 2 })
    .map((rows) => withIds("o", rows)),
});

/* Filters, as JSON. */

const pattern = fc
  .array(
    fc.oneof(
      fc.constantFrom("*", "?", "*", "\\*", "\\?", "\\\\", "%", "_"),
      text.map((t) => t.replaceAll(/[\\*?]/g, "\\$&")),
    ),
    { maxLength: 5 },
  )
  .map((p) => p.join(""));
const textOperator = fc
  .oneof(
    fc.tuple(fc.constantFrom("$contains", "$iContains", "$startsWith", "$endsWith", "$is", "$isNot", "$lt", "$le", "$gt", "$ge"), text),
    fc.tuple(fc.constantFrom("$pattern", "$iPattern"), pattern),
  )
  .map(([operator, operand]) => ({ [operator]: operand }));

const finite = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...FLOATS) }, fc.double({ noNaN: true, noDefaultInfinity: true }));
const intOperand = fc.oneof(
  int.map(String),
  fc.integer(),
  fc.constantFrom(0, 1, -1, 1.5, -1.5, 1e300, -1e300, 2 ** 53, 2 ** 32),
  fc.constantFrom("9223372036854775808", "-9223372036854775809"),
);

const range = (operand: fc.Arbitrary<unknown>) =>
  fc.oneof(
    fc.tuple(fc.constantFrom("$lt", "$le", "$gt", "$ge"), operand).map(([operator, value]) => ({ [operator]: value })),
    fc.record({ $ge: operand, $lt: operand }),
    fc.record({ $gt: operand, $le: operand }),
  );
const equality = (operand: fc.Arbitrary<unknown>) =>
  fc.oneof(
    operand,
    fc.array(operand, { maxLength: 3 }),
    fc
      .tuple(fc.constantFrom("$is", "$isNot"), fc.oneof(operand, fc.array(operand, { maxLength: 3 })))
      .map(([operator, value]) => ({ [operator]: value })),
  );

/** Returns `condition` or a combination of such conditions. */
const nested = (condition: fc.Arbitrary<unknown>) =>
  fc.oneof(
    { weight: 6, arbitrary: condition },
    fc
      .tuple(fc.constantFrom("$any", "$all", "$none", "$not"), fc.oneof(condition, fc.array(condition, { maxLength: 3 })))
      .map(([k, v]) => ({ [k]: v })),
    fc.tuple(fc.constantFrom("$any", "$none"), fc.array(condition, { maxLength: 2 })).map(([k, v]) => ({ $not: { [k]: v } })),
  );

const textCondition = nested(fc.oneof(textOperator, equality(text)));
const intCondition = nested(fc.oneof(range(intOperand), equality(intOperand)));
const floatCondition = nested(fc.oneof(range(finite), equality(finite)));
const timeCondition = nested(fc.oneof(range(time), equality(time)));
const boolCondition = nested(equality(fc.boolean()));
/**
 * Objects and lists as text. They have few shapes, so that they match stored ones, and are written in more
 * than one way.
 */
const documentText = fc
  .tuple(
    fc.oneof(
      fc.dictionary(fc.constantFrom("a", "b", "0"), scalar, { maxKeys: 2, noNullPrototype: true }),
      fc.array(scalar, { maxLength: 2 }),
    ),
    fc.constantFrom(0, 2),
  )
  .map(([value, indent]) => JSON.stringify(value, null, indent));
const jsonOperand = fc.oneof(scalar, fc.double({ noNaN: true, noDefaultInfinity: true }), documentText);
const jsonCondition = nested(fc.oneof(equality(jsonOperand), range(fc.oneof(fc.constantFrom(0, 1, 1.5, 0.1, 1e21), text)), textOperator));
const labelsCondition = nested(
  fc.oneof(
    equality(text),
    fc
      .tuple(
        fc.constantFrom("$includes", "$includesAny", "$includesAll", "$includesNone"),
        fc.oneof(textCondition, text, fc.array(textCondition, { maxLength: 2 })),
      )
      .map(([k, v]) => ({ [k]: v })),
  ),
);
const linkCondition = (ids: string[]) =>
  nested(
    fc.oneof(
      equality(fc.constantFrom(...ids)),
      fc.constantFrom(...ids).map((id) => ({ id })),
      textOperator,
    ),
  );

const one = (name: string, condition: fc.Arbitrary<unknown>) => condition.map((value) => ({ [name]: value }));
const jsonPaths = [
  "config",
  "config->a",
  "config->a->b",
  "config->a->b->0",
  "config->a->b->-1",
  "config->b c",
  'config->q"\\',
  "config->0",
  "config-> 1",
  "config->__proto__x",
  "team.extra->a",
  "parent.config->a",
];

const leaf: fc.Arbitrary<object> = fc.oneof(
  one("title", textCondition),
  one("settings.plan", textCondition),
  one("settings.dark", boolCondition),
  fc.record({ settings: fc.oneof(one("plan", textCondition), one("dark", boolCondition)) }),
  one("count", intCondition),
  one("price", floatCondition),
  one("sold", timeCondition),
  one("labels", labelsCondition),
  fc.tuple(fc.constantFrom(...jsonPaths), jsonCondition).map(([path, condition]) => ({ [path]: condition })),
  one("team", linkCondition(TEAM_IDS)),
  one("parent", linkCondition(ITEM_IDS)),
  one("id", nested(fc.oneof(equality(fc.constantFrom(...ITEM_IDS)), textOperator))),
  one("xata.version", intCondition),
  fc.record({ xata: one("createdAt", timeCondition) }),
  one("team.id", equality(fc.constantFrom(...TEAM_IDS))),
  one("team.name", textCondition),
  one("team.size", intCondition),
  one("team.tags", labelsCondition),
  one("team.org.name", textCondition),
  one("team.org.score", floatCondition),
  one("team.xata.updatedAt", timeCondition),
  one("parent.parent.title", textCondition),
  one("parent.team.org.since", timeCondition),
  fc.record({
    team: nested(
      fc.oneof(
        one("name", textCondition),
        one("size", intCondition),
        fc.record({ org: one("score", floatCondition) }),
        one("$exists", fc.constantFrom("org", "name", "extra->a")),
      ),
    ),
  }),
  fc
    .tuple(
      fc.constantFrom("$exists", "$notExists", "$existsNot"),
      fc.constantFrom(
        "title",
        "settings",
        "labels",
        "price",
        "team",
        "team.id",
        "team.name",
        "team.org.score",
        "config",
        "config->a",
        "team.extra->a",
        "xata",
        "id",
        "parent.labels",
      ),
    )
    .map(([k, v]) => ({ [k]: v })),
);

export const filterArbitrary: fc.Arbitrary<object> = fc.letrec<{ expression: object; control: object }>((tie) => ({
  expression: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    tie("control"),
    fc.tuple(leaf, leaf).map(([a, b]) => ({ ...a, ...b })),
  ),
  control: fc
    .tuple(fc.constantFrom("$any", "$all", "$none", "$not"), fc.oneof(fc.array(tie("expression"), { maxLength: 3 }), tie("expression")))
    .map(([operator, operand]) => ({ [operator]: operand })),
})).expression;
