/** The filter of a table: its conditions, each of which can be taken away, or the filter as JSON for those who want it. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { submitting, TextField } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Menu } from "../parts/menu.tsx";
import type { ColumnSchema } from "../state/server-content.ts";
import { fromText } from "./cell-text.ts";
import { type Condition, conditionsOf, filterOf, inWords, needsOperand, OPERATORS, type Operator } from "./filter-conditions.ts";

interface FilterBarProps {
  columns: readonly ColumnSchema[];
  /** As JSON. */
  text: string;
  fault: string;
  onChange: (text: string) => void;
  onApply: (text: string) => void;
}

export function FilterBar({ columns, text, fault, onChange, onApply }: FilterBarProps): JSX.Element {
  const conditions = conditionsOf(text);
  const [isJson, setJson] = useState(conditions === undefined);
  // It stays so while it is being typed.
  useEffect(() => {
    if (conditions === undefined) setJson(true);
  }, [conditions === undefined]);
  const all: readonly ColumnSchema[] = [{ name: "id", type: "string" }, ...columns];
  function apply(next: readonly Condition[]): void {
    const filter = filterOf(next);
    onChange(filter);
    onApply(filter);
  }
  return (
    <div class="filter-bar">
      {isJson || conditions === undefined ? (
        <form class="filter-json" onSubmit={submitting(() => onApply(text))}>
          <TextField label="Filter" fault={fault} class="code" placeholder='{"column": {"$gt": 1}}' value={text} onInput={onChange} />
          <button type="submit">Apply</button>
        </form>
      ) : (
        <div class="chips">
          {conditions.length > 0 && (
            <ul aria-label="Conditions of the filter">
              {conditions.map((condition, i) => (
                <li key={i} class="chip">
                  <bdi>{inWords(condition)}</bdi>
                  <button
                    type="button"
                    class="quiet"
                    aria-label={`Remove: ${inWords(condition)}`}
                    onClick={() => apply(conditions.filter((other) => other !== condition))}
                  >
                    <Icon name="close" />
                  </button>
                </li>
              ))}
            </ul>
          )}
          {fault !== "" && (
            <p class="fault" role="alert">
              {fault}
            </p>
          )}
        </div>
      )}
      {!isJson && conditions !== undefined && (
        <Menu label="Add a filter">
          <ConditionForm columns={all} onAdd={(condition) => apply([...conditions, condition])} />
        </Menu>
      )}
      <button
        type="button"
        class="quiet"
        aria-pressed={isJson}
        disabled={conditions === undefined}
        title={conditions === undefined ? "This filter can only be shown as JSON" : "The filter as JSON"}
        onClick={() => {
          setJson(!isJson);
          // The conditions that are shown are those that are applied.
          if (isJson) onApply(text);
        }}
      >
        JSON
      </button>
    </div>
  );
}

function ConditionForm({ columns, onAdd }: { columns: readonly ColumnSchema[]; onAdd: (condition: Condition) => void }): JSX.Element {
  const [name, setName] = useState("id");
  const [operator, setOperator] = useState<Operator>("$is");
  const [operand, setOperand] = useState("");
  const column = columns.find((other) => other.name === name) ?? (columns[0] as ColumnSchema);
  const isBool = column.type === "bool";
  function add(event: Event): void {
    event.preventDefault();
    // The value of a link is a record; what is compared is its id.
    const path = column.type === "link" && needsOperand(operator) ? `${column.name}.id` : column.name;
    onAdd({ column: path, operator, operand: needsOperand(operator) ? fromText(column, isBool ? operand || "true" : operand) : undefined });
    setOperand("");
    (event.currentTarget as HTMLElement).closest("details")?.removeAttribute("open");
  }
  return (
    <form class="condition" onSubmit={add}>
      <select aria-label="Column" value={column.name} onChange={(event) => setName(event.currentTarget.value)}>
        {columns.map((other) => (
          <option key={other.name}>{other.name}</option>
        ))}
      </select>
      <select aria-label="Condition" value={operator} onChange={(event) => setOperator(event.currentTarget.value as Operator)}>
        {OPERATORS.map(([value, said]) => (
          <option key={value} value={value}>
            {said}
          </option>
        ))}
      </select>
      {needsOperand(operator) &&
        (isBool ? (
          <select aria-label="Value" value={operand || "true"} onChange={(event) => setOperand(event.currentTarget.value)}>
            <option>true</option>
            <option>false</option>
          </select>
        ) : (
          <input
            aria-label="Value"
            placeholder={column.type === "datetime" ? "2026-11-25T10:00:00Z" : ""}
            value={operand}
            onInput={(event) => setOperand(event.currentTarget.value)}
          />
        ))}
      <button type="submit">Add condition</button>
    </form>
  );
}
