/** Median and spread; the spread is from the 10th to the 90th percentile. */
export function summarize(values) {
  const [median, low, high] = [0.5, 0.1, 0.9].map((share) => quantile(values, share));
  return { median, low, high, count: values.length };
}

/** @param share  0.99 for the 99th percentile. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

/** CPU milliseconds of the process, all its threads, since a `process.cpuUsage()`. */
export function cpuMs(since) {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}
