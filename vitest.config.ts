import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig } from "vitest/config";
import { REST_FILES, thoroughFiles } from "./test/projects.ts";
import { LIMIT_MS, WAIT_MS } from "./test/support/patience.ts";

const dist = fileURLToPath(new URL("./dist/", import.meta.url));
// The whole matrix of toolchains is `npm run test:packages`, the image is `npm run test:container`.
const exclude = [...configDefaults.exclude, "test/container/**", "test/packages/matrix/**", "test/packages/work/**"];
const { LODESTONE_RUNS, LODESTONE_SEED, LODESTONE_TEST_COST, NODE_V8_COVERAGE } = process.env;

// ignore unused exports
/** Tests name `src/…​.ts` for its types and run `dist/…​.js`: what is tested is what ships, and worker threads start as they will for users. */
export default defineConfig({
  resolve: {
    alias: [{ find: /^(?:\.\.\/)+src\/(.*)\.ts$/, replacement: `${dist}$1.js` }],
  },
  test: {
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: [
      "test/support/random-runs.ts",
      "test/support/print-server-logs.ts",
      ...(NODE_V8_COVERAGE === undefined ? [] : ["test/support/write-coverage.ts"]),
      ...(LODESTONE_TEST_COST === undefined ? [] : ["test/support/cpu-time.ts"]),
    ],
    reporters: [
      "default",
      "./test/support/skip-reporter.ts",
      ...(LODESTONE_TEST_COST === undefined ? [] : ["./test/support/cost-reporter.ts"]),
    ],
    // A run tests one build: edits made meanwhile would be tested by nobody.
    watch: false,
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    teardownTimeout: LIMIT_MS,
    expect: { poll: { timeout: WAIT_MS } },
    pool: "forks",
    // Each has a server beside it.
    maxWorkers: Math.min(8, availableParallelism()),
    server: { deps: { external: [/\/dist\//] } },
    projects: [
      {
        extends: true,
        test: {
          name: "quick",
          include: ["test/**/*.test.ts"],
          exclude: [...exclude, ...REST_FILES],
          isolate: false,
          env: { LODESTONE_TESTS: "quick", LODESTONE_RUNS: LODESTONE_RUNS ?? "0.2", LODESTONE_SEED: LODESTONE_SEED ?? "1" },
        },
      },
      { extends: true, test: { name: "thorough", include: thoroughFiles(), exclude, env: { LODESTONE_TESTS: "thorough" } } },
      { extends: true, test: { name: "rest", include: REST_FILES, exclude, env: { LODESTONE_TESTS: "rest" } } },
    ],
  },
});
