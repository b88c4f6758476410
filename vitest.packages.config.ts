import { defineConfig } from "vitest/config";
import { LIMIT_MS } from "./test/support/patience.ts";

/** The matrix of toolchains: `npm run test:packages`. Each test runs other programs, which find the packages as `npm pack` makes them. */
export default defineConfig({
  test: {
    include: ["test/packages/matrix/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    reporters: ["default", "./test/support/skip-reporter.ts"],
    testTimeout: 2 * LIMIT_MS,
    hookTimeout: 2 * LIMIT_MS,
    pool: "forks",
    maxWorkers: 2,
  },
});
