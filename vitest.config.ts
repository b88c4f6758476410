import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig } from "vitest/config";

const dist = fileURLToPath(new URL("./dist/", import.meta.url));

/** Tests name `src/…​.ts` for its types and run `dist/…​.js`: what is tested is what ships, and worker threads start as they will for users. */
export default defineConfig({
  resolve: {
    alias: [{ find: /^(?:\.\.\/)+src\/(.*)\.ts$/, replacement: `${dist}$1.js` }],
  },
  test: {
    include: ["test/**/*.test.ts"],
    // The whole matrix of toolchains is `npm run test:packages`, the image is `npm run test:container`.
    exclude: [...configDefaults.exclude, "test/container/**", "test/packages/matrix/**", "test/packages/work/**"],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: process.env.NODE_V8_COVERAGE === undefined ? [] : ["test/support/write-coverage.ts"],
    reporters: ["default", "./test/support/skip-reporter.ts"],
    // A run tests one build: edits made meanwhile would be tested by nobody.
    watch: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
    // Beyond the default of one second: what a page shows may take a while on a busy machine.
    expect: { poll: { timeout: 20_000 } },
    pool: "forks",
    maxWorkers: 2,
    server: { deps: { external: [/\/dist\//] } },
  },
});
