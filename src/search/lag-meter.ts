/**
 * Measures how long changes wait until searches see them, from the feed's notification to the end of the
 * round that applied them.
 */
const SAMPLES = 1024;

export class LagMeter {
  /** When the oldest change was announced that no round has begun after. */
  #waitingSince: number | undefined;
  /** The same for the current round. */
  #coveringSince: number | undefined;
  readonly #samplesMs = new Float64Array(SAMPLES);
  #sampled = 0;

  changed(): void {
    this.#waitingSince ??= performance.now();
  }

  /** A round starts. It will cover everything announced until now. */
  begin(): void {
    this.#coveringSince ??= this.#waitingSince;
    this.#waitingSince = undefined;
  }

  end(): void {
    if (this.#coveringSince === undefined) return;
    this.#samplesMs[this.#sampled++ % SAMPLES] = performance.now() - this.#coveringSince;
    this.#coveringSince = undefined;
  }

  /** The round failed. The changes that it should have covered keep waiting. */
  fail(): void {
    this.#waitingSince = this.#coveringSince ?? this.#waitingSince;
    this.#coveringSince = undefined;
  }

  /** Age in ms of the oldest change that searches do not see yet; 0 if there is none. */
  get currentMs(): number {
    const since = this.#coveringSince ?? this.#waitingSince;
    return since === undefined ? 0 : performance.now() - since;
  }

  /** Over the last 1,024 rounds that had changes; 0 if there were none. */
  quantileMs(quantile: number): number {
    const count = Math.min(this.#sampled, SAMPLES);
    if (count === 0) return 0;
    const sorted = this.#samplesMs.slice(0, count).sort();
    return sorted[Math.min(count - 1, Math.floor(quantile * count))]!;
  }
}
