/** Prometheus' text format as `GET /metrics` returns it: the part that the server's own metrics need. */

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** By the metric's name as in the line, including `…_bucket`, `…_sum`, `…_count`. */
export type Metrics = ReadonlyMap<string, readonly Sample[]>;

/** `name{label="value",…} 1.5` */
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string): Metrics {
  const metrics = new Map<string, Sample[]>();
  for (const line of text.split("\n")) {
    const [, name, labelText = "", valueText = ""] = LINE.exec(line) ?? [];
    if (name === undefined) continue;
    const labels: Record<string, string> = {};
    for (const [, label = "", value = ""] of labelText.matchAll(LABEL)) labels[label] = unescaped(value);
    const samples = metrics.get(name);
    const sample = { labels, value: valueText === "+Inf" ? Number.POSITIVE_INFINITY : Number(valueText) };
    if (samples === undefined) metrics.set(name, [sample]);
    else samples.push(sample);
  }
  return metrics;
}

const unescaped = (text: string): string => text.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));

/**
 * A gauge, or the sum of a counter over the label sets that pass. undefined if the server does not report it.
 */
export function total(metrics: Metrics, name: string, passes: (labels: Sample["labels"]) => boolean = () => true): number | undefined {
  const samples = metrics.get(name);
  return samples?.filter(({ labels }) => passes(labels)).reduce((sum, { value }) => sum + value, 0);
}

/**
 * A quantile of what a histogram counted between two readings, computed like Prometheus'
 * `histogram_quantile`: linear within a bucket.
 *
 * @param q  0 to 1.
 * @returns seconds; undefined when nothing was counted in between.
 */
export function quantileBetween(before: Metrics, after: Metrics, name: string, q: number): number | undefined {
  const counts = cumulative(after, name);
  for (const [bound, count] of cumulative(before, name)) counts.set(bound, (counts.get(bound) ?? 0) - count);
  const buckets = [...counts].sort(([a], [b]) => a - b);
  const all = buckets.at(-1)?.[1] ?? 0;
  if (all <= 0) return undefined;
  const rank = q * all;
  let [low, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      // Only the lower bound of the last bucket is known.
      if (bound === Number.POSITIVE_INFINITY) return low;
      return low + (bound - low) * ((rank - below) / (count - below || 1));
    }
    [low, below] = [bound, count];
  }
  return low;
}

function cumulative(metrics: Metrics, name: string): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
    const bound = labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  return counts;
}
