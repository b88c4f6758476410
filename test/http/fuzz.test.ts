import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runs } from "../support/random-runs.ts";
import { type Answer, startServer, type TestServer } from "../support/server.ts";

/**
 * Every endpoint, fuzzed from the description that the server itself publishes, with requests that fit it,
 * nearly fit it, or are hostile. Always: no 5xx, no change when the response is an error, and a response of
 * the described shape. LODESTONE_RUNS makes it longer.
 */

type Schema = Record<string, unknown>;

interface Operation {
  method: string;
  path: string;
  operationId: string;
  parameters: { name: string; in: "path" | "query"; schema: Schema }[];
  requestBody?: { content: { "application/json": { schema: Schema } } };
  responses: Record<string, { content?: { "application/json": { schema: Schema } } }>;
}

let server: TestServer;
let description: {
  paths: Record<string, Record<string, Omit<Operation, "method" | "path">>>;
  components: { schemas: Record<string, Schema> };
};
const BRANCHES = ["fuzz:main", "fuzz:dev"];

async function prepare(): Promise<void> {
  for (const branch of BRANCHES) {
    await server.put(`/db/${branch}`);
    const columns = [
      { name: "s", type: "string" },
      { name: "n", type: "int" },
      { name: "j", type: "json" },
      { name: "v", type: "vector", vector: { dimension: 3 } },
      { name: "l", type: "link", link: { table: "t" } },
    ];
    if ((await server.get(`/db/${branch}/tables/t/schema`)).status === 404) await server.put(`/db/${branch}/tables/t`, { columns });
    await server.put(`/db/${branch}/tables/t/data/r1`, {});
  }
}

beforeAll(async () => {
  server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
  description = (await server.get("/openapi.json")).body;
  await prepare();
});
afterAll(() => server?.stop());

async function fingerprint(): Promise<string> {
  const parts = [(await server.get("/dbs")).text, (await server.get("/dbs/fuzz")).text];
  for (const branch of BRANCHES) {
    parts.push((await server.get(`/db/${branch}/schema`)).text.replace(/"id":"[^"]*"/, ""));
    const { body } = await server.post(`/db/${branch}/tables/t/query`, { sort: { id: "asc" }, page: { size: 1000 } });
    parts.push(JSON.stringify(body.records ?? null));
  }
  return parts.join("\n");
}

/** Names that exist, names that do not, and names that must be refused. */
const names = (kind: string): fc.Arbitrary<string> => {
  const there: Record<string, string[]> = {
    db: ["fuzz"],
    branch: ["main", "dev"],
    table: ["t"],
    column: ["s", "n", "j", "v", "l"],
    id: ["r1"],
    from: ["main"],
  };
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...(there[kind] ?? ["main"])) },
    { weight: 1, arbitrary: fc.stringMatching(/^[a-zA-Z0-9_~-]{1,8}$/) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "%2F",
        "%00",
        "%zz",
        "%c0%af",
        "a%20b",
        "..",
        "%2e%2e",
        "'; DROP TABLE t; --",
        "__proto__",
        "constructor",
        "x".repeat(300),
        "%F0%9F%98%80",
      ),
    },
  );
};

const HOSTILE = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1e9,
  1e300,
  2 ** 53 + 2,
  0.1,
  "",
  "x",
  '\'; DELETE FROM "t"; --',
  "\u0000",
  "\ud800",
  "😀",
  "$1",
  "*",
  "x".repeat(100_000),
  [],
  {},
  [[]],
  [null],
  { a: 1 },
  { $any: [] },
  { $not: {} },
  { $pattern: "*".repeat(500) },
  { constructor: 1 },
  { toString: 1 },
  { "": 1 },
  Array.from({ length: 2000 }, () => 1),
  JSON.parse('{"__proto__": {"polluted": 1}}'),
  JSON.parse(`${"[".repeat(60)}${"]".repeat(60)}`),
  JSON.parse(`${'{"$not":'.repeat(50)}{}${"}".repeat(50)}`),
  "__proto__",
  "xata.version",
  "id",
] as const;

const hostile = fc.constantFrom<unknown>(...HOSTILE);

