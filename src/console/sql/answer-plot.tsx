/** Columns of an answer as a plot, with axes: which of them, against what, and drawn how is the reader's choice. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import uPlot from "uplot";
import { Select } from "../parts/form.tsx";
import { counted, shortNumber } from "../parts/numbers.ts";
import { PlotFrame, type PlotLook } from "../parts/plot-frame.tsx";
import { isNumber, type SqlAnswer, textOf } from "./answer-values.ts";

type Drawn = "bars" | "line" | "points";

const HEIGHT = 260;
const TIMES = new Set(["timestamptz", "timestamp", "date"]);
/** Of a category below the axis. */
const MAX_LABEL = 14;

export function AnswerPlot({ answer }: { answer: SqlAnswer }): JSX.Element {
  const { columns } = answer;
  const [chosenY, setY] = useState("");
  const [chosenX, setX] = useState("");
  const [drawn, setDrawn] = useState<Drawn>("bars");
  const options = columns.map(({ name }, i) => [String(i), name] as const);
  // The next answer may have other columns.
  const y = chosenY !== "" && isNumber(columns[Number(chosenY)]?.type ?? "") ? chosenY : "";
  const x = chosenX !== "" && columns[Number(chosenX)] !== undefined ? chosenX : "";
  return (
    <>
      <div class="plot-choices">
        <Select
          label="Plot"
          value={y}
          options={[["", "nothing"], ...options.filter(([i]) => isNumber(columns[Number(i)]!.type))]}
          onChoose={setY}
        />
        {y !== "" && (
          <>
            <Select label="Against" value={x} options={[["", "row"], ...options]} onChoose={setX} />
            <Select
              label="Drawn as"
              value={drawn}
              options={(["bars", "line", "points"] as const).map((kind) => [kind, kind] as const)}
              onChoose={(kind) => setDrawn(kind as Drawn)}
            />
          </>
        )}
      </div>
      {y !== "" && <Plot answer={answer} y={Number(y)} x={x === "" ? undefined : Number(x)} drawn={drawn} />}
    </>
  );
}

/** Where the points stand along the axis. Texts are categories: each row has a place of its own, and its text below it. */
interface Places {
  readonly name: string;
  readonly kind: "row" | "number" | "time" | "category";
  readonly at: readonly number[];
  readonly texts: readonly string[];
}

function placesOf({ columns, rows }: SqlAnswer, x: number | undefined): Places {
  const column = x === undefined ? undefined : columns[x];
  if (x === undefined || column === undefined) return { name: "row", kind: "row", at: rows.map((_, i) => i + 1), texts: [] };
  const { name, type } = column;
  if (isNumber(type)) return { name, kind: "number", at: rows.map((row) => numberOf(row[x])), texts: [] };
  if (TIMES.has(type)) return { name, kind: "time", at: rows.map((row) => Date.parse(textOf(row[x])) / 1000), texts: [] };
  return { name, kind: "category", at: rows.map((_, i) => i), texts: rows.map((row) => textOf(row[x])) };
}

const numberOf = (value: unknown): number => (value === null || value === undefined ? Number.NaN : Number(value));

interface PlotProps {
  answer: SqlAnswer;
  y: number;
  /** undefined: in the order of the rows. */
  x: number | undefined;
  drawn: Drawn;
}

function Plot({ answer, y, x, drawn }: PlotProps): JSX.Element {
  const { places, points, data } = useMemo(() => {
    const found = placesOf(answer, x);
    const all = answer.rows.map((row, i) => [found.at[i] as number, numberOf(row[y])] as const);
    const finite = all.filter((point) => point.every(Number.isFinite)).toSorted(([a], [b]) => a - b);
    return { places: found, points: finite, data: [finite.map(([at]) => at), finite.map(([, value]) => value)] as uPlot.AlignedData };
  }, [answer, y, x]);
  const name = answer.columns[y]?.name ?? "";
  const values = points.map(([, value]) => value);
  const missing = answer.rows.length - points.length;
  const said = `${name} against ${places.name}: ${points.length} values from ${shortNumber(Math.min(...values))} to ${shortNumber(Math.max(...values))}`;
  return (
    <>
      <div class="answer-plot" role="img" aria-label={points.length === 0 ? `${name} against ${places.name}: no values` : said}>
        <PlotFrame
          data={data}
          optionsOf={(look) => optionsOf(look, name, places, drawn)}
          about={JSON.stringify([name, places.name, places.kind, drawn, places.texts])}
          height={HEIGHT}
        />
      </div>
      {missing > 0 && <p class="muted small">{counted(missing, "row")} without a value to plot.</p>}
    </>
  );
}

function optionsOf({ color, axis }: PlotLook, name: string, { name: against, kind, texts }: Places, drawn: Drawn) {
  const isContinuous = kind === "number" || kind === "time";
  const accent = color("--accent");
  const xRange = (_: uPlot, least: number, most: number): uPlot.Range.MinMax => {
    const around = isContinuous ? (most - least) * 0.02 || 1 : 0.6;
    return [least - around, most + around];
  };
  const yRange = (_: uPlot, least: number, most: number): uPlot.Range.MinMax => {
    // The length of a bar is its value.
    const [low, high] = drawn === "bars" ? [Math.min(0, least), Math.max(0, most)] : [least, most];
    const around = (high - low) * 0.05 || 1;
    return [low < 0 || drawn !== "bars" ? low - around : 0, high + around];
  };
  return {
    scales: { x: { time: kind === "time", range: xRange }, y: { range: yRange } },
    axes: [
      {
        ...axis,
        label: against,
        size: 34,
        space: kind === "number" || kind === "row" ? 60 : 110,
        ...(kind === "category" || kind === "row" ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500] } : {}),
        values: (_: uPlot, splits: number[]) => splits.map((at) => tickOf(at, kind, texts, splits)),
      },
      { ...axis, label: name, size: 70, values: (_: uPlot, splits: number[]) => splits.map(shortNumber) },
    ],
    series: [
      {},
      {
        stroke: accent,
        ...(drawn === "bars" ? { fill: accent, paths: uPlot.paths.bars?.({ size: [0.8, 60] }) } : {}),
        ...(drawn === "points" ? { paths: () => null } : {}),
        points: { show: drawn === "points", size: 6, fill: accent },
      },
    ] as uPlot.Series[],
  };
}

const DAY_SECONDS = 86_400;

function tickOf(at: number, kind: Places["kind"], texts: readonly string[], splits: readonly number[]): string {
  if (kind === "category") {
    const text = Number.isInteger(at) ? (texts[at] ?? "") : "";
    return text.length > MAX_LABEL ? `${text.slice(0, MAX_LABEL - 1)}…` : text;
  }
  if (kind !== "time") return shortNumber(at);
  const step = (splits[1] ?? 0) - (splits[0] ?? 0);
  // In UTC, as the answer says it.
  const time = new Date(at * 1000).toISOString();
  return step >= DAY_SECONDS ? time.slice(0, 10) : time.slice(0, 16).replace("T", " ");
}
