/**
 * The part of bench:report for the approximate searches of `npm run bench:peers`: recall against the time of
 * a query, with our exact result as one point.
 */
import { COLOURS, chart } from "./chart.mjs";
import { describeRun, isBusy, medianOf } from "./machine.mjs";

const OURS = "Lodestone";
/** For the headline: the time at which an index first reaches each recall. */
const RECALLS = [0.95, 0.98, 0.985, 0.99];
/** Below this recall an answer is hardly a top ten; the chart begins here. */
const LEAST_RECALL = 0.85;
const COLOUR_OF = { "hnswlib-node HNSW": COLOURS.oursPlain, "usearch HNSW": COLOURS.third };

const milliseconds = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(1));
const seconds = (ms) => (ms < 10_000 ? (ms / 1000).toFixed(1) : (ms / 1000).toFixed(0));
const megabytes = (bytes) => (bytes == null ? "" : Math.round(bytes / 1e6).toLocaleString("en"));

/**
 * @returns {Promise<{headline: string, full: string, charts: Record<string, string>}>} Markdown, and SVG by
 *   the file's name.
 */
export async function reportApproximate(run) {
  const { machine, k, versions, measured, skipped } = run;
  const isInterrupted = isBusy(machine, medianOf(run.loads ?? []));
  /**
   * The time of a point. If other programs interrupted searches, which affects long ones more than short
   * ones, only processor time can be compared.
   */
  const timeOf = ({ milliseconds: ms, cpuMilliseconds: cpu }) => (isInterrupted ? cpu : ms).median;
  const unit = isInterrupted ? "ms of CPU time" : "ms";
  const sets = [...new Set(measured.map(({ set }) => set))];
  const of = (set) => measured.filter((entry) => entry.set === set);
  const oursIn = (set) => of(set).find(({ name }) => name === OURS);
  const exactMs = (set) => timeOf(oursIn(set).points[0]);
  const where = describeRun(run);

  /** The time at an index's first point with that recall; "–" if no point reaches it. */
  function timeAt(entry, recall) {
    const point = entry.points.find((one) => one.recall >= recall);
    return point === undefined ? "–" : milliseconds(timeOf(point));
  }

  function headline() {
    return [
      "![Recall against the time of a query: HNSW at many settings, and exact search](bench-approximate.svg)",
      "",
      `| cosine, top ${k}, one thread each | | build, s of CPU time | memory, MB | ${RECALLS.map((recall) => `recall ${recall}`).join(" | ")} | exact |`,
      `|---|---|---|---|${RECALLS.map(() => "---|").join("")}---|`,
      ...sets.flatMap((set) =>
        of(set).map((entry) => {
          const [isOurs, common] = [entry.name === OURS, `${seconds(entry.buildCpuMs)} | ${megabytes(entry.memoryBytes)}`];
          const cells = isOurs ? RECALLS.map(() => "") : RECALLS.map((recall) => timeAt(entry, recall));
          const exact = isOurs ? `**${milliseconds(exactMs(set))}**` : "";
          return `| ${isOurs ? set : ""} | ${isOurs ? `**${OURS}**` : entry.name} | ${common} | ${cells.join(" | ")} | ${exact} |`;
        }),
      ),
      "",
      `Cells are ${unit} per query. HNSW with M 16 and efConstruction 200, at its first setting with that recall. ${where}.`,
    ].join("\n");
  }

  function table(set) {
    const ours = oursIn(set);
    const indexes = of(set).filter(({ name }) => name !== OURS);
    const expansions = [...new Set(indexes.flatMap(({ points }) => points.map(({ ef }) => ef)))];
    const cell = (point) => (point === undefined ? "" : `${point.recall.toFixed(3)}: ${milliseconds(timeOf(point))}`);
    return [
      `### ${set}, approximate`,
      "",
      `${ours.description}. C scan: ${ours.scan ? `${milliseconds(ours.scan.median)} ms` : "none"}.`,
      "",
      `| ef | ${OURS}, exact | ${indexes.map(({ name }) => name).join(" | ")} |`,
      `|---|---|${indexes.map(() => "---|").join("")}`,
      `| build, s of CPU time | ${seconds(ours.buildCpuMs)} | ${indexes.map(({ buildCpuMs }) => seconds(buildCpuMs)).join(" | ")} |`,
      `| memory, MB | ${megabytes(ours.memoryBytes)} | ${indexes.map(({ memoryBytes }) => megabytes(memoryBytes)).join(" | ")} |`,
      `| | 1: **${milliseconds(exactMs(set))}** | ${indexes.map(() => "").join(" | ")} |`,
      ...expansions.map((ef) => `| ${ef} | | ${indexes.map(({ points }) => cell(points.find((point) => point.ef === ef))).join(" | ")} |`),
      "",
    ];
  }

  const full = [
    `Cells: recall: ${unit} per query (median). HNSW with M 16 and efConstruction 200, float32, one thread. ${where}.`,
    "",
    ...sets.flatMap(table),
    `Versions: ${Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", ")}.`,
    ...(skipped.length > 0 ? ["", "Not measured:", "", ...skipped.map(({ set, name, reason }) => `- ${name}, ${set}: ${reason}`)] : []),
  ].join("\n");
  return {
    headline: headline(),
    full,
    charts: { "bench-approximate.svg": await approximateChart({ measured, sets, timeOf, exactMs, unit, k, where }) },
  };
}

