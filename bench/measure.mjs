/**
 * Times contenders on one data set. Every answer is verified against the float64 oracle before it is timed.
 * Contenders, with the native C scan among them, take turns query by query. Ratios are of medians. Besides
 * times it reports the bytes of rows that a search touched ÷ those of the float32 data, which does not depend
 * on how busy the machine is.
 */
import { bestOf, exactScores, idOf, verify } from "./oracle.mjs";
import { summarize } from "./statistics.mjs";

/**
 * A search that takes microseconds needs more turns than one of milliseconds. In all about this many float32
 * are searched, within MOST_ROUNDS.
 */
const ELEMENTS_TIMED = 6e9;
const MOST_ROUNDS = 40;
/** For small sets: searched until everything is compiled. */
const WARM_UP_ROWS = 4e6;

/**
 * Measures one data set.
 *
 * @param set      {name, rows, dimension}.
 * @param data     f32[rows + queries][dimension].
 * @param queries  number of queries after the rows; the first `single` of them are asked one by one, all of
 *   them at once.
 * @param native   from startNativeScan, or undefined.
 * @param record   takes each figure: {set, what, plan, milliseconds, ratio?, bytesRatio?,
 *   gigabytesPerSecond?, note?}.
 */
export class SetBench {
  #scores = new Map();

  constructor({ set, data, queries, single, k, rounds, native, record }) {
    Object.assign(this, { set, data, queries, native, record, k });
    this.single = Math.min(single, queries);
    const elements = set.rows * set.dimension * this.single;
    this.rounds = Math.max(rounds, Math.min(MOST_ROUNDS, Math.round((ELEMENTS_TIMED * rounds) / 5 / elements)));
  }

  query(i) {
    const { rows, dimension } = this.set;
    return this.data.subarray((rows + i) * dimension, (rows + i + 1) * dimension);
  }

  /**
   * The right answer to a query. Scores are kept, because all contenders and filters are compared with them.
   */
  #expected(query, similarity, isSelected) {
    const { rows, dimension } = this.set;
    const key = `${query} ${similarity}`;
    if (!this.#scores.has(key)) {
      this.#scores.set(key, exactScores(this.data, rows, dimension, (rows + query) * dimension, similarity));
    }
    return bestOf(this.#scores.get(key), this.k, isSelected);
  }

