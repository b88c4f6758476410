/**
 * Mutation tests: changes the code in hundreds of ways and checks whether a test notices. The mutants are
 * Stryker's (its instrumenter puts all of them into the code, each behind a switch); the tests run in this
 * one process, once for each mutant that they reach, which takes milliseconds where a test runner takes
 * seconds. Only for code without processes, threads and files of its own. Messages are not mutated, nor
 * is code that runs only once, when its module is loaded.
 *
 *   npm run mutation                        every area
 *   npm run mutation -- parse               one area
 *   npm run mutation -- parse filter/datetime   one file of it
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { format } from "node:util";
import { createInstrumenter } from "@stryker-mutator/instrumenter";
import { chai, JestAsymmetricMatchers, JestChaiExpect, JestExtend } from "@vitest/expect";
import { build } from "esbuild";
import fc from "fast-check";
import { createInjector } from "typed-inject";

const root = fileURLToPath(new URL("..", import.meta.url));
const work = `${root}build/mutation/`;

/** By area, the modules of dist/ that are changed and the tests in test/ that should notice. */
const AREAS = {
  parse: {
    modules: ["check-text", "column-path", "datetime", "decimal", "json-document", "operand", "parse", "pattern"].map((n) => `filter/${n}`),
    tests: ["datetime", "decimal", "json-document", "meaning", "parse", "pattern"].map((n) => `filter/${n}.test.ts`),
  },
  select: {
    modules: ["bit-mask", "mask", "predicate", "sql-condition"].map((n) => `filter/${n}`),
    tests: ["filter/meaning.test.ts", "filter/sql-and-mask.test.ts"],
  },
  cursor: {
    modules: ["records/data/read/cursor"],
    tests: ["records/data/read/cursor.test.ts", "records/data/read/keyset.test.ts"],
  },
  feed: { modules: ["records/feed/position"], tests: ["records/feed/position.test.ts"] },
};

/** A test that takes this many times as many steps with a mutant as without is considered endless. */
const ENDLESS = 10;

/** What the instrumented code reads: which mutant is active. Each time it asks is a step. */
const state = {
  active: undefined,
  steps: 0,
  most: Number.POSITIVE_INFINITY,
  get activeMutant() {
    if (++this.steps > this.most) throw new Error("It never ends.");
    return this.active;
  },
};
globalThis.__stryker__ = state;

// A failure need not be shrunk, and each mutant gets the same data.
fc.configureGlobal({ endOnFailure: true });
process.env.LODESTONE_SEED ??= "20";
process.env.LODESTONE_RUNS ??= "0.5";
chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);

async function mutate(area, only) {
  const { tests: files } = AREAS[area];
  const modules = only.length === 0 ? AREAS[area].modules : only;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  cpSync(`${root}dist`, `${work}dist`, { recursive: true, filter: (path) => !/dist\/(?:packages|console)|\.(?:map|d\.ts)$/.test(path) });
  const mutants = await instrument(modules);
  const { tests, hooks } = await collect(files);
  for (const hook of hooks.before) await hook();
  for (const test of tests) {
    state.currentTestId = test.name;
    state.steps = 0;
    await test.run();
    test.steps = state.steps;
  }
  state.currentTestId = undefined;
  const { static: atLoad, perTest } = structuredClone(state.mutantCoverage);
  const counts = new Map();
  const count = (file, what) => {
    const of = counts.get(file) ?? counts.set(file, { noticed: 0, survived: 0, unreached: 0 }).get(file);
    of[what]++;
  };
  for (const mutant of mutants.filter(({ status }) => status !== "Ignored")) {
    const reached = tests.filter((test) => perTest[test.name]?.[mutant.id] !== undefined);
    const file = mutant.fileName.slice(`${work}dist/`.length);
    if (reached.length === 0) {
      if (atLoad[mutant.id] !== undefined) continue;
      count(file, "unreached");
      report(file, mutant, "not reached");
      continue;
    }
    state.active = mutant.id;
    const isNoticed = await fails(reached);
    state.active = undefined;
    state.most = Number.POSITIVE_INFINITY;
    count(file, isNoticed ? "noticed" : "survived");
    if (!isNoticed) report(file, mutant, "survived");
  }
  for (const hook of hooks.after) await hook();
  for (const [file, { noticed, survived, unreached }] of counts)
    console.log(`${area}: ${file}: ${noticed} noticed, ${survived} survived, ${unreached} not reached`);
}

