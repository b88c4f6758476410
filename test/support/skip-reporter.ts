import type { Reporter, TestCase, TestModule } from "vitest/node";

// vitest imports it by the name in its settings:
// ignore unused exports
/** Reports at the end which tests did not run, and why. Under CI=true a skipped test fails the run. */
export default class SkipReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped: TestCase[] = [];
    for (const module of modules) for (const test of module.children.allTests("skipped")) skipped.push(test);
    // `-t name` and `.only` skip on purpose: nothing to report then.
    if (skipped.length === 0 || process.argv.includes("-t")) return;
    const reasons = new Map<string, number>();
    for (const test of skipped) {
      const reason = /\[skipped: (.*?)\]/.exec(test.fullName)?.[1] ?? test.fullName;
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
    const line = "!".repeat(100);
    console.error(`\n${line}\n${skipped.length} TESTS DID NOT RUN:`);
    for (const [reason, count] of reasons) console.error(`  ${String(count).padStart(4)}  ${reason}`);
    console.error(`${line}\n`);
    if (process.env.CI === "true") {
      console.error("CI=true: a skipped test is a failure.");
      process.exitCode = 1;
    }
  }
}
