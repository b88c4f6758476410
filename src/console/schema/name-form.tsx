/**
 * A form for one name, shown where it will be used. If the server refuses the name, its message is shown
 * beside it.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { TextField } from "../parts/field.tsx";
import { useAttempt } from "../parts/use-attempt.ts";

interface NameFormProps {
  title: string;
  label: string;
  start: string;
  verb: string;
  /** @throws what is wrong with the name. */
  onSubmit: (name: string) => Promise<void>;
  onCancel: () => void;
}

export function NameForm({ title, label, start, verb, onSubmit, onCancel }: NameFormProps): JSX.Element {
  const [name, setName] = useState(start);
  const { fault, attempt } = useAttempt();
  return (
    <form
      class="schema-form"
      aria-label={title}
      onSubmit={(event) => {
        event.preventDefault();
        void attempt(() => onSubmit(name));
      }}
    >
      <TextField label={label} fault={fault} value={name} onInput={setName} isFirst />
      <div class="actions">
        <button type="submit" class="primary">
          {verb}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}
