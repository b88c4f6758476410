/** SQL over HTTP: a statement with its parameters, its result, and the position of an error. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, branchPath, call, messageOf, type Place } from "../api/client.ts";
import { NoPlace } from "../parts/current-table.tsx";
import { Field, TextField } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault } from "../parts/notice.tsx";
import { useKept } from "../state/kept.ts";
import { mayWrite } from "../state/page-session.ts";
import { route, tell } from "../state/route.ts";
import { currentTable, tables } from "../state/server-content.ts";
import type { SqlAnswer } from "./answer-values.ts";
import { SavedMenu } from "./saved-menu.tsx";
import { Answer, type Answered } from "./sql-answer.tsx";
import { SqlEditor } from "./sql-editor.tsx";
import { keepRecent, MOST_CHARACTERS, recentStatements } from "./sql-statements.ts";

export function SqlView(): JSX.Element {
  const { place } = route.value;
  if (place === undefined || tables.value === undefined) return <NoPlace />;
  return <Sql key={branchPath(place)} place={place} />;
}

/** A shorter statement needs no button that stops it. */
const BUSY_MS = 300;

const EXPLAIN = "EXPLAIN (FORMAT JSON) ";

function Sql({ place }: { place: Place }): JSX.Element {
  const table = currentTable.value ?? tables.value?.[0];
  const { params: told } = route.value;
  const branch = branchPath(place);
  const [text, setText] = useKept(
    `sql ${branch}`,
    () => recentStatements(place)[0] ?? (table === undefined ? "" : `SELECT *\nFROM "${table.name.replaceAll('"', '""')}"\nLIMIT 20`),
  );
  const [replacement, setReplacement] = useState<{ text: string } | undefined>(undefined);
  const [paramsText, setParamsText] = useKept(`parameters ${branch}`, () => "");
  const [paramsFault, setParamsFault] = useState("");
  const [fault, setFault] = useState<{ at: number | undefined; message: string } | undefined>(undefined);
  const [answered, setAnswered] = useKept<Answered | undefined>(`answer ${branch}`, () => undefined);
  const [isBusy, setBusy] = useState(false);
  const [isSlow, setSlow] = useState(false);
  const [isStopped, setStopped] = useState(false);
  const running = useRef<AbortController | undefined>(undefined);

  // Of a link, or by Back. It is not run by itself: it may change something.
  useEffect(() => {
    if (told.sql === undefined || told.sql === text) return;
    setText(told.sql);
    setReplacement({ text: told.sql });
    setParamsText(told.params ?? "");
  }, [told.sql]);

  /** @param prefix  stands before the statement; the positions of errors do not count it. */
  async function run(prefix = ""): Promise<void> {
    if (isBusy) return;
    setFault(undefined);
    setParamsFault("");
    const params = parseParams(paramsText);
    if (params === undefined) {
      setParamsFault('Expected a list in JSON, such as [1, "red"].');
      return;
    }
    setStopped(false);
    setBusy(true);
    const controller = new AbortController();
    running.current = controller;
    const timer = setTimeout(() => setSlow(true), BUSY_MS);
    const beganMs = performance.now();
    try {
      const body = { statement: prefix + text, responseType: "array", ...(params.length === 0 ? {} : { params }) };
      const answer = await call<SqlAnswer>("POST", `${branchPath(place)}/sql`, body, controller.signal);
      setAnswered({ answer, ms: performance.now() - beganMs });
      keepRecent(place, text);
      tell({ sql: text.length > MOST_CHARACTERS ? undefined : text, params: paramsText });
    } catch (error) {
      const message = messageOf(error).replace(AT_CHARACTER, (_, at: string) => `(at character ${Number(at) - prefix.length})`);
      if (controller.signal.aborted) setStopped(true);
      else if (error instanceof ApiError && /\bparams\b|\bparameters?\b/i.test(message)) setParamsFault(message);
      else setFault({ at: placeOf(message, text), message });
    }
    clearTimeout(timer);
    setSlow(false);
    setBusy(false);
  }

  function take(statement: string, params: string): void {
    setReplacement({ text: statement });
    setParamsText(params);
  }

  const earlier = recentStatements(place);
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
            <Field label="Recent">
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
          <div class="actions">
            <SavedMenu place={place} text={text} params={paramsText} onTake={(saved) => take(saved.text, saved.params)} />
            {isSlow && (
              <button type="button" onClick={() => running.current?.abort()}>
                Stop
              </button>
            )}
            <button
              type="button"
              disabled={isBusy}
              title="How it would be run, without running it"
              onClick={() => void run(/^\s*EXPLAIN\b/i.test(text) ? "" : EXPLAIN)}
            >
              Explain
            </button>
            <button type="button" class="primary" disabled={isBusy} onClick={() => void run()}>
              <Icon name="play" /> {isBusy ? "Running …" : "Run"}
            </button>
          </div>
        </div>
        <p class="hint" role="status">
          {isStopped
            ? "Stopped. A statement that the server had begun may still have made its changes."
            : `Ctrl+Enter or ⌘+Enter runs the statement.${mayWrite.value ? "" : " This key can only read."}`}
        </p>
      </section>
      {answered !== undefined && <Answer {...answered} isOld={fault !== undefined || paramsFault !== ""} />}
    </div>
  );
}

const AT_CHARACTER = /\(at character (\d+)\)/;

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
  const character = AT_CHARACTER.exec(message)?.[1];
  if (character === undefined) return undefined;
  return [...text].slice(0, Number(character) - 1).join("").length;
}