async function fails(tests) {
  for (const test of tests) {
    state.steps = 0;
    state.most = ENDLESS * test.steps + 100_000;
    try {
      await test.run();
    } catch {
      return true;
    }
  }
  return false;
}

function report(file, { location, mutatorName, replacement }, what) {
  console.log(
    `${what}: ${file}:${location.start.line + 1}:${location.start.column + 1} ${mutatorName}\n    ${replacement.replaceAll(/\s+/g, " ").slice(0, 200)}`,
  );
}

/** Writes the modules with all mutants in them and returns the mutants. */
async function instrument(modules) {
  const logger = { debug() {}, info() {}, isDebugEnabled: () => false, warn: console.warn };
  const instrumenter = createInjector().provideValue("logger", logger).injectFunction(createInstrumenter);
  const sources = modules.map((name) => {
    const path = `${work}dist/${name}.js`;
    return { name: path, mutate: true, content: readFileSync(path, "utf8") };
  });
  const options = { plugins: null, ignorers: [], excludedMutations: ["StringLiteral"] };
  const { files, mutants } = await instrumenter.instrument(sources, options);
  for (const { name, content } of files) writeFileSync(name, content);
  return mutants;
}

/** Imports test files with what collects their tests in place of vitest, and dist/ as it was instrumented in place of src/. */
async function collect(files) {
  const tests = [];
  const hooks = { before: [], after: [] };
  const path = [];
  const expect = Object.assign((value, message) => chai.expect(value, message), chai.expect);
  const test = (name, run) => tests.push({ name: [...path, name, tests.length].join(" > "), run });
  const describe = (name, body) => {
    path.push(name);
    body();
    path.pop();
  };
  const each = (make) => (rows) => (name, body) => {
    for (const row of rows) {
      const values = Array.isArray(row) ? row : [row];
      make(format(name, ...values), () => body(...values));
    }
  };
  test.each = each(test);
  describe.each = each(describe);
  globalThis.collected = {
    describe,
    test,
    it: test,
    expect,
    beforeAll: (run) => hooks.before.push(run),
    afterAll: (run) => hooks.after.push(run),
  };
  for (const [i, file] of files.entries()) {
    const outfile = `${work}test-${i}.mjs`;
    await build({
      entryPoints: [`${root}test/${file}`],
      bundle: true,
      platform: "node",
      format: "esm",
      outfile,
      logLevel: "error",
      plugins: [inPlaceOfVitest],
    });
    await import(`${pathToFileURL(outfile)}?${Date.now()}`);
  }
  return { tests, hooks };
}

const inPlaceOfVitest = {
  name: "in-place-of-vitest",
  setup(bundle) {
    bundle.onResolve({ filter: /^vitest$/ }, () => ({ path: "vitest", namespace: "collected" }));
    bundle.onLoad({ filter: /.*/, namespace: "collected" }, () => ({
      contents: "export const { describe, test, it, expect, beforeAll, afterAll } = globalThis.collected;",
    }));
    bundle.onResolve({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      path: `${work}dist/${path.replace(/^(?:\.\.\/)+src\/(.*)\.ts$/, "$1.js")}`,
      external: true,
    }));
    bundle.onResolve({ filter: /^[^./]/ }, ({ path, kind }) => (kind === "entry-point" ? undefined : { path, external: true }));
  },
};

const [area, ...only] = process.argv.slice(2);
if (area !== undefined && !Object.hasOwn(AREAS, area))
  throw new Error(`There is no area "${area}"; there are ${Object.keys(AREAS).join(", ")}.`);
for (const name of area === undefined ? Object.keys(AREAS) : [area]) await mutate(name, only);
process.exit();
