/** The columns of a new table, a row for each: whether it is taken, its name, its type, and what it has in the file. */
import type { JSX } from "preact";
import { Icon } from "../parts/icons.tsx";
import { TYPE_WORDS } from "../schema/schema-operation.ts";
import type { ColumnDraft } from "./column-drafts.ts";

interface ColumnRowsProps {
  columns: readonly ColumnDraft[];
  /** Tables that a link can point to. */
  tableNames: readonly string[];
  onChange: (at: number, part: Partial<ColumnDraft>) => void;
  onRemove: (at: number) => void;
}

export function ColumnRows({ columns, tableNames, onChange, onRemove }: ColumnRowsProps): JSX.Element {
  const isOfFile = columns.some(({ source }) => source !== undefined);
  return (
    <div class="table-scroll" role="region" tabIndex={0} aria-label="Columns of the new table">
      <table class="plain new-columns">
        <thead>
          <tr>
            {isOfFile && <th scope="col">In the file</th>}
            <th scope="col">Column</th>
            <th scope="col">Type</th>
            {isOfFile ? <th scope="col">First values</th> : <td />}
          </tr>
        </thead>
        <tbody>
          {columns.map((column, i) => (
            <ColumnRow
              key={column.source ?? i}
              column={column}
              tableNames={tableNames}
              onChange={(part) => onChange(i, part)}
              onRemove={() => onRemove(i)}
              number={i + 1}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface ColumnRowProps {
  column: ColumnDraft;
  tableNames: readonly string[];
  /** From one: what it is called before it has a name. */
  number: number;
  onChange: (part: Partial<ColumnDraft>) => void;
  onRemove: () => void;
}

function ColumnRow({ column, tableNames, number, onChange, onRemove }: ColumnRowProps): JSX.Element {
  const { source, name, type, dimension, target, isUsed, examples } = column;
  const called = source ?? `column ${number}`;
  const types = Object.entries(TYPE_WORDS).filter(([value]) => value !== "link" || tableNames.length > 0);
  function choose(next: string): void {
    onChange({
      type: next as ColumnDraft["type"],
      ...(next === "link" && target === "" ? { target: tableNames[0] ?? "" } : {}),
      ...(next === "id" ? { name: "id" } : {}),
    });
  }
  return (
    <tr class={isUsed ? "" : "left-out"}>
      {source !== undefined && (
        <th scope="row">
          <label class="check">
            <input type="checkbox" checked={isUsed} onChange={(event) => onChange({ isUsed: event.currentTarget.checked })} />
            <bdi>{source}</bdi>
          </label>
        </th>
      )}
      <td>
        <input
          aria-label={`Name of ${called}`}
          value={name}
          disabled={!isUsed || type === "id"}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => onChange({ name: event.currentTarget.value })}
        />
      </td>
      <td>
        <div class="type-fields">
          <select aria-label={`Type of ${called}`} value={type} disabled={!isUsed} onChange={(event) => choose(event.currentTarget.value)}>
            {[...(source === undefined ? [] : [["id", "id of the record"] as const]), ...types].map(([value, said]) => (
              <option key={value} value={value} selected={value === type}>
                {said}
              </option>
            ))}
          </select>
          {type === "vector" && (
            <input
              aria-label={`Dimension of ${called}`}
              class="dimension"
              inputMode="numeric"
              value={dimension}
              disabled={!isUsed}
              onInput={(event) => onChange({ dimension: event.currentTarget.value })}
            />
          )}
          {type === "link" && (
            <select
              aria-label={`Table of ${called}`}
              value={target}
              disabled={!isUsed}
              onChange={(event) => onChange({ target: event.currentTarget.value })}
            >
              {tableNames.map((table) => (
                <option key={table} value={table} selected={table === target}>
                  to {table}
                </option>
              ))}
            </select>
          )}
        </div>
      </td>
      <td>
        {source === undefined ? (
          <button type="button" class="quiet" aria-label={`Leave out ${called}`} onClick={onRemove}>
            <Icon name="trash" />
          </button>
        ) : (
          <ul class="examples">
            {examples.map((example, i) => (
              <li key={i}>
                <bdi>{example}</bdi>
              </li>
            ))}
          </ul>
        )}
      </td>
    </tr>
  );
}
