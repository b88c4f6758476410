/** SQL over HTTP: a statement with its parameters, its result, and the position of an error. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, call, messageOf } from "../api/client.ts";
import { branchPath, type Place } from "../api/paths.ts";
import { Field } from "../parts/field.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault, Notice, Waiting } from "../parts/notice.tsx";
import { mayWrite } from "../state/page-session.ts";
import { route } from "../state/route.ts";
import { currentTable, tables } from "../state/server-content.ts";
import { ResultTable, type SqlAnswer } from "./result-table.tsx";
import { SqlEditor } from "./sql-editor.tsx";
import { keepStatement, statements } from "./statement-history.ts";

export function SqlView(): JSX.Element {
  const { place } = route.value;
  if (place === undefined || tables.value === undefined) return <Waiting what="Reading the schema …" />;
  return <Sql key={branchPath(place)} place={place} />;
}

interface Answered {
  readonly answer: SqlAnswer;
  /** Of the whole request, as measured by the page. */
  readonly ms: number;
}

function Sql({ place }: { place: Place }): JSX.Element {
  const table = currentTable.value ?? tables.value?.[0];
  const [text, setText] = useState(
    () => statements(place)[0] ?? (table === undefined ? "" : `SELECT *\nFROM "${table.name.replaceAll('"', '""')}"\nLIMIT 20`),
  );
  const [replacement, setReplacement] = useState<{ text: string } | undefined>(undefined);
  const [paramsText, setParamsText] = useState("");
  const [paramsFault, setParamsFault] = useState("");
  const [fault, setFault] = useState<{ at: number | undefined; message: string } | undefined>(undefined);
  const [answered, setAnswered] = useState<Answered | undefined>(undefined);
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
          <Field label="Parameters" fault={paramsFault}>
            {(ids) => (
              <input
                {...ids}
                class="code"
                spellcheck={false}
                placeholder='for $1, $2 …: [1, "red"]'
                value={paramsText}
                onInput={(event) => setParamsText(event.currentTarget.value)}
              />
            )}
          </Field>
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
