import { afterAll, beforeAll, describe } from "vitest";
import { type Build, init } from "../../src/index.ts";

/** Every build that this runtime can run. */
export const BUILDS: readonly Build[] = ["simd", "scalar"];

/** Runs one suite over every build. */
export function describeBuilds(name: string, body: (build: Build) => void): void {
  describe.each(BUILDS)(`${name} (%s build)`, (build) => {
    beforeAll(() => init({ build }));
    afterAll(() => init({}));
    body(build);
  });
}
