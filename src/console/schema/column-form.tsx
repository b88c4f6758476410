/** A new column: its name, type, and rules. The server decides what is allowed. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { MAX_DIMENSION, MIN_COLUMN_DIMENSION } from "../../dimension.ts";
import { COLUMN_TRAITS } from "../../records/column-traits.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { Select, TextField } from "../parts/field.tsx";
import { useAttempt } from "../parts/use-attempt.ts";
import type { ColumnSchema } from "../state/server-content.ts";

interface ColumnFormProps {
  /** Tables that a link can point to. */
  tableNames: readonly string[];
  /** @throws what is wrong with it. */
  onSubmit: (column: ColumnSchema) => Promise<void>;
  onCancel: () => void;
}

const TYPE_WORDS: Readonly<Record<ColumnSchema["type"], string>> = {
  string: "string",
  text: "text, for long texts",
  email: "email",
  int: "int, 64 bits",
  float: "float, 64 bits",
  bool: "bool",
  datetime: "datetime",
  multiple: "multiple, a list of strings",
  json: "json",
  link: "link to a record",
  vector: "vector, for search",
};
export function ColumnForm({ tableNames, onSubmit, onCancel }: ColumnFormProps): JSX.Element {
  const [name, setName] = useState("");
  const [type, setType] = useState<ColumnSchema["type"]>("string");
  const [dimension, setDimension] = useState("384");
  const [target, setTarget] = useState(tableNames[0] ?? "");
  const [notNull, setNotNull] = useState(false);
  const [unique, setUnique] = useState(false);
  const [defaultValue, setDefaultValue] = useState("");
  const { fault, attempt } = useAttempt();

  const column = (): ColumnSchema => ({
    name,
    type,
    ...(type === "vector" ? { vector: { dimension: Number(dimension) } } : {}),
    ...(type === "link" ? { link: { table: target } } : {}),
    ...(notNull ? { notNull } : {}),
    ...(unique && COLUMN_TRAITS[type].canBeUnique ? { unique } : {}),
    ...(defaultValue === "" ? {} : { defaultValue }),
  });
  // The server's messages begin with the member they are about.
  const about = /dimension/.test(fault) ? "dimension" : /defaultValue|default/.test(fault) ? "defaultValue" : "name";
  const faultOf = (field: string): string => (about === field ? fault : "");
  return (
    <ActionForm
      label="New column"
      look="schema-form"
      verb="Add"
      onSubmit={() => void attempt(() => onSubmit(column()))}
      onCancel={onCancel}
    >
      <div class="schema-fields">
        <TextField label="Name" fault={faultOf("name")} value={name} onInput={setName} isFirst />
        <Select
          label="Type"
          value={type}
          options={Object.entries(TYPE_WORDS)}
          onChoose={(value) => setType(value as ColumnSchema["type"])}
        />
        {type === "vector" && (
          <TextField
            label="Dimension"
            hint={`${MIN_COLUMN_DIMENSION} to ${MAX_DIMENSION.toLocaleString("en")}`}
            fault={faultOf("dimension")}
            value={dimension}
            onInput={setDimension}
            inputMode="numeric"
          />
        )}
        {type === "link" && (
          <Select label="Table" value={target} options={tableNames.map((table) => [table, table] as const)} onChoose={setTarget} />
        )}
        {type !== "vector" && (
          <TextField
            label="Default value"
            hint="Of records that are written without one."
            fault={faultOf("defaultValue")}
            value={defaultValue}
            onInput={setDefaultValue}
          />
        )}
      </div>
      <div class="actions">
        <label class="check">
          <input type="checkbox" checked={notNull} onChange={(event) => setNotNull(event.currentTarget.checked)} />
          not null
        </label>
        {COLUMN_TRAITS[type].canBeUnique && (
          <label class="check">
            <input type="checkbox" checked={unique} onChange={(event) => setUnique(event.currentTarget.checked)} />
            unique
          </label>
        )}
      </div>
    </ActionForm>
  );
}
