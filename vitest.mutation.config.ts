import { defineConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** What `npm run mutation` runs for each mutant: tests of one process, on dist/ as Stryker has changed it. A build would undo the mutants. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: [
      "test/filter/*.test.ts",
      "test/records/data/read/{cursor,keyset}.test.ts",
      "test/records/feed/position.test.ts",
      "test/core/vector-index.test.ts",
    ],
    globalSetup: [],
    reporters: ["default"],
    maxWorkers: 1,
  },
});