function approximateChart({ measured, sets, timeOf, exactMs, unit, k, where }) {
  const names = [...new Set(measured.map(({ name }) => name))];
  const built = (set) =>
    measured
      .filter((entry) => entry.set === set)
      .map(({ name, buildCpuMs }) => `${name} ${seconds(buildCpuMs)} s`)
      .join(", ");
  const values = measured.flatMap(({ set, name, points }) =>
    points
      .filter(({ recall }) => recall >= LEAST_RECALL)
      .map((point) => ({ name, recall: point.recall, ms: timeOf(point), ef: point.ef ?? null, panel: set })),
  );
  const title = `Recall of the top ${k} against the time of a query: HNSW, and exact search`;
  const times = values.map(({ ms }) => ms);
  const domain = [0.9 * Math.min(...times), 1.1 * Math.max(...times)];
  const x = {
    field: "ms",
    type: "quantitative",
    scale: { type: "log", domain, nice: false },
    axis: { title: `${unit} per query, logarithmic`, tickCount: 6, format: "~g" },
  };
  const y = { field: "recall", type: "quantitative", scale: { domain: [LEAST_RECALL, 1.005] }, axis: { title: "recall", format: ".2f" } };
  const color = {
    field: "name",
    type: "nominal",
    scale: { domain: names, range: names.map((name) => (name === OURS ? COLOURS.ours : (COLOUR_OF[name] ?? COLOURS.other))) },
  };
  const panel = (set) => ({
    title: { text: set, subtitle: `built in: ${built(set)}`, fontSize: 12 },
    width: 560,
    height: 240,
    data: { values: values.filter((value) => value.panel === set) },
    layer: [
      { mark: { type: "rule", strokeDash: [4, 3], color: COLOURS.ours }, encoding: { x: { ...x, field: undefined, datum: exactMs(set) } } },
      { transform: [{ filter: "datum.ef !== null" }], mark: { type: "line", strokeWidth: 2 }, encoding: { x, y, color } },
      {
        transform: [{ filter: "datum.ef !== null" }],
        mark: { type: "point", filled: true, size: 36, opacity: 1 },
        encoding: { x, y, color },
      },
      {
        transform: [{ filter: "datum.ef === null" }],
        mark: { type: "point", shape: "diamond", filled: true, size: 220, opacity: 1 },
        encoding: { x, y, color },
      },
      {
        transform: [{ filter: "datum.ef === null" }],
        mark: { type: "text", align: "left", baseline: "top", dx: 8, dy: 8 },
        encoding: { x, y, text: { value: `exact, ${milliseconds(exactMs(set))} ms` } },
      },
    ],
  });
  return chart(
    { title, vconcat: sets.map(panel), spacing: 24 },
    {
      title,
      description: `${values.map(({ panel: set, name, ef, recall, ms }) => `${set}, ${name}${ef === null ? "" : `, ef ${ef}`}: ${recall.toFixed(3)} in ${milliseconds(ms)} ms`).join("; ")}. ${where}.`,
    },
  );
}
