/** One cell: a value to read, or its text to edit, with the server's message below it. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { messageOf, type Place } from "../api/client.ts";
import { Swatch } from "../parts/icons.tsx";
import { shortNumber } from "../parts/numbers.ts";
import { grouped, normOf } from "../search/terms.ts";
import { useKept } from "../state/kept.ts";
import { hrefOf } from "../state/route.ts";
import { type ColumnSchema, type TableSchema, tables } from "../state/server-content.ts";
import { useTitles } from "../state/titles.ts";
import { linkId, shortText, textOf } from "./cell-text.ts";

interface CellValueProps {
  column: ColumnSchema;
  value: unknown;
  place: Place;
  /** However long it is. */
  isWhole?: boolean;
}

export function CellValue({ column, value, place, isWhole = false }: CellValueProps): JSX.Element | null {
  if (value === undefined || value === null) return <span class="muted">–</span>;
  if (column.type === "vector" && Array.isArray(value)) return <VectorStrip vector={value as number[]} />;
  const target = linkId(value);
  if (column.type === "link" && column.link !== undefined && target !== undefined) {
    const linked = tables.value?.find(({ name }) => name === column.link?.table);
    if (linked !== undefined) return <LinkValue place={place} table={linked} id={target} />;
  }
  const text = isWhole ? textOf(column, value) : shortText(column, value);
  return (
    <>
      {/^#[0-9a-f]{6}$/i.test(text) && <Swatch color={text} />}
      <bdi>{text}</bdi>
    </>
  );
}

/** Leads to the record; called by its title. */
function LinkValue({ place, table, id }: { place: Place; table: TableSchema; id: string }): JSX.Element {
  const titles = useTitles(place, table, [id]);
  return (
    <a href={hrefOf("table", place, table.name, id)} title={id}>
      <bdi>{titles.of(id)}</bdi>
    </a>
  );
}

interface CellEditorProps {
  /** Under this name the text is kept while it is being edited. */
  kept: string;
  column: ColumnSchema;
  /** What the cell shows. */
  shown: string;
  /** The text, and why it was refused, when it was saved before. */
  refused?: { readonly text: string; readonly fault: string } | undefined;
  /** Only called with another text. @throws the server's objection. */
  onSave: (text: string) => Promise<void>;
  onClose: () => void;
}

export function CellEditor({ kept, column, shown, refused, onSave, onClose }: CellEditorProps): JSX.Element {
  const [text, setText] = useKept(kept, () => refused?.text ?? shown);
  const editor = useRef<HTMLDivElement>(null);
  const [isDate] = useState(() => column.type === "datetime" && (text === "" || TIME.test(text)));
  const [fault, setFault] = useState(refused?.fault ?? "");
  const [isBusy, setBusy] = useState(false);
  // Before the next key arrives: typing in a cell opens its editor, and the second letter belongs to it already.
  useLayoutEffect(() => {
    const element = editor.current as HTMLDivElement;
    const box = element.getBoundingClientRect();
    const frame = (element.closest(".grid") ?? element).getBoundingClientRect();
    // In the last columns and rows it opens to where there is room.
    if (box.right > frame.right) element.classList.add("leftward");
    if (box.bottom > frame.bottom) element.classList.add("upward");
    // Of the double click.
    getSelection()?.removeAllRanges();
    const control = element.querySelector<HTMLElement>("textarea, select, input");
    // A cell that opens again because it was refused leaves the focus where the user has gone meanwhile.
    const cell = element.closest('[role="gridcell"]');
    const isElsewhere = document.activeElement !== document.body && cell?.contains(document.activeElement) !== true;
    if (refused === undefined || !isElsewhere) control?.focus();
    // What was begun by typing goes on at its end.
    const at = text === shown ? 0 : text.length;
    if (control instanceof HTMLTextAreaElement) control.setSelectionRange(at, at);
  }, []);
  async function finish(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    try {
      if (text !== shown) await onSave(text);
      onClose();
    } catch (error) {
      setFault(messageOf(error));
      setBusy(false);
    }
  }
  function pressKey(event: KeyboardEvent): void {
    // The grid's own keys must not act while the user is typing.
    event.stopPropagation();
    if (event.key === "Escape") onClose();
    else if (event.key === "Enter" && !event.shiftKey && !(event.target instanceof HTMLButtonElement)) {
      event.preventDefault();
      void finish();
    }
  }
  const common = {
    "aria-label": `New value of ${column.name}`,
    "aria-invalid": fault !== "",
    "aria-describedby": fault === "" ? undefined : "cell-fault",
  };
  return (
    <div ref={editor} class="cell-editor" role="group" aria-label={`Edit ${column.name}`} onKeyDown={pressKey}>
      {column.type === "bool" ? (
        <select {...common} value={text} onChange={(event) => setText(event.currentTarget.value)}>
          {["", "true", "false"].map((option) => (
            <option key={option} value={option} selected={option === text}>
              {option === "" ? "none" : option}
            </option>
          ))}
        </select>
      ) : isDate ? (
        <label class="time-field">
          <input
            {...common}
            type="datetime-local"
            step="1"
            value={text.slice(0, 19)}
            onInput={(event) => setText(timeOf(event.currentTarget.value))}
          />
          UTC
        </label>
      ) : (
        <textarea
          {...common}
          rows={Math.min(MAX_LINES, Math.max(text.length > 60 ? 5 : 1, text.split("\n").length))}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      )}
      {fault !== "" && (
        <p id="cell-fault" class="fault" role="alert">
          {fault}
        </p>
      )}
      <div class="cell-actions">
        <button type="button" class="primary" disabled={isBusy} onClick={() => void finish()}>
          Save
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </div>
  );
}

/** As the server says them, of the years that a field for dates has. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** @param local  of a field for dates: without seconds if they are 0. */
const timeOf = (local: string): string => (local === "" ? "" : `${local.length === 16 ? `${local}:00` : local}Z`);

/** Of a text that is edited; longer ones are scrolled. */
const MAX_LINES = 12;

const MAX_BARS = 32;

/** A vector as a small picture: a bar for each dimension (or group of them), and its norm. */
function VectorStrip({ vector }: { vector: readonly number[] }): JSX.Element {
  const bars = grouped(Float64Array.from(vector), MAX_BARS);
  const most = bars.reduce((top, { value }) => Math.max(top, Math.abs(value)), 0) || 1;
  const norm = shortNumber(normOf(vector));
  return (
    <span class="strip-cell">
      <svg
        class="vector-strip"
        viewBox={`0 0 ${bars.length * 3} 20`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${vector.length} dimensions, norm ${norm}`}
      >
        {bars.map(({ from, value }, i) => {
          const height = Math.max(0.5, (Math.abs(value) / most) * 10);
          return (
            <rect
              key={from}
              class={value < 0 ? "negative" : "positive"}
              x={i * 3 + 0.3}
              width="2.400"
              y={value < 0 ? 10 : 10 - height}
              height={height}
            />
          );
        })}
      </svg>
      <span class="muted" title="Norm">
        {norm}
      </span>
    </span>
  );
}
