import { defineConfig } from "vitest/config";

/** The image of deploy/Containerfile, built and run: `npm run test:container`, as root. It builds everything itself. */
export default defineConfig({
  test: {
    include: ["test/container/**/*.test.ts"],
    reporters: ["default", "./test/support/skip-reporter.ts"],
    testTimeout: 300_000,
    hookTimeout: 1_200_000,
    pool: "forks",
  },
});
