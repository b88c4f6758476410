/** SQL over HTTP: a statement with its parameters, its result, and the position of an error. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, branchPath, call, messageOf, type Place } from "../api/client.ts";
import { NoPlace } from "../parts/current-table.tsx";
import { Field, TextField } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault, Notice } from "../parts/notice.tsx";
import { shortNumber } from "../parts/numbers.ts";
import { useKept } from "../state/kept.ts";
import { mayWrite } from "../state/page-session.ts";
import { route } from "../state/route.ts";
import { currentTable, tables } from "../state/server-content.ts";
import { SqlEditor } from "./sql-editor.tsx";

export function SqlView(): JSX.Element {
  const { place } = route.value;
  if (place === undefined || tables.value === undefined) return <NoPlace />;
  return <Sql key={branchPath(place)} place={place} />;
}

interface Answered {
  readonly answer: SqlAnswer;
  /** Of the whole request, as measured by the page. */
  readonly ms: number;
}

function Sql({ place }: { place: Place }): JSX.Element {
  const table = currentTable.value ?? tables.value?.[0];
  const branch = branchPath(place);
  const [text, setText] = useKept(
    `sql ${branch}`,
    () => statements(place)[0] ?? (table === undefined ? "" : `SELECT *\nFROM "${table.name.replaceAll('"', '""')}"\nLIMIT 20`),
  );
  const [replacement, setReplacement] = useState<{ text: string } | undefined>(undefined);
  const [paramsText, setParamsText] = useKept(`parameters ${branch}`, () => "");
  const [paramsFault, setParamsFault] = useState("");
  const [fault, setFault] = useState<{ at: number | undefined; message: string } | undefined>(undefined);
  const [answered, setAnswered] = useKept<Answered | undefined>(`answer ${branch}`, () => undefined);
  const [isBusy, setBusy] = useState(false);

  async function run(): Promise<void> {
    if (isBusy) return;
    setFault(undefined);
    setParamsFault("");
    const params = parseParams(paramsText);
    if (params === undefined) {
      setParamsFault('Expected a list in JSON, such as [1, "red"].');
      return;
    }
    setBusy(true);
    const beganMs = performance.now();
    try {
      const body = { statement: text, responseType: "array", ...(params.length === 0 ? {} : { params }) };
      const answer = await call<SqlAnswer>("POST", `${branchPath(place)}/sql`, body);
      setAnswered({ answer, ms: performance.now() - beganMs });
      keepStatement(place, text);
    } catch (error) {
      const message = messageOf(error);
      if (error instanceof ApiError && /\bparams\b|\bparameters?\b/i.test(message)) setParamsFault(message);
      else setFault({ at: placeOf(message, text), message });
    }
    setBusy(false);
  }

  const earlier = statements(place);
  return (
    <div class="stack">
      <section class="card sql-card" aria-label="Statement">
        <SqlEditor
          start={text}
          replacement={replacement}
          tables={tables.value ?? []}
          table={table?.name}
          fault={fault}
          onChange={setText}
          onRun={() => void run()}
        />
        {fault !== undefined && <Fault>{fault.message}</Fault>}
        <div class="sql-controls">
          <TextField
            label="Parameters"
            fault={paramsFault}
            class="code"
            placeholder='for $1, $2 …: [1, "red"]'
            value={paramsText}
            onInput={setParamsText}
          />
          {earlier.length > 0 && (
            <Field label="Earlier">
              {(ids) => (
                <select
                  {...ids}
                  value=""
                  onChange={(event) => setReplacement({ text: earlier[Number(event.currentTarget.value)] ?? text })}
                >
                  <option value="">–</option>
                  {earlier.map((statement, i) => (
                    <option key={statement} value={i}>
                      {statement.replace(/\s+/g, " ").slice(0, 80)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
          <button type="button" class="primary" disabled={isBusy} onClick={() => void run()}>
            <Icon name="play" /> {isBusy ? "Running …" : "Run"}
          </button>
        </div>
        <p class="hint">Ctrl or ⌘ with Enter runs it.{mayWrite.value ? "" : " This key may only read."}</p>
      </section>
      {answered !== undefined && <Answer {...answered} />}
    </div>
  );
}

function Answer({ answer, ms }: Answered): JSX.Element {
  const { rowCount, total, warning, columns } = answer;
  const rows = (count: number): string => `${count.toLocaleString("en")} ${count === 1 ? "row" : "rows"}`;
  return (
    <section class="card stack" aria-label="Answer">
      <p role="status" class="muted small">
        {columns.length === 0 ? `${rows(rowCount)} changed` : rows(total)} in {ms.toFixed(0)} ms
      </p>
      {warning !== undefined && <Notice>{warning}</Notice>}
      {columns.length > 0 && <ResultTable answer={answer} />}
    </section>
  );
}

function parseParams(text: string): readonly unknown[] | undefined {
  if (text.trim() === "") return [];
  try {
    const params: unknown = JSON.parse(text);
    return Array.isArray(params) ? params : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The server gives the position as "(at character 8)", counted from one in characters; offsets here count UTF-16
 * units. undefined: there is no position.
 */
function placeOf(message: string, text: string): number | undefined {
  const character = /\(at character (\d+)\)/.exec(message)?.[1];
  if (character === undefined) return undefined;
  return [...text].slice(0, Number(character) - 1).join("").length;
}

interface SqlAnswer {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
  readonly total: number;
  readonly rowCount: number;
  readonly warning?: string;
}

const NUMBERS = new Set(["int2", "int4", "int8", "float4", "float8", "numeric"]);
const MAX_SHOWN = 300;

/**
 * The result of a statement as a table; numbers of one column as a plot. A result has at most 1,000 rows, so
 * all of them are in the page.
 */
function ResultTable({ answer: { columns, rows } }: { answer: SqlAnswer }): JSX.Element {
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
  const bars = values.map((value) => (Number.isFinite(value) ? value : 0));
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

const MOST = 30;
const MOST_CHARACTERS = 20_000;

const keyOf = (place: Place): string => `lodestone.sql ${branchPath(place)}`;

/** Recent statements, kept in this tab's session for each branch. Latest first. */
function statements(place: Place): readonly string[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(keyOf(place)) ?? "[]");
    return Array.isArray(kept) ? kept.map(String) : [];
  } catch {
    return [];
  }
}

function keepStatement(place: Place, statement: string): void {
  if (statement.length > MOST_CHARACTERS) return;
  const kept = [statement, ...statements(place).filter((other) => other !== statement)].slice(0, MOST);
  sessionStorage.setItem(keyOf(place), JSON.stringify(kept));
}
