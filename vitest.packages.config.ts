import { defineConfig } from "vitest/config";

/** The matrix of toolchains: `npm run test:packages`. Each test runs other programs, which find the packages as `npm pack` makes them. */
export default defineConfig({
  test: {
    include: ["test/packages/matrix/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    reporters: ["default", "./test/support/skip-reporter.ts"],
    testTimeout: 900_000,
    hookTimeout: 900_000,
    pool: "forks",
    maxWorkers: 2,
  },
});