/** Values that fit a schema. Some of them also work, since known names come up often. */
function fitting(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  if (typeof schema.$ref === "string")
    return fitting(description.components.schemas[schema.$ref.split("/").at(-1) as string] as Schema, depth);
  if (Array.isArray(schema.enum)) return fc.constantFrom<unknown>(...schema.enum);
  if (Array.isArray(schema.anyOf)) return fc.oneof(...(schema.anyOf as Schema[]).map((alternative) => fitting(alternative, depth)));
  const [type] = [schema.type].flat() as string[];
  switch (type) {
    case "object": {
      const properties = Object.entries((schema.properties ?? {}) as Record<string, Schema>);
      const required = (schema.required ?? []) as string[];
      if (properties.length === 0)
        return fc.oneof(
          fc.constantFrom<unknown>({}, { s: "x" }, { n: 1 }, { v: [1, 2, 3] }, { l: "r1" }, { n: { $gt: 1 } }),
          fc.dictionary(fc.constantFrom("s", "n", "x"), hostile, { maxKeys: 2 }),
        );
      if (schema.maxProperties === 1)
        return fc.oneof(...properties.map(([name, member]) => fc.record({ [name]: fitting(member, depth + 1) })));
      const members = Object.fromEntries(properties.map(([name, member]) => [name, fitting(member, depth + 1)]));
      return fc.record(members, { requiredKeys: required });
    }
    case "array":
      return fc.array(schema.items === undefined ? hostile : fitting(schema.items as Schema, depth + 1), {
        minLength: Math.min(Number(schema.minItems ?? 0), 3),
        maxLength: depth > 2 ? 2 : 3,
      });
    case "integer":
      return fc.integer({ min: Number(schema.minimum ?? -10), max: Math.min(Number(schema.maximum ?? 1000), 1_000_000) });
    case "number":
      return fc.oneof(fc.constantFrom(0, 1, -1.5, 1e30), fc.double({ noNaN: true, noDefaultInfinity: true }));
    case "boolean":
      return fc.boolean();
    case "string":
      return schema.pattern === undefined
        ? fc.oneof(
            fc.constantFrom("s", "n", "v", "t", "*", "r1", 'SELECT * FROM "t"', 'DELETE FROM "t" WHERE "id" = $1'),
            fc.string({ maxLength: 20 }),
          )
        : fc.constantFrom("t", "s", "n", "v", "main", "dev", "fresh1", "fresh2");
    default:
      return hostile;
  }
}

/** Mostly the value as it is; otherwise with one part of it replaced by something hostile. */
const nearly = (value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 2, arbitrary: value },
    {
      weight: 3,
      arbitrary: fc
        .tuple(value, hostile, fc.nat(), fc.nat())
        .map(([whole, part, where, step]) => replacePart(structuredClone(whole), part, where, step)),
    },
    { weight: 1, arbitrary: hostile },
  );

function replacePart(whole: unknown, part: unknown, where: number, step: number): unknown {
  if (typeof whole !== "object" || whole === null) return part;
  const keys = Object.keys(whole);
  if (keys.length === 0) return part;
  const key = keys[where % keys.length] as string;
  const container = whole as Record<string, unknown>;
  const isLeaf = step % 3 === 0 || typeof container[key] !== "object";
  const replaced = isLeaf ? part : replacePart(container[key], part, where >> 1, step >> 1);
  return Array.isArray(whole) ? whole.map((element, i) => (String(i) === key ? replaced : element)) : { ...container, [key]: replaced };
}

