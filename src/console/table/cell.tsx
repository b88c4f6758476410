/** One cell: a value to read, or its text to edit, with the server's message below it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { messageOf } from "../api/client.ts";
import type { Place } from "../api/paths.ts";
import type { ColumnSchema } from "../state/catalog.ts";
import { hrefOf } from "../state/route.ts";
import { linkId, shortText, textOf } from "./cell-text.ts";
import { VectorStrip } from "./vector-strip.tsx";

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
      {/^#[0-9a-f]{6}$/i.test(text) && (
        <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
          <circle cx="6" cy="6" r="5.500" fill={text} />
        </svg>
      )}
      <bdi>{text}</bdi>
    </>
  );
}

interface CellEditorProps {
  column: ColumnSchema;
  value: unknown;
  /** @throws the server's objection. */
  onSave: (text: string) => Promise<void>;
  onCancel: () => void;
}

export function CellEditor({ column, value, onSave, onCancel }: CellEditorProps): JSX.Element {
  const [text, setText] = useState(() => textOf(column, value));
  const [fault, setFault] = useState("");
  const [isBusy, setBusy] = useState(false);
  async function save(): Promise<void> {
    if (isBusy) return;
    if (text === textOf(column, value)) return onCancel();
    setBusy(true);
    try {
      await onSave(text);
    } catch (error) {
      setFault(messageOf(error));
      setBusy(false);
    }
  }
  function pressKey(event: KeyboardEvent): void {
    // The grid's own keys must not act while the user is typing.
    event.stopPropagation();
    if (event.key === "Escape") onCancel();
    else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      void save();
    }
  }
  const common = {
    "aria-label": `New value of ${column.name}`,
    "aria-invalid": fault !== "",
    "aria-describedby": fault === "" ? undefined : "cell-fault",
    onKeyDown: pressKey,
    ref: (element: HTMLElement | null) => element?.focus(),
  };
  return (
    <div class="cell-editor">
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
          rows={text.length > 60 ? 5 : 1}
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
        <button type="button" class="primary" disabled={isBusy} onClick={() => void save()}>
          Save
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </div>
  );
}
