import v8 from "node:v8";
import { afterAll, beforeAll, describe } from "vitest";
import { type Build, init, RELAXED_SIMD_FLAG } from "../../src/index.ts";

if (process.versions.node.startsWith("20.")) v8.setFlagsFromString(RELAXED_SIMD_FLAG);

export const BUILDS: readonly Build[] = ["relaxed", "simd", "scalar"];

/** Runs one suite over every build. */
export function describeBuilds(name: string, body: (build: Build) => void): void {
  describe.each(BUILDS)(`${name} (%s build)`, (build) => {
    beforeAll(() => init({ build }));
    afterAll(() => init({}));
    body(build);
  });
}