/** Lists as the SDK sends them; everything else as JSON, or a text as it is. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(",");
  return typeof value === "string" ? value : JSON.stringify(value);
}

interface Request {
  path: string;
  body: string | Buffer | undefined;
  headers: Record<string, string>;
}

function requestsOf(operation: Operation): fc.Arbitrary<Request> {
  const pathValues = fc.tuple(
    ...operation.parameters.filter((p) => p.in === "path").map((p) => names(p.name).map((value) => [p.name, value] as const)),
  );
  const queryValues = fc.tuple(
    ...operation.parameters
      .filter((p) => p.in === "query")
      .map((p) =>
        fc.option(
          fc
            .oneof(fitting(p.schema), hostile)
            .map((value) => `${p.name}=${encodeURIComponent(textOf(value).toWellFormed().slice(0, 500))}`),
          { nil: undefined, freq: 2 },
        ),
      ),
  );
  const schema = operation.requestBody?.content["application/json"].schema;
  const body: fc.Arbitrary<string | Buffer | undefined> =
    schema === undefined
      ? fc.constant(undefined)
      : fc.oneof(
          { weight: 8, arbitrary: nearly(fitting(schema)).map((value) => JSON.stringify(value)) },
          {
            weight: 1,
            arbitrary: fc.constantFrom<string | Buffer | undefined>(
              undefined,
              "",
              "{",
              "nonsense",
              "[".repeat(5000),
              '{"a": 1, "a": 2}',
              Buffer.from([0x22, 0xff, 0x22]),
              '{"a": 1e999}',
              '{"a": "\\ud800"}',
            ),
          },
        );
  const contentType = fc.constantFrom(
    "application/json",
    "application/json",
    "application/json",
    "application/json",
    "application/json",
    "text/plain",
    "",
  );
  const agent = fc.boolean();
  return fc.tuple(pathValues, queryValues, body, contentType, agent).map(([segments, query, payload, type, isSdk]) => {
    const path = segments.reduce(
      (text, [name, value]) =>
        text.replace(`{${name}}`, /^[\x21-\x7e]*$/.test(value) && !/[?#"<>]/.test(value) ? value : encodeURIComponent(value)),
      operation.path,
    );
    const parameters = query.filter((text) => text !== undefined);
    const headers: Record<string, string> = {
      ...(payload === undefined ? {} : { "content-type": type }),
      ...(isSdk ? { "x-xata-agent": "client=TS_SDK" } : {}),
    };
    return { path: parameters.length === 0 ? path : `${path}?${parameters.join("&")}`, body: payload, headers };
  });
}

it("describes every body by a valid schema of draft 2020-12, which the server itself takes for granted", () => {
  const ajv = new Ajv2020();
  const bodies = Object.values(description.paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap(({ requestBody }) => (requestBody === undefined ? [] : [requestBody.content["application/json"].schema]));
  expect(bodies.length).toBeGreaterThan(20);
  for (const schema of [...bodies, ...Object.values(description.components.schemas)]) {
    expect(ajv.validateSchema(schema), `${ajv.errorsText()}: ${JSON.stringify(schema).slice(0, 300)}`).toBe(true);
  }
});

describe("the API, fuzzed from its own description", () => {
  it("answers every request as described, never with a 5xx, and without any change if it is an error", async () => {
    const ajv = new Ajv2020({ strict: false, allErrors: false });
    addFormats.default(ajv);
    ajv.addSchema({ $id: "api", components: description.components });
    const resolved = (schema: Schema): Schema => JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"api#/components/'));
    const operations: Operation[] = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
    );
    expect(operations.length).toBeGreaterThan(30);

    const check = (operation: Operation, answer: Answer): void => {
      expect(answer.status).toBeLessThan(operation.operationId === "getReadiness" ? 504 : 500);
      const spec = operation.responses[String(answer.status)];
      if (spec === undefined) throw new Error(`the status ${answer.status} is not described: ${answer.text.slice(0, 500)}`);
      const schema = spec.content?.["application/json"]?.schema;
      if (schema === undefined) return;
      const validate = ajv.compile(resolved(schema));
      const isDescribed: boolean = validate(answer.body);
      if (!isDescribed)
        throw new Error(`the answer ${answer.status} ${answer.text.slice(0, 500)} is not as described: ${ajv.errorsText(validate.errors)}`);
      if (answer.status >= 400) {
        // Errors of JSON-RPC have the id of its message.
        if (answer.body.jsonrpc === undefined) expect(answer.body.id).toBe(answer.headers["x-request-id"]);
        expect(answer.text).not.toMatch(/\bat .*\.(js|ts):\d+|node_modules/);
      }
    };

    const statuses = new Map<number, number>();
    for (const operation of operations) {
      await fc.assert(
        fc.asyncProperty(requestsOf(operation), async ({ path, body, headers }) => {
          const before = await fingerprint();
          let answer: Answer;
          try {
            answer = await server.request(operation.method, path, body, headers);
          } catch (error) {
            // Node itself refuses to send a few paths.
            if ((error as NodeJS.ErrnoException).code === "ERR_UNESCAPED_CHARACTERS") return;
            throw error;
          }
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
          // An encoded or empty segment may lead to another endpoint or to none; then only the error's shape
          // can be checked.
          const isElsewhere = answer.status === 404 && /no endpoint/.test(answer.text);
          if (!isElsewhere && answer.status !== 405) check(operation, answer);
          if (answer.status >= 400) expect(await fingerprint()).toBe(before);
          else await prepare();
        }),
        // Each backup is a copy of the whole database.
        { numRuns: operation.operationId === "createBackup" ? 2 : runs(6), verbose: 1 },
      );
    }
    expect((await server.get("/livez")).status).toBe(200);
    // There must be both successes and refusals, or the fuzzing would show little.
    expect([...statuses.keys()].some((status) => status < 300)).toBe(true);
    expect(statuses.get(400)).toBeGreaterThan(20);
    expect(server.log).not.toContain('"level":50');
  });
});
