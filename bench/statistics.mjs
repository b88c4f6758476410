/** Median and spread; the spread is from the 10th to the 90th percentile. */
export function summarize(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { median: at(0.5), low: at(0.1), high: at(0.9), count: sorted.length };
}

/** CPU milliseconds of the process, all its threads, since a `process.cpuUsage()`. */
export function cpuMs(since) {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}
