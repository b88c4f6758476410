import { afterAll, beforeAll, describe } from "vitest";
import { enableRelaxedSimd } from "../../src/cli/relaxed-simd.ts";
import { type Build, init } from "../../src/index.ts";

enableRelaxedSimd();

const BUILDS: readonly Build[] = ["relaxed", "simd", "scalar"];

/** Runs one suite over every build. */
export function describeBuilds(name: string, body: (build: Build) => void): void {
  describe.each(BUILDS)(`${name} (%s build)`, (build) => {
    beforeAll(() => init({ build }));
    afterAll(() => init({}));
    body(build);
  });
}
