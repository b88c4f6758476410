/** A value of a record as a whole: long texts with their lines, JSON that folds, dates in words, lists, vectors. */
import type { JSX } from "preact";
import type { Place } from "../api/client.ts";
import { counted, valueInWords } from "../parts/numbers.ts";
import type { ColumnSchema } from "../state/server-content.ts";
import { CellValue } from "../table/cell.tsx";

export function FieldValue({ column, value, place }: { column: ColumnSchema; value: unknown; place: Place }): JSX.Element | null {
  if (value === undefined || value === null) return <span class="muted">empty</span>;
  switch (column.type) {
    case "text":
      return (
        <p class="long-text">
          <bdi>{String(value)}</bdi>
        </p>
      );
    case "json":
      return <JsonValue value={value} />;
    case "datetime":
      return (
        <time dateTime={String(value)} title={String(value)}>
          {valueInWords(String(value))}
        </time>
      );
    case "multiple":
      return (
        <span>
          {(value as readonly string[]).map((item, i) => (
            <span key={i} class="tag">
              {item}
            </span>
          ))}
        </span>
      );
    case "vector":
      return (
        <details>
          <summary>
            <CellValue column={column} value={value} place={place} />
          </summary>
          <p class="code long-text">{(value as readonly number[]).join(", ")}</p>
        </details>
      );
    default:
      return <CellValue column={column} value={value} place={place} isWhole />;
  }
}

/** Deeper, and beyond the first ones, it is shown when it is opened. */
const OPEN_DEPTH = 1;
const MOST_MEMBERS = 200;

function JsonValue({ value, depth = 0 }: { value: unknown; depth?: number }): JSX.Element {
  if (typeof value !== "object" || value === null) return <code>{JSON.stringify(value)}</code>;
  const members = Object.entries(value);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (members.length === 0) return <code>{open + close}</code>;
  return (
    <details class="json" open={depth < OPEN_DEPTH}>
      <summary>
        <code>
          {open} {counted(members.length, open === "[" ? "item" : "field")} {close}
        </code>
      </summary>
      <ul>
        {members.slice(0, MOST_MEMBERS).map(([name, member]) => (
          <li key={name}>
            <code>{name}</code>: <JsonValue value={member} depth={depth + 1} />
          </li>
        ))}
        {members.length > MOST_MEMBERS && <li class="muted">{members.length - MOST_MEMBERS} more</li>}
      </ul>
    </details>
  );
}
