/** The answer to a statement: as a table, to copy and to save, and its columns as a plot. */
import type { JSX } from "preact";
import { CopyButton } from "../parts/copy-button.tsx";
import { Menu } from "../parts/menu.tsx";
import { Notice } from "../parts/notice.tsx";
import { counted } from "../parts/numbers.ts";
import { csvCell, saveFile, spreadsheetCell } from "../parts/save-file.ts";
import { AnswerPlot } from "./answer-plot.tsx";
import { isNumber, type SqlAnswer, textOf } from "./answer-values.ts";
import { PlanTree, planOf } from "./plan-tree.tsx";

export interface Answered {
  readonly answer: SqlAnswer;
  /** Of the whole request, as measured by the page. */
  readonly ms: number;
}

interface AnswerProps extends Answered {
  /** The statement that was run after it has failed. */
  isOld: boolean;
}

const MAX_SHOWN = 300;

export function Answer({ answer, ms, isOld }: AnswerProps): JSX.Element {
  const { rowCount, total, warning, columns, rows } = answer;
  const plan = planOf(answer);
  if (plan !== undefined)
    return (
      <section class={`card stack${isOld ? " old-answer" : ""}`} aria-label={isOld ? "Earlier answer" : "Answer"}>
        <div class="heading">
          <p role="status" class="muted small">
            {isOld ? "Before the error: " : ""}
            How the statement would be run. Nothing was changed.
          </p>
          <CopyButton label="Copy" text={() => JSON.stringify(rows[0]?.[0], null, 2)} />
        </div>
        <PlanTree plan={plan} />
      </section>
    );
  const done = columns.length === 0 ? `${counted(rowCount, "row")} changed` : counted(total, "row");
  return (
    <section class={`card stack${isOld ? " old-answer" : ""}`} aria-label={isOld ? "Earlier answer" : "Answer"}>
      <div class="heading">
        <p role="status" class="muted small">
          {isOld ? "Before the error: " : ""}
          {done} in {ms.toFixed(0)} ms
        </p>
        {rows !== undefined && rows.length > 0 && (
          <div class="actions">
            <CopyButton label="Copy" text={() => linesOf(answer, tabless, "\t", "\n")} />
            <Menu label="Export">
              <button type="button" onClick={() => saveCsv(answer, "answer.csv", csvCell)}>
                CSV
              </button>
              <button type="button" onClick={() => saveCsv(answer, "answer.spreadsheet.csv", spreadsheetCell)}>
                CSV for spreadsheets
              </button>
            </Menu>
          </div>
        )}
      </div>
      {warning !== undefined && <Notice>{warning}</Notice>}
      {rows !== undefined && rows.length > 1 && columns.some(({ type }) => isNumber(type)) && <AnswerPlot answer={answer} />}
      {columns.length > 0 && <ResultTable answer={answer} />}
    </section>
  );
}

function ResultTable({ answer: { columns, rows } }: { answer: SqlAnswer }): JSX.Element {
  return (
    <div class="table-scroll result-scroll" role="region" tabIndex={0} aria-label="Rows of the answer">
      <table class="plain">
        <thead>
          <tr>
            {columns.map(({ name, type }, i) => (
              <th key={i} scope="col" class={isNumber(type) ? "number" : ""}>
                <bdi>{name}</bdi> <span class="type">{type.replace(/^_(.*)/, "$1[]")}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {columns.map(({ type }, j) => (
                <td key={j} class={isNumber(type) ? "number" : ""}>
                  <bdi>{shown(row[j])}</bdi>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "∅";
  const text = textOf(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

const tabless = (text: string): string => text.replace(/[\t\r\n]+/g, " ");

/** A header line and the rows. @param cellOf  how a text stands between the separators; numbers are no formulas. */
function linesOf({ columns, rows }: SqlAnswer, cellOf: (text: string) => string, separator: string, end: string): string {
  const lines = rows.map((row) => columns.map(({ type }, i) => (isNumber(type) ? textOf(row[i]) : cellOf(textOf(row[i])))));
  return [columns.map(({ name }) => cellOf(name)), ...lines].map((cells) => cells.join(separator) + end).join("");
}

const saveCsv = (answer: SqlAnswer, name: string, cellOf: (text: string) => string): void =>
  saveFile(new Blob([linesOf(answer, cellOf, ",", "\r\n")], { type: "text/csv" }), name);
