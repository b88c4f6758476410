import type { Reporter, TestModule } from "vitest/node";

// vitest imports it by the name in its settings:
// ignore unused exports
/** Prints the CPU seconds of each file, the most expensive first. */
export default class CostReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const costs = modules.map((module) => ({
      name: `${module.project.name} ${module.relativeModuleId}`,
      seconds: module.meta().cpuSeconds,
    }));
    costs.sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0));
    console.log("CPU seconds:");
    for (const { name, seconds } of costs) console.log(`${seconds?.toFixed(1).padStart(8)}  ${name}`);
    const sum = costs.reduce((total, { seconds = 0 }) => total + seconds, 0);
    console.log(`${sum.toFixed(1).padStart(8)}  together, beside shared servers and vitest itself`);
  }
}