  /** A query of zeros has no direction. */
  #canAsk(query, similarity) {
    return similarity !== "cosineSimilarity" || this.query(query).some((value) => value !== 0);
  }

  #queriesFor(similarity, count) {
    return Array.from({ length: count }, (_, i) => i).filter((i) => this.#canAsk(i, similarity));
  }

  /**
   * Times one query at a time. Contenders take turns query by query. With `inARow` each runs all queries
   * before the next contender begins: for searches in worker threads, because between two programs in turns
   * the system often wakes both workers on one core (bench/cores.mjs measures that).
   *
   * @param contenders  {plan, run(query) -> answer, index?}[]; with an index, what its searches read is
   *   counted.
   * @param options.single, options.rounds  number of queries, and how often each is asked, if not as usual.
   * @returns the median of the C scan, or undefined.
   */
  async measure(similarity, what, contenders, { isSelected, inARow = false, single = this.single, rounds = this.rounds } = {}) {
    const queries = this.#queriesFor(similarity, single);
    const counts = new Map();
    for (const { plan, run } of contenders)
      for (const query of queries)
        verify(`${this.set.name} ${what} ${plan}`, await run(this.query(query)), this.#expected(query, similarity, isSelected));
    for (const { plan, run, index } of contenders) {
      const counted = [];
      for (const query of queries) {
        await run(this.query(query));
        if (index) counted.push(index.lastScan);
      }
      counts.set(plan, counted);
    }
    const warmUps = Math.floor(WARM_UP_ROWS / (this.set.rows * queries.length));
    for (let i = 0; i < warmUps; i++) for (const { run } of contenders) for (const query of queries) await run(this.query(query));
    const times = await this.#takeTurns(queries, similarity, contenders, inARow, rounds);
    const yardstick = times.get("C").length > 0 ? summarize(times.get("C")) : undefined;
    for (const [plan, values] of times) {
      if (values.length === 0) continue;
      this.#report({ what, plan, milliseconds: summarize(values), yardstick, counts: counts.get(plan) ?? [] });
    }
    return yardstick;
  }

  async #takeTurns(queries, similarity, contenders, inARow, rounds) {
    const times = new Map([["C", []], ...contenders.map(({ plan }) => [plan, []])]);
    const scan = async (query) => {
      if (this.native) times.get("C").push((await this.native.scan(query, similarity)).ms);
    };
    const search = async ({ plan, run }, query) => {
      const vector = this.query(query);
      const start = performance.now();
      await run(vector);
      times.get(plan).push(performance.now() - start);
    };
    for (let round = 0; round < rounds; round++) {
      if (inARow) {
        for (const query of queries) await scan(query);
        for (const contender of contenders) for (const query of queries) await search(contender, query);
        continue;
      }
      for (const [n, query] of queries.entries()) {
        await scan(query);
        // So that nobody always follows the same contender.
        for (let i = 0; i < contenders.length; i++) await search(contenders[(round + n + i) % contenders.length], query);
      }
    }
    return times;
  }

  /**
   * Times all queries in one call; times and bytes are per query.
   * @param contenders  {plan, index}[].
   * @param yardstick   of one query, from `measure`.
   */
  measureMany(similarity, contenders, yardstick) {
    const queries = this.#queriesFor(similarity, this.queries);
    const vectors = queries.map((i) => this.query(i));
    const search = { k: this.k, similarity };
    const what = `${queries.length} queries, per query${similarity === "cosineSimilarity" ? "" : `, ${similarity}`}`;
    const times = new Map(contenders.map(({ plan }) => [plan, []]));
    const counts = new Map();
    const checked = queries.filter((query, at) => query < this.single || at === queries.length - 1);
    for (const { plan, index } of contenders) {
      const answers = index.searchMany(vectors, search);
      for (const query of checked)
        verify(`${this.set.name} ${what} ${plan}`, answers[queries.indexOf(query)], this.#expected(query, similarity));
      const { bytes } = index.lastScan;
      counts.set(plan, [{ bytes: bytes === undefined ? undefined : bytes / queries.length }]);
    }
    for (let i = 0; i < WARM_UP_ROWS / (this.set.rows * queries.length); i++)
      for (const { index } of contenders) index.searchMany(vectors, search);
    for (let round = 0; round < this.rounds; round++) {
      for (const { plan, index } of contenders) {
        const start = performance.now();
        index.searchMany(vectors, search);
        times.get(plan).push((performance.now() - start) / queries.length);
      }
    }
    for (const { plan } of contenders)
      this.#report({ what, plan, milliseconds: summarize(times.get(plan)), yardstick, counts: counts.get(plan) });
  }

  /** @param counts  lastScan of each query, for means. */
  #report({ what, plan, milliseconds, yardstick, counts }) {
    const floatBytes = this.set.rows * this.set.dimension * 4;
    const mean = (key) => counts.reduce((sum, count) => sum + count[key], 0) / counts.length;
    // NaN if nothing was counted, as by an older checkout.
    const [bytes, fullRows, exactRows] = ["bytes", "fullRows", "exactRows"].map(mean);
    this.record({
      set: this.set.name,
      what,
      plan,
      milliseconds,
      ratio: yardstick && milliseconds.median / yardstick.median,
      bytesRatio: Number.isFinite(bytes) ? bytes / floatBytes : undefined,
      gigabytesPerSecond: floatBytes / milliseconds.median / 1e6,
      note: fullRows > 0 ? `${Math.round(fullRows)} rows by whole codes, ${Math.round(exactRows)} exactly` : undefined,
    });
  }
}

/**
 * Fills an index.
 * @returns {object} the speed, also up to the first answer (which may have to wait for learning and coding),
 *   and the memory held.
 */
export function fill(index, set, data) {
  const matrix = data.subarray(0, set.rows * set.dimension);
  const ids = Array.from({ length: set.rows }, (_, row) => idOf(row));
  const start = performance.now();
  index.upsertMany(ids, matrix);
  const storedMs = performance.now() - start;
  index.search(data.subarray(set.rows * set.dimension, (set.rows + 1) * set.dimension), { k: 10, similarity: "l2" });
  const searchableMs = performance.now() - start;
  return {
    rowsPerSecond: (set.rows / storedMs) * 1000,
    rowsPerSecondToFirstAnswer: (set.rows / searchableMs) * 1000,
    memoryRatio: index.memoryBytes / matrix.byteLength,
  };
}

/** One figure as a line of text. */
export function lineOf({ set, what, plan, milliseconds: ms, ratio, bytesRatio, gigabytesPerSecond, note }) {
  const digits = ms.median < 1 ? 3 : 2;
  return [
    set.padEnd(32),
    what.padEnd(26),
    plan.padEnd(12),
    ms.median.toFixed(3).padStart(9),
    `${ms.low.toFixed(digits)}–${ms.high.toFixed(digits)}`.padStart(16),
    (ratio === undefined ? "" : ratio.toFixed(3)).padStart(7),
    (bytesRatio === undefined ? "" : bytesRatio.toFixed(3)).padStart(7),
    (gigabytesPerSecond === undefined ? "" : gigabytesPerSecond.toFixed(1)).padStart(7),
    ` ${note ?? ""}`,
  ].join(" ");
}

export const HEADING = [
  "data".padEnd(32),
  "search".padEnd(26),
  "plan".padEnd(12),
  "ms".padStart(9),
  "10–90 %".padStart(16),
  "÷ C".padStart(7),
  "bytes".padStart(7),
  "GB/s".padStart(7),
].join(" ");
