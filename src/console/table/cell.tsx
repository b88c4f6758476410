/** One cell: a value to read, or its text to edit, with the server's message below it. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { messageOf, type Place } from "../api/client.ts";
import { Swatch } from "../parts/icons.tsx";
import { shortNumber } from "../parts/numbers.ts";
import { grouped, normOf } from "../search/terms.ts";
import { useKept } from "../state/kept.ts";
import { hrefOf } from "../state/route.ts";
import type { ColumnSchema } from "../state/server-content.ts";
import { linkId, shortText, textOf } from "./cell-text.ts";

export function CellValue({ column, value, place }: { column: ColumnSchema; value: unknown; place: Place }): JSX.Element | null {
  if (value === undefined || value === null) return <span class="muted">–</span>;
  if (column.type === "vector" && Array.isArray(value)) return <VectorStrip vector={value as number[]} />;
  const target = linkId(value);
  if (column.type === "link" && column.link !== undefined && target !== undefined) {
    return (
      <a href={hrefOf("table", place, column.link.table, target)} tabIndex={-1}>
        <bdi>{target}</bdi>
      </a>
    );
  }
  const text = shortText(column, value);
  return (
    <>
      {/^#[0-9a-f]{6}$/i.test(text) && <Swatch color={text} />}
      <bdi>{text}</bdi>
    </>
  );
}

interface CellEditorProps {
  /** Under this name the text is kept while it is being edited. */
  kept: string;
  column: ColumnSchema;
  value: unknown;
  /** @throws the server's objection. */
  onSave: (text: string) => Promise<void>;
  onClose: () => void;
  /**
   * Receives the function that saves the text if it was changed; called before another cell is edited. It resolves to false
   * when the server refuses the text, which is then still there, with the reason.
   */
  saver: { current: (() => Promise<boolean>) | undefined };
}

export function CellEditor({ kept, column, value, onSave, onClose, saver }: CellEditorProps): JSX.Element {
  const [text, setText] = useKept(kept, () => textOf(column, value));
  const editor = useRef<HTMLDivElement>(null);
  const [fault, setFault] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    const element = editor.current as HTMLDivElement;
    const box = element.getBoundingClientRect();
    const frame = (element.closest(".grid") ?? element).getBoundingClientRect();
    // In the last columns and rows it opens to where there is room.
    if (box.right > frame.right) element.classList.add("leftward");
    if (box.bottom > frame.bottom) element.classList.add("upward");
    // Of the double click.
    getSelection()?.removeAllRanges();
    const control = element.querySelector<HTMLElement>("textarea, select");
    control?.focus();
    if (control instanceof HTMLTextAreaElement) control.setSelectionRange(0, 0);
  }, []);
  async function save(): Promise<boolean> {
    if (isBusy) return false;
    if (text === textOf(column, value)) return true;
    setBusy(true);
    try {
      await onSave(text);
      return true;
    } catch (error) {
      setFault(messageOf(error));
      setBusy(false);
      return false;
    }
  }
  saver.current = save;
  async function finish(): Promise<void> {
    if (await save()) onClose();
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
