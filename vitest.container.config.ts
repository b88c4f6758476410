import { defineConfig } from "vitest/config";
import { LIMIT_MS } from "./test/support/patience.ts";

/** The image of deploy/Containerfile, built and run: `npm run test:container`, as root. It builds everything itself. */
export default defineConfig({
  test: {
    include: ["test/container/**/*.test.ts"],
    reporters: ["default", "./test/support/skip-reporter.ts"],
    testTimeout: LIMIT_MS,
    hookTimeout: 2 * LIMIT_MS,
    pool: "forks",
  },
});
