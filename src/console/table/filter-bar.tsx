/** A filter in the API's grammar, built by clicking or typed. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { submitting, TextField } from "../parts/form.tsx";
import { Menu } from "../parts/menu.tsx";
import type { ColumnSchema } from "../state/server-content.ts";
import { fromText } from "./cell-text.ts";

interface FilterBarProps {
  columns: readonly ColumnSchema[];
  text: string;
  fault: string;
  onChange: (text: string) => void;
  onApply: (text: string) => void;
}

const OPERATORS = [
  ["$is", "is"],
  ["$isNot", "is not"],
  ["$contains", "contains"],
  ["$startsWith", "starts with"],
  ["$gt", ">"],
  ["$ge", "≥"],
  ["$lt", "<"],
  ["$le", "≤"],
  ["$exists", "is there"],
  ["$notExists", "is missing"],
] as const;

export function FilterBar({ columns, text, fault, onChange, onApply }: FilterBarProps): JSX.Element {
  const [column, setColumn] = useState("id");
  const [operator, setOperator] = useState<string>("$is");
  const [operand, setOperand] = useState("");
  const needsOperand = operator !== "$exists" && operator !== "$notExists";
  const all: readonly ColumnSchema[] = [{ name: "id", type: "string" }, ...columns];
  function add(): void {
    const schema = all.find(({ name }) => name === column) as ColumnSchema;
    const path = schema.type === "link" ? `${column}.id` : column;
    const condition = needsOperand ? { [path]: { [operator]: fromText(schema, operand) } } : { [operator]: column };
    const next = JSON.stringify(joined(text, condition));
    onChange(next);
    onApply(next);
  }
  return (
    <form class="filter-bar" onSubmit={submitting(() => onApply(text))}>
      <TextField label="Filter" fault={fault} class="code" placeholder='{"column": {"$gt": 1}}' value={text} onInput={onChange} />
      <button type="submit">Apply</button>
      <Menu label="Build">
        <select aria-label="Column" value={column} onChange={(event) => setColumn(event.currentTarget.value)}>
          {all.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <select aria-label="Condition" value={operator} onChange={(event) => setOperator(event.currentTarget.value)}>
          {OPERATORS.map(([value, said]) => (
            <option key={value} value={value}>
              {said}
            </option>
          ))}
        </select>
        {needsOperand && <input aria-label="Value" value={operand} onInput={(event) => setOperand(event.currentTarget.value)} />}
        <button type="button" onClick={add}>
          Add condition
        </button>
      </Menu>
    </form>
  );
}

/** Both conditions must hold. Text that is not JSON is replaced. */
function joined(text: string, condition: object): unknown {
  if (text.trim() === "") return condition;
  try {
    const old: unknown = JSON.parse(text);
    return typeof old === "object" && old !== null && "$all" in old && Array.isArray(old.$all)
      ? { $all: [...old.$all, condition] }
      : { $all: [old, condition] };
  } catch {
    return condition;
  }
}
