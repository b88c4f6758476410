/**
 * The result of a statement as a table; numbers of one column as a plot. A result has at most 1,000 rows, so
 * all of them are in the page.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { shortNumber } from "../search/terms.ts";

export interface SqlAnswer {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
  readonly total: number;
  readonly rowCount: number;
  readonly warning?: string;
}

const NUMBERS = new Set(["int2", "int4", "int8", "float4", "float8", "numeric"]);
const MAX_SHOWN = 300;
const MAX_BARS = 200;

export function ResultTable({ answer: { columns, rows } }: { answer: SqlAnswer }): JSX.Element {
  const numeric = columns.flatMap(({ type }, i) => (NUMBERS.has(type) ? [i] : []));
  const [plotted, setPlotted] = useState<number | undefined>(undefined);
  const plot = plotted !== undefined && numeric.includes(plotted) ? plotted : undefined;
  return (
    <>
      {numeric.length > 0 && rows.length > 1 && (
        <div class="actions small">
          <span class="muted">Plot</span>
          <div class="segmented" role="group" aria-label="Plot a column">
            <button type="button" aria-pressed={plot === undefined} onClick={() => setPlotted(undefined)}>
              none
            </button>
            {numeric.map((i) => (
              <button key={i} type="button" aria-pressed={plot === i} onClick={() => setPlotted(i)}>
                {columns[i]?.name}
              </button>
            ))}
          </div>
        </div>
      )}
      {plot !== undefined && <BarPlot name={columns[plot]?.name ?? ""} values={rows.map((row) => Number(row[plot]))} />}
      <div class="table-scroll result-scroll" role="region" tabIndex={0} aria-label="Rows of the answer">
        <table class="plain">
          <thead>
            <tr>
              {columns.map(({ name, type }, i) => (
                <th key={i} scope="col" class={NUMBERS.has(type) ? "number" : ""}>
                  <bdi>{name}</bdi> <span class="type">{type}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) => (
              <tr key={i}>
                {columns.map(({ type }, j) => (
                  <td key={j} class={NUMBERS.has(type) ? "number" : ""}>
                    <bdi>{shown(row[j])}</bdi>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "∅";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function BarPlot({ name, values }: { name: string; values: readonly number[] }): JSX.Element {
  const bars = values.slice(0, MAX_BARS).map((value) => (Number.isFinite(value) ? value : 0));
  const most = Math.max(0, ...bars);
  const least = Math.min(0, ...bars);
  const height = (value: number): number => (Math.abs(value) / (most - least || 1)) * 100;
  const zero = height(most);
  return (
    <svg
      class="bar-plot"
      viewBox={`0 0 ${bars.length * 10} 100`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${name}: ${bars.length} values from ${shortNumber(Math.min(...bars))} to ${shortNumber(Math.max(...bars))}`}
    >
      {bars.map((value, i) => (
        <rect
          key={i}
          class={value < 0 ? "negative" : "positive"}
          x={i * 10 + 1}
          width="8"
          y={value < 0 ? zero : zero - height(value)}
          height={height(value)}
        >
          <title>{shortNumber(value)}</title>
        </rect>
      ))}
    </svg>
  );
}
