/** A new record: a field for each column. */
import type { JSX } from "preact";
import { ActionForm, TextField, useAttempt } from "../parts/form.tsx";
import { Fault } from "../parts/notice.tsx";
import { useKept } from "../state/kept.ts";
import type { ColumnSchema } from "../state/server-content.ts";
import { fromText } from "./cell-text.ts";

interface InsertFormProps {
  kept: string;
  columns: readonly ColumnSchema[];
  /** @throws what the server says against it. */
  onInsert: (id: string, fields: Readonly<Record<string, unknown>>) => Promise<void>;
  onClose: () => void;
}

export function InsertForm({ kept, columns, onInsert, onClose }: InsertFormProps): JSX.Element {
  const [texts, setTexts] = useKept<Readonly<Record<string, string>>>(`new record ${kept}`, () => ({}));
  const { fault, attempt } = useAttempt();
  async function insert(): Promise<void> {
    const given = columns.filter(({ name }) => (texts[name] ?? "") !== "");
    await onInsert(
      texts.id ?? "",
      Object.fromEntries(given.map((column) => [column.name, fromText(column, texts[column.name] as string)])),
    );
    setTexts({});
    onClose();
  }
  // The server names the column that it is about.
  const column = columns.find(({ name }) => fault.includes(`"${name}"`) || fault.startsWith(`${name}:`));
  const faulty = column?.name ?? (/\bid\b/.test(fault) ? "id" : undefined);
  const set = (name: string, text: string): void => setTexts({ ...texts, [name]: text });
  return (
    <ActionForm label="New record" look="card insert-form" verb="Insert" onSubmit={() => void attempt(insert)} onCancel={onClose}>
      <h2>New record</h2>
      <div class="insert-fields">
        <TextField
          label="id"
          fault={faulty === "id" ? fault : ""}
          hint="Leave it empty, and the server makes one."
          isFirst
          value={texts.id ?? ""}
          onInput={(text) => set("id", text)}
        />
        {columns.map((column) => (
          <TextField
            key={column.name}
            label={`${column.name} (${column.type})`}
            fault={faulty === column.name ? fault : ""}
            hint={column.vector === undefined ? undefined : `${column.vector.dimension} numbers, as [1, 2, …]`}
            value={texts[column.name] ?? ""}
            onInput={(text) => set(column.name, text)}
          />
        ))}
      </div>
      {fault !== "" && faulty === undefined && <Fault>{fault}</Fault>}
    </ActionForm>
  );
}
